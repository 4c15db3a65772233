"""OBJ in `lint`: what an API server refuses, at its line, and what nobody can know yet."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from vllm_phases import rules, sources
from vllm_phases.cli import run
from vllm_phases.model import Document, Release

if TYPE_CHECKING:
    from pathlib import Path

OBJ = rules.Selection(("OBJ",))
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: demo}
spec:
  replicas: 1
  selector: {matchLabels: {app: demo}}
  template:
    metadata: {labels: {app: demo}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0
          args: [Qwen/Qwen3-8B]
          volumeMounts:
            - {name: cache, mountPath: /cache}
      volumes:
        - {name: cache, emptyDir: {}}
"""


def told(text: str, selection: rules.Selection = OBJ, kube_version: str = "1.34.0") -> list[str]:
    """Place, rule and message of what is found in a file "d.yaml"."""
    documents = tuple(found for found in sources.read_text(text, "d.yaml") if isinstance(found, Document))
    found = rules.run(rules.Context(Release(documents), kube_version), selection)
    return [f"{it.location} {it.rule_id} {it.message}" for it in found]


def test_a_sound_object_has_nothing_against_it() -> None:
    assert told(DEPLOYMENT) == []


def test_a_finding_stands_at_the_field() -> None:
    text = DEPLOYMENT.replace("  replicas: 1", "  replicas: one\n  replica: 2")
    assert told(text) == [
        'd.yaml:5:3 OBJ001 spec.replicas: "one" is not an integer',
        'd.yaml:6:3 OBJ001 spec.replica: unknown field, did you mean "replicas"?',
    ]


def test_what_is_missing_stands_at_what_it_is_missing_in() -> None:
    assert told(DEPLOYMENT.replace("  selector: {matchLabels: {app: demo}}\n", "")) == [
        "d.yaml:4:1 OBJ001 spec.selector: missing, but required"
    ]


def test_the_items_of_a_list_are_judged_one_by_one() -> None:
    inside = DEPLOYMENT.replace("replicas: 1", "replicas: -1").replace("\n", "\n    ").rstrip()
    assert told(f"apiVersion: v1\nkind: List\nitems:\n  - {inside}\n") == [
        "d.yaml:8:7 OBJ001 spec.replicas: -1 is less than the minimum of 0"
    ]


def test_kinds_without_a_schema_are_passed_over() -> None:
    assert told("apiVersion: example.com/v1\nkind: Thing\nmetadata: {nam: x}\n") == []
    assert told("apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {nam: x}\n") == []


def test_the_kubernetes_version_decides_what_is_served() -> None:
    text = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {}\n"
    assert told(text) == []
    assert told(text, kube_version="1.33.0") == [
        "d.yaml:1:1 OBJ003 apiVersion: Kubernetes 1.33 does not serve resource.k8s.io/v1 DeviceClass, "
        "only 1.34 to 1.37"
    ]


@pytest.mark.parametrize(
    ("written", "hole"),
    [
        ("replicas: 1", "replicas: ${REPLICAS}"),
        ("replicas: 1", 'replicas: "{{ .Values.replicas }}"'),
        ("replicas: 1", '"{{ .Values.field }}": 1'),
        ("metadata: {name: demo}", 'metadata: {name: "{{ .Release.Name }}-vllm"}'),
        ("metadata: {name: demo}", 'metadata: {"{{ .Values.names }}": x}'),
        ("metadata: {labels: {app: demo}}", "metadata: {labels: {app: $APP}}"),
        ("selector: {matchLabels: {app: demo}}", "selector: {matchLabels: {app: $APP}}"),
        ("apiVersion: apps/v1", 'apiVersion: "{{ .Values.api }}"'),
        ("kind: Deployment", "kind: ${KIND}"),
        ("{name: cache, mountPath: /cache}", '{name: "{{ .Values.volume }}", mountPath: /cache}'),
        ("{name: cache, emptyDir: {}}", '{name: "{{ .Values.volume }}", emptyDir: {}}'),
        ("{name: cache, emptyDir: {}}", "{name: cache, emptyDir: {sizeLimit: $SIZE}}"),
    ],
)
def test_what_is_still_to_be_filled_in_is_not_called_wrong(written: str, hole: str) -> None:
    assert written in DEPLOYMENT
    assert told(DEPLOYMENT.replace(written, hole)) == []


