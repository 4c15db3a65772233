"""Phase 2 by llm-d on a real control plane: climbing in place, releases that keep to themselves, names of any length."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

from .release import endpoints, eventually, selectors
from .test_pd_nccl import addresses, matching

if TYPE_CHECKING:
    from .control_plane import ControlPlane
    from .release import Get, Helm

pytestmark = pytest.mark.cluster

STACK = ROOT / "charts/vllm-stack"
PHASE1 = ("-f", ROOT / "values/phase1.yaml")
NCCL = ("-f", ROOT / "values/phase2-nccl.yaml")
LLMD = ("-f", ROOT / "values/phase2-llmd.yaml")
POOL = ("--set", "llmd.inferencePool.enabled=true")
WAIT = ("--wait", "--timeout=2m")


@pytest.mark.parametrize(
    ("below", "layer", "component"),
    [(PHASE1, "base", "server"), (NCCL, "pdNccl", "router")],
    ids=["phase1", "phase2-nccl"],
)
def test_a_release_climbs_in_place_and_back(
    helm: Helm, get: Get, below: tuple[str, ...], layer: str, component: str
) -> None:
    """From phase 1 and from the other path of phase 2: names of the two paths never meet."""
    door = partial(endpoints, get, "demo-front-door")
    helm("install", "demo", STACK, *below, *WAIT)
    before = selectors(get)
    helm("upgrade", "demo", STACK, *LLMD, "--set", f"{layer}.enabled=true,frontDoor.to={layer}", *WAIT)
    eventually(door, addresses(get, "demo", component))
    helm("upgrade", "demo", STACK, *LLMD, "--set", f"{layer}.enabled=true", *WAIT)
    eventually(door, addresses(get, "demo", "proxy"))
    helm("rollback", "demo", "2", *WAIT)
    eventually(door, addresses(get, "demo", component))
    helm("upgrade", "demo", STACK, *LLMD, *WAIT)
    eventually(door, addresses(get, "demo", "proxy"))
    eventually(partial(addresses, get, "demo", component), set())
    shared = {name: value for name, value in selectors(get).items() if name in before}
    assert {name for name in shared if shared[name] != before[name]} == {"Service/demo-front-door"}


def test_two_releases_in_a_namespace_never_meet(helm: Helm, get: Get) -> None:
    """Neither pool nor picker of one release selects a pod of the other."""
    for release in ("one", "two"):
        helm("install", release, STACK, *LLMD, *POOL, *WAIT)
    for release in ("one", "two"):
        pool = get("inferencepool", f"{release}-pool")["spec"]["selector"]["matchLabels"]
        found = matching(get, pool)
        assert len(found) == 2
        for name in found:
            assert name.startswith((f"{release}-llmd-prefill-", f"{release}-llmd-decode-"))


@pytest.mark.parametrize("length", range(1, 54))
def test_a_release_may_have_any_name(control_plane: ControlPlane, length: int) -> None:
    """Two in a namespace that differ in the last letter only, of every length that Helm allows."""
    values = (*LLMD, *POOL, "--set", "llmd.endpointPicker.metricsAuthentication=true")
    names = ("a" * (length - 1) + "x", "a" * (length - 1) + "y")
    with control_plane.namespace({}) as namespace:
        for name in names:
            control_plane.helm("install", name, STACK, *values, "--namespace", namespace)
        found = control_plane.get("deployments,services,configmaps,inferencepools", "-n", namespace)
        owners = Counter(
            item["metadata"].get("labels", {}).get("app.kubernetes.io/instance") for item in found
        )
        assert owners[names[0]] == owners[names[1]] > 10
