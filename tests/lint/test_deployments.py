"""A folder with several deployments: which documents are judged together, and which apart."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from vllm_phases import rules, sources
from vllm_phases.cli import run
from vllm_phases.model import Release

KUBE_VERSION = "1.35.0"
SAMPLE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: engine}
spec:
  selector: {matchLabels: {app: engine}}
  template:
    metadata: {labels: {app: engine}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0
          args: [Qwen/Qwen3-8B, --port=8000]
"""
OTHER = SAMPLE.replace("8000", "9000")
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: door}
spec: {selector: {app: engine}, ports: [{name: http, port: 80, targetPort: 8000}]}
"""
SCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: NAME}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: engine}, maxReplicas: 2}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: demo}\n"


@dataclass(frozen=True)
class Folder:
    """Files in a folder of its own."""

    root: Path

    def read(self, files: dict[str, str]) -> Release:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Release(sources.read([str(self.root)]).documents)

    def parts(self, **files: str) -> list[list[str]]:
        """The files that are judged together; "__" stands for a folder."""
        release = self.read({f"{name.replace('__', '/')}.yaml": text for name, text in files.items()})
        return [
            sorted({str(Path(found.file).relative_to(self.root)) for found in part.documents})
            for part in release.deployments
        ]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


class TestSplit:
    def test_a_deployment_in_several_folders_stays_whole(self, folder: Folder) -> None:
        assert folder.parts(engine__a=SAMPLE, door__b=SERVICE) == [["door/b.yaml", "engine/a.yaml"]]

    def test_folders_that_contradict_each_other_are_apart(self, folder: Folder) -> None:
        assert folder.parts(one__a=SAMPLE, one__b=SERVICE, two__a=OTHER) == [
            ["one/a.yaml", "one/b.yaml"],
            ["two/a.yaml"],
        ]

    def test_only_the_folders_that_do(self, folder: Folder) -> None:
        assert folder.parts(x__one__a=SAMPLE, x__two__a=OTHER, y__one__b=SERVICE, y__two__c=NAMESPACE) == [
            ["x/one/a.yaml"],
            ["x/two/a.yaml"],
            ["y/one/b.yaml", "y/two/c.yaml"],
        ]

    def test_files_of_one_folder_that_do_stand_alone(self, folder: Folder) -> None:
        assert folder.parts(a=SAMPLE, b=OTHER, c=SERVICE, d=NAMESPACE) == [
            ["a.yaml"],
            ["b.yaml"],
            ["c.yaml", "d.yaml"],
        ]

    def test_the_same_object_twice_is_no_contradiction(self, folder: Folder) -> None:
        assert len(folder.parts(one__a=NAMESPACE + "---\n" + SAMPLE, two__a=NAMESPACE)) == 1

    def test_nor_is_one_of_another_namespace(self, folder: Folder) -> None:
        elsewhere = OTHER.replace("{name: engine}\n", "{name: engine, namespace: two}\n", 1)
        assert len(folder.parts(one__a=SAMPLE, two__a=elsewhere)) == 1


class TestFindings:
    def found(self, release: Release, rule: str) -> list[str]:
        context = rules.Context(release, KUBE_VERSION)
        return [found.severity.value for found in rules.run(context, rules.Selection((rule,)))]

    def test_a_service_leads_to_the_engine_of_its_own_folder(self, folder: Folder) -> None:
        files = {"one/a.yaml": SAMPLE, "one/b.yaml": SERVICE, "two/a.yaml": OTHER}
        assert self.found(folder.read(files), "NET001") == []
        files["two/b.yaml"] = SERVICE
        assert self.found(folder.read(files), "NET001") == ["error"]

    def test_autoscalers_of_two_files_are_alternatives_without_what_they_scale(self, folder: Folder) -> None:
        files = {"a.yaml": SCALER.replace("NAME", "a"), "b.yaml": SCALER.replace("NAME", "b")}
        assert self.found(folder.read(files), "OPS001") == ["warning"]
        assert self.found(folder.read({**files, "engine.yaml": SAMPLE}), "OPS001") == ["error"]

    def test_one_autoscaler_in_two_files_is_one(self, folder: Folder) -> None:
        scaler = SCALER.replace("NAME", "a")
        assert self.found(folder.read({"a.yaml": scaler, "b.yaml": scaler}), "OPS001") == []

    def test_what_kustomize_has_yet_to_build_is_no_error(self, folder: Folder) -> None:
        service = SERVICE.replace("door", "vllm")
        files = {"engine.yaml": SAMPLE, "service.yaml": service}
        assert self.found(folder.read(files), "PKG011") == ["error"]
        files["kustomization.yaml"] = "nameSuffix: -demo\nresources: [engine.yaml, service.yaml]\n"
        assert self.found(folder.read(files), "PKG011") == ["warning"]

    def test_patches_of_a_kustomization_are_passed_over(self, folder: Folder) -> None:
        patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: engine}\nspec: {replicas: 2}\n"
        kustomization = "resources: [../base]\npatches: [{path: patch.yaml}, {patch: '{}', target: {}}]\n"
        old = "patchesStrategicMerge: [one/old.yaml]\n"
        release = folder.read(
            {
                "base/a.yaml": SAMPLE,
                "over/kustomization.yaml": kustomization + old,
                "over/patch.yaml": patch,
                "over/one/old.yaml": patch,
            }
        )
        assert [found.id for found in release.objects] == ["Deployment/engine", "Kustomization/"]

    def test_unknown_versions_are_told_once_for_all(
        self, folder: Folder, capsys: pytest.CaptureFixture[str]
    ) -> None:
        untold = [text.replace("v0.33.0", "nightly") for text in (SAMPLE, OTHER)]
        folder.read({"one/a.yaml": untold[0], "two/a.yaml": untold[1]})
        run(["lint", str(folder.root), "--select", "LINT", "--format", "json", "--exit-zero"])
        (found,) = json.loads(capsys.readouterr().out)["findings"]
        assert "in all for 2 of 2 engines" in found["message"]
