"""Replicas of several pods on a real control plane. The controller of LeaderWorkerSets cannot be had here: `groups`
below is a fake of it, which only makes the pods as it does."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT

from .release import endpoints, eventually, selectors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .control_plane import ControlPlane
    from .release import Get, Helm

pytestmark = pytest.mark.cluster

STACK = ROOT / "charts/vllm-stack"
PHASE1 = ("-f", ROOT / "values/phase1.yaml")
LLMD = ("-f", ROOT / "values/phase2-llmd.yaml")
WIDE = ("-f", ROOT / "values/overlays/wide-ep.yaml")
POOL = ("--set", "llmd.inferencePool.enabled=true")
SPANNING = "base.workload=leaderWorkerSet,base.parallelism.tensor=16,base.parallelism.nodes=2"


def groups(found: Any) -> Iterator[dict[str, Any]]:
    """The pods of a LeaderWorkerSet, named as its controller names them, without its StatefulSets and webhook."""
    template = found["spec"]["leaderWorkerTemplate"]
    for index in range(found["spec"]["replicas"]):
        first = f"{found['metadata']['name']}-{index}"
        for number in range(template["size"]):
            pod = template.get("leaderTemplate") if number == 0 else None
            pod = json.loads(json.dumps(pod or template["workerTemplate"]))
            pod["metadata"]["name"] = f"{first}-{number}" if number else first
            variables = {"LWS_LEADER_ADDRESS": f"{first}.{first}", "LWS_WORKER_INDEX": str(number)}
            env = [{"name": name, "value": value} for name, value in variables.items()]
            for container in pod["spec"]["containers"]:
                container["env"] = env + container.get("env", [])
            yield {"apiVersion": "v1", "kind": "Pod", **pod}


def start(control_plane: ControlPlane, get: Get, namespace: str) -> None:
    """Make the pods of every LeaderWorkerSet; the real API server and scheduler must take them."""
    pods = [pod for found in get("leaderworkersets") for pod in groups(found)]
    control_plane.apply(*pods, namespace=namespace)
    names = [f"pod/{pod['metadata']['name']}" for pod in pods]
    control_plane.kubectl("wait", "--for=condition=Ready", *names, "-n", namespace, "--timeout=60s")


def addresses(get: Get, *names: str) -> set[str]:
    return {get("pod", name)["status"]["podIP"] for name in names}


def test_an_engine_over_two_nodes_is_found_by_its_leader(
    helm: Helm, get: Get, control_plane: ControlPlane, namespace: str
) -> None:
    helm("install", "demo", STACK, *PHASE1, "--set", SPANNING)
    start(control_plane, get, namespace)
    pods = [get("pod", name) for name in ("demo-server-0", "demo-server-0-1")]
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    for service in ("demo-server", "demo-front-door"):
        eventually(partial(endpoints, get, service), addresses(get, "demo-server-0"))


def test_a_release_may_move_between_workloads(helm: Helm, get: Get) -> None:
    helm("install", "demo", STACK, *PHASE1)
    before = selectors(get)
    helm("upgrade", "demo", STACK, *PHASE1, "--set", SPANNING)
    assert [item["metadata"]["name"] for item in get("leaderworkersets")] == ["demo-server"]
    assert get("deployments") == []
    services = ("Service/demo-server", "Service/demo-front-door")
    assert {name: selectors(get)[name] for name in services} == {name: before[name] for name in services}
    helm("rollback", "demo", "1")
    assert get("leaderworkersets") == []
    assert selectors(get) == before


@pytest.mark.parametrize("namespace", ["privileged"], indirect=True)  # RDMA pins memory
def test_both_roles_spread_wide(helm: Helm, get: Get, control_plane: ControlPlane, namespace: str) -> None:
    """Four pods of 8 GPUs each, of which three fit on the fake nodes at once, so each role in its turn."""
    helm("install", "demo", STACK, *LLMD, *WIDE, *POOL, "--set", "llmd.decode.replicas=0")
    start(control_plane, get, namespace)
    both = addresses(get, "demo-llmd-prefill-0", "demo-llmd-prefill-0-1")
    eventually(partial(endpoints, get, "demo-llmd-prefill"), both)
    ports = [port["number"] for port in get("inferencepool", "demo-pool")["spec"]["targetPorts"]]
    assert ports == list(range(8000, 8008))
    helm("upgrade", "demo", STACK, *LLMD, *WIDE, *POOL, "--set", "llmd.prefill.replicas=0")
    names = ("pod/demo-llmd-prefill-0", "pod/demo-llmd-prefill-0-1")
    control_plane.kubectl("delete", *names, "-n", namespace, "--timeout=60s")
    start(control_plane, get, namespace)
    both = addresses(get, "demo-llmd-decode-0", "demo-llmd-decode-0-1")
    eventually(partial(endpoints, get, "demo-llmd-decode"), both)


def test_an_autoscaler_finds_the_scale_of_a_group(
    helm: Helm, get: Get, control_plane: ControlPlane, namespace: str
) -> None:
    helm("install", "demo", STACK, *PHASE1, "--set", f"{SPANNING},base.autoscaling.type=hpa")
    target = get("hpa", "demo-server")["spec"]["scaleTargetRef"]
    assert target == {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "name": "demo-server",
    }
    control_plane.kubectl("scale", "leaderworkerset/demo-server", "--replicas=3", "-n", namespace)
    helm("upgrade", "demo", STACK, *PHASE1, "--set", f"{SPANNING},base.autoscaling.type=hpa")
    assert get("leaderworkerset", "demo-server")["spec"]["replicas"] == 3
