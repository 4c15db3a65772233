"""Phase 1 on a real API server: what Helm 4 and Helm 3 make of `charts/vllm-stack` with `values/phase1.yaml`.

Every test installs into a new namespace, which admits only pods of the `restricted` Pod Security level unless
the test names another one.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .control_plane import CommandError
from .release import arguments, endpoints, eventually, left, pods, selectors

if TYPE_CHECKING:
    from .control_plane import ControlPlane
    from .release import Get, Helm

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
STACK = ROOT / "charts/vllm-stack"
PHASE1 = ("-f", ROOT / "values/phase1.yaml")
WAIT = ("--wait", "--timeout=60s")
OVERLAYS = sorted((ROOT / "values/overlays").glob("*.yaml"))
NVIDIA = ("nvidia-1", "nvidia-2", "nvidia-3")  # 8 GPUs each
AUTOSCALERS = {"hpa": "horizontalpodautoscaler", "keda": "scaledobject"}

MODELS = {  # a claim that a user filled with weights before the install
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "models"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "20Gi"}}},
}


def test_install_needs_no_dependency_step(helm: Helm, get: Get) -> None:
    helm("install", "demo", STACK, *PHASE1, *WAIT)
    (pod,) = pods(get)
    assert pod["spec"]["nodeName"] in NVIDIA
    for service in ("demo-server", "demo-front-door"):
        eventually(partial(endpoints, get, service), {pod["status"]["podIP"]})


def test_upgrade_changes_replicas_and_arguments_but_no_selector(helm: Helm, get: Get) -> None:
    helm("install", "demo", STACK, *PHASE1, *WAIT)
    before = selectors(get)
    changes = ("base.replicas=2", "global.vllm.args.max-num-seqs=64", "global.vllm.version=0.32.0")
    labels = ("global.vllm.labels.team=search", "base.labels.tier=online")
    helm("upgrade", "demo", STACK, *PHASE1, *WAIT, "--set", ",".join(changes + labels))
    assert len(pods(get)) == 2
    assert "--max-num-seqs=64" in arguments(get)
    assert selectors(get) == before
    assert before["Service/demo-front-door"] == before["Service/demo-server"]


def test_a_rollout_needs_no_spare_gpu(helm: Helm, get: Get) -> None:
    everything = (*PHASE1, *WAIT, "--set", "base.replicas=3,base.parallelism.tensor=8")
    helm("install", "demo", STACK, *everything)
    assert {pod["spec"]["nodeName"] for pod in pods(get)} == set(NVIDIA)
    helm("upgrade", "demo", STACK, *everything, "--set", "global.vllm.args.max-num-seqs=64")
    assert ["--max-num-seqs=64" in pod["spec"]["containers"][0]["args"] for pod in pods(get)] == [True] * 3


def test_rollback_brings_the_first_revision_back(helm: Helm, get: Get) -> None:
    helm("install", "demo", STACK, *PHASE1, *WAIT)
    before = arguments(get)
    changes = "base.replicas=2,global.vllm.args.max-num-seqs=64"
    helm("upgrade", "demo", STACK, *PHASE1, *WAIT, "--set", changes)
    assert arguments(get) != before
    helm("rollback", "demo", "1", *WAIT)
    assert arguments(get) == before
    eventually(lambda: len(pods(get)), 1)


def test_helm_test_runs_its_pod_and_keeps_it_for_its_logs(helm: Helm, get: Get) -> None:
    helm("install", "demo", STACK, *PHASE1, *WAIT)
    assert "Phase:          Succeeded" in helm("test", "demo")
    assert get("pod", "demo-test")["status"]["phase"] == "Succeeded"


def test_uninstall_leaves_nothing_behind(helm: Helm, control_plane: ControlPlane, namespace: str) -> None:
    before = left(control_plane, namespace)
    helm("install", "demo", STACK, *PHASE1, *WAIT)
    helm("uninstall", "demo", *WAIT)
    eventually(partial(left, control_plane, namespace), before)


def test_lint_finds_nothing(helm: Helm) -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in helm("lint", "--strict", STACK, *PHASE1)


def test_the_package_installs_and_its_schema_refuses_a_misspelt_key(
    helm: Helm, get: Get, tmp_path: Path
) -> None:
    helm("package", STACK, "--destination", tmp_path)
    (package,) = tmp_path.glob("vllm-stack-*.tgz")
    with pytest.raises(CommandError, match="at '/base': additional properties 'replicsa' not allowed"):
        helm("install", "demo", package, *PHASE1, "--set", "base.replicsa=2")
    helm("install", "demo", package, *PHASE1, *WAIT)
    assert len(pods(get)) == 1


def test_two_releases_in_a_namespace_answer_for_themselves(helm: Helm, get: Get) -> None:
    for release in ("one", "two"):
        helm("install", release, STACK, *PHASE1, "--set", "base.replicas=2", *WAIT)
    addresses = {
        release: {pod["status"]["podIP"] for pod in pods(get, release)} for release in ("one", "two")
    }
    assert len(addresses["one"] | addresses["two"]) == 4
    for release in ("one", "two"):
        for service in (f"{release}-server", f"{release}-front-door"):
            eventually(partial(endpoints, get, service), addresses[release])


@pytest.mark.parametrize("kind", AUTOSCALERS)
def test_upgrade_leaves_the_replicas_of_an_autoscaler_alone(
    helm: Helm, get: Get, control_plane: ControlPlane, namespace: str, kind: str
) -> None:
    values = (*PHASE1, *WAIT, "--set", f"base.autoscaling.type={kind},base.autoscaling.maxReplicas=4")
    helm("install", "demo", STACK, *values)
    assert [each["metadata"]["name"] for each in get(AUTOSCALERS[kind])] == ["demo-server"]
    control_plane.kubectl("scale", "deployment/demo-server", "--replicas=3", "--namespace", namespace)
    helm("upgrade", "demo", STACK, *values, "--set", "global.vllm.args.max-num-seqs=64")
    assert "--max-num-seqs=64" in arguments(get)
    assert get("deployment", "demo-server")["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    ("overlay", "namespace"),
    # The official CPU image has no other user than root.
    [(path, "baseline" if path.stem == "cpu" else "restricted") for path in OVERLAYS],
    ids=[path.stem for path in OVERLAYS],
    indirect=["namespace"],
)
def test_every_overlay_installs(
    helm: Helm, get: Get, control_plane: ControlPlane, namespace: str, overlay: Path
) -> None:
    control_plane.apply(MODELS, namespace=namespace)
    helm("install", "demo", STACK, *PHASE1, "-f", overlay, *WAIT)
    assert len(pods(get)) == 1
