"""Phase 1 on a real API server: what Helm 4 and Helm 3 make of `charts/vllm-stack` with `values/phase1.yaml`.

Every test installs into a new namespace that admits only pods of the `restricted` Pod Security level.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from .control_plane import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .control_plane import ControlPlane

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
STACK = ROOT / "charts/vllm-stack"
PHASE1 = ("-f", ROOT / "values/phase1.yaml")
WAIT = ("--wait", "--timeout=60s")
OVERLAYS = sorted((ROOT / "values/overlays").glob("*.yaml"))
CI_VALUES = sorted((ROOT / "charts").glob("*/ci/*-values.yaml"))
AUTOSCALERS = {"hpa": "horizontalpodautoscaler", "keda": "scaledobject"}


class Helm(Protocol):
    """One of the two Helms, acting in the namespace of the test."""

    def __call__(self, *args: str | Path) -> str: ...


class Get(Protocol):
    """`kubectl get` in the namespace of the test."""

    def __call__(self, *args: str) -> Any: ...


@pytest.fixture(params=[4, 3], ids=["helm4", "helm3"])
def helm(control_plane: ControlPlane, namespace: str, request: pytest.FixtureRequest) -> Helm:
    def run(*args: str | Path) -> str:
        return control_plane.helm(*args, "--namespace", namespace, version=request.param)

    return run


@pytest.fixture
def get(control_plane: ControlPlane, namespace: str) -> Get:
    def run(*args: str) -> Any:
        return control_plane.get(*args, "--namespace", namespace)

    return run


def eventually(read: Callable[[], Any], expected: Any, seconds: float = 30) -> None:
    """Read until the value is the expected one: controllers act a moment after Helm returns."""
    deadline = time.monotonic() + seconds
    while (value := read()) != expected and time.monotonic() < deadline:
        time.sleep(0.2)
    assert value == expected


def pods(get: Get, release: str = "demo") -> list[Any]:
    """The engine pods of a release, but for those about to end."""
    selector = f"app.kubernetes.io/instance={release},app.kubernetes.io/component=server"
    return [pod for pod in get("pods", "-l", selector) if "deletionTimestamp" not in pod["metadata"]]


def arguments(get: Get) -> list[str]:
    """What the engine of release `demo` is started with."""
    containers = get("deployment", "demo-server")["spec"]["template"]["spec"]["containers"]
    args: list[str] = next(each["args"] for each in containers if each["name"] == "vllm")
    return args


def endpoints(get: Get, service: str) -> set[str]:
    """The addresses behind a Service."""
    slices = get("endpointslices", "-l", f"kubernetes.io/service-name={service}")
    return {
        address for each in slices for target in each["endpoints"] or () for address in target["addresses"]
    }


def selectors(get: Get) -> dict[str, Any]:
    """Everything that selects pods, by kind and name."""
    found = get("deployments,services,networkpolicies,poddisruptionbudgets")
    keys = ("selector", "podSelector")
    return {
        f"{each['kind']}/{each['metadata']['name']}": {key: each["spec"].get(key) for key in keys}
        for each in found
    }


def left(control_plane: ControlPlane, namespace: str) -> set[str]:
    """Everything in the namespace, but for the events of the past."""
    kinds = control_plane.kubectl(
        "api-resources", "--namespaced", "--verbs=list,create", "-o", "name"
    ).split()
    wanted = ",".join(kind for kind in kinds if not kind.startswith("events"))
    return set(control_plane.kubectl("get", wanted, "--namespace", namespace, "-o", "name").split())


def test_install_needs_no_dependency_step(helm: Helm, get: Get) -> None:
    helm("install", "demo", STACK, *PHASE1, *WAIT)
    (pod,) = pods(get)
    assert pod["spec"]["nodeName"] in ("nvidia-1", "nvidia-2")
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


def test_rollback_brings_the_first_revision_back(helm: Helm, get: Get) -> None:
    helm("install", "demo", STACK, *PHASE1, *WAIT)
    before = arguments(get)
    helm(
        "upgrade",
        "demo",
        STACK,
        *PHASE1,
        *WAIT,
        "--set",
        "base.replicas=2,global.vllm.args.max-num-seqs=64",
    )
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
    with pytest.raises(CommandError, match="replicsa"):
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
    control_plane.apply(claim("models"), namespace=namespace)
    helm("install", "demo", STACK, *PHASE1, "-f", overlay, *WAIT)
    assert len(pods(get)) == 1


@pytest.mark.parametrize("namespace", ["baseline"], indirect=True)
@pytest.mark.parametrize("values", CI_VALUES, ids=[f"{path.parts[-3]}-{path.stem}" for path in CI_VALUES])
def test_every_ci_values_file_installs(
    helm: Helm, get: Get, control_plane: ControlPlane, namespace: str, values: Path
) -> None:
    chart = values.parents[1]
    cache = "cache" if chart.name == "vllm-base" else "base.cache"
    # Without --wait, since nobody gives a LoadBalancer its address here.
    helm("install", "demo", chart, "-f", values, "--set", f"{cache}.storageClassName=kwok-volume")
    control_plane.kubectl("rollout", "status", "deployment/demo-server", "--timeout=60s", "-n", namespace)
    assert len(pods(get)) == 1


def claim(name: str) -> dict[str, Any]:
    """A claim on storage that a user made before the install."""
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "20Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