def test_a_hole_excuses_nothing_beside_it() -> None:
    text = DEPLOYMENT.replace("replicas: 1", "replicas: ${REPLICAS}\n  replica: 1")
    assert told(text) == ['d.yaml:6:3 OBJ001 spec.replica: unknown field, did you mean "replicas"?']


def test_what_packaging_tells_is_told_once() -> None:
    text = DEPLOYMENT.replace("[Qwen/Qwen3-8B]", "[Qwen/Qwen3-8B, --port, 8000]")
    place = "spec.template.spec.containers[0].args[2]"
    assert told(text) == [f"d.yaml:13:41 OBJ001 {place}: 8000 is not a string"]
    both = told(text, rules.Selection(("OBJ", "PKG")))
    assert both == ["d.yaml:13:41 PKG002 8000 is no text, and the API server takes text only here"]


def test_a_variable_twice_is_a_warning_since_a_client_side_apply_takes_the_last() -> None:
    env = "          env: [{name: A, value: one}, {name: A, value: two}]\n"
    text = DEPLOYMENT.replace("          volumeMounts:\n", f"{env}          volumeMounts:\n")
    (document,) = sources.read_text(text, "d.yaml")
    assert isinstance(document, Document)
    (found,) = rules.run(rules.Context(Release((document,)), "1.34.0"), OBJ)
    assert (found.rule_id, found.severity.value) == ("OBJ014", "warning")


Lint = Callable[..., tuple[int, str]]


@pytest.fixture
def lint(capsys: pytest.CaptureFixture[str]) -> Lint:
    """Run the command: its exit code, and what it prints."""

    def command(*arguments: str) -> tuple[int, str]:
        code = run(["lint", *arguments])
        done = capsys.readouterr()
        return code, done.out + done.err

    return command


def test_patches_of_a_kustomization_are_no_objects(tmp_path: Path, lint: Lint) -> None:
    patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: demo}\nspec: {replicas: 2}\n"
    (tmp_path / "base.yaml").write_text(DEPLOYMENT)
    (tmp_path / "replicas.yaml").write_text(patch)
    code, output = lint(str(tmp_path), "--select", "OBJ")
    assert code == 1
    assert "spec.selector: missing, but required [OBJ001 invalid-object]" in output
    (tmp_path / "kustomization.yaml").write_text(
        "resources: [base.yaml]\npatches: [{path: ./replicas.yaml}]\n"
    )
    assert lint(str(tmp_path), "--select", "OBJ") == (0, "no findings\n")


@pytest.mark.parametrize("name", ["manager_patch.yaml", "patches/replicas.yaml"])
def test_a_file_that_is_called_a_patch_is_none_either(tmp_path: Path, lint: Lint, name: str) -> None:
    (tmp_path / "base.yaml").write_text(DEPLOYMENT)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: demo}\n")
    assert lint(str(tmp_path), "--select", "OBJ") == (0, "no findings\n")


def test_a_kubeconfig_is_no_object() -> None:
    assert told("apiVersion: v1\nkind: Config\nclusters: []\n") == []


def test_a_comment_suppresses_it_and_sarif_shows_it(tmp_path: Path, lint: Lint) -> None:
    file = tmp_path / "d.yaml"
    file.write_text(DEPLOYMENT.replace("  replicas: 1", "  replica: 1"))
    code, output = lint(str(file), "--select", "OBJ", "--format", "sarif")
    (run,) = json.loads(output)["runs"]
    (result,) = run["results"]
    assert code == 1
    assert (result["ruleId"], result["level"]) == ("OBJ001", "error")
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 5, "startColumn": 3}
    excused = "  replica: 1  # vllm-phases: ignore[OBJ001] our operator reads it"
    file.write_text(file.read_text().replace("  replica: 1", excused))
    assert lint(str(file), "--select", "OBJ,LINT") == (0, "no findings\n")


def test_a_kubernetes_version_without_schemas_is_wrong_usage(tmp_path: Path, lint: Lint) -> None:
    (tmp_path / "d.yaml").write_text(DEPLOYMENT)
    code, output = lint(str(tmp_path), "--kube-version", "1.24")
    assert code == 2
    assert 'Kubernetes version "1.24": object schemas are there for 1.25 to 1.37' in output
