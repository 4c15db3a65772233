"""Phase 2, engine to engine, on a real control plane: climbing in place, and two releases that keep to themselves."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT

from .release import endpoints, eventually, selectors

if TYPE_CHECKING:
    from .release import Get, Helm

pytestmark = pytest.mark.cluster

STACK = ROOT / "charts/vllm-stack"
PHASE1 = ("-f", ROOT / "values/phase1.yaml")
PHASE2 = ("-f", ROOT / "values/phase2-nccl.yaml")
WAIT = ("--wait", "--timeout=2m")
COMPONENTS = ("prefill", "decode", "router")


def addresses(get: Get, release: str, component: str) -> set[str]:
    """The addresses of a role's pods, but for those about to end."""
    selector = f"app.kubernetes.io/instance={release},app.kubernetes.io/component={component}"
    pods = get("pods", "-l", selector)
    return {pod["status"]["podIP"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}


def matching(get: Get, labels: dict[str, str]) -> set[str]:
    """The names of the pods that a selector selects."""
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    return {pod["metadata"]["name"] for pod in get("pods", "-l", selector)}


def router_selectors(get: Get, release: str) -> list[dict[str, str]]:
    """What a router tells the API server to find its prefill and decode engines by."""
    (container,) = get("deployment", f"{release}-router")["spec"]["template"]["spec"]["containers"]
    found = []
    for component in ("prefill", "decode"):
        start = container["args"].index(f"--{component}-selector") + 1
        found.append(dict(item.split("=", 1) for item in container["args"][start : start + 3]))
    return found


def test_a_release_climbs_in_place_and_back(helm: Helm, get: Get) -> None:
    door = partial(endpoints, get, "demo-front-door")
    helm("install", "demo", STACK, *PHASE1, *WAIT)
    before = selectors(get)
    helm("upgrade", "demo", STACK, *PHASE2, "--set", "base.enabled=true,frontDoor.to=base", *WAIT)
    eventually(door, addresses(get, "demo", "server"))
    helm("upgrade", "demo", STACK, *PHASE2, "--set", "base.enabled=true", *WAIT)
    eventually(door, addresses(get, "demo", "router"))
    assert addresses(get, "demo", "server")
    helm("rollback", "demo", "2", *WAIT)
    eventually(door, addresses(get, "demo", "server"))
    helm("upgrade", "demo", STACK, *PHASE2, *WAIT)
    eventually(door, addresses(get, "demo", "router"))
    eventually(partial(addresses, get, "demo", "server"), set())
    shared = {name: value for name, value in selectors(get).items() if name in before}
    assert {name for name in shared if shared[name] != before[name]} == {"Service/demo-front-door"}


def test_two_releases_in_a_namespace_never_meet(helm: Helm, get: Get) -> None:
    """No Service, no router and no NetworkPolicy of one release selects a pod of the other."""
    for release in ("one", "two"):
        helm("install", release, STACK, *PHASE2, *WAIT)
    for release in ("one", "two"):
        for component in COMPONENTS:
            eventually(partial(endpoints, get, f"{release}-{component}"), addresses(get, release, component))
        for component, selector in zip(COMPONENTS, router_selectors(get, release), strict=False):
            (name,) = matching(get, selector)
            assert name.startswith(f"{release}-{component}-")
        for name in reached(get, release):
            assert name.startswith((f"{release}-prefill-", f"{release}-decode-", f"{release}-router-"))


def reached(get: Get, release: str) -> set[str]:
    """The pods that a release's NetworkPolicies let in to its engines."""
    peers: list[dict[str, Any]] = [
        peer
        for component in ("prefill", "decode")
        for rule in get("networkpolicy", f"{release}-{component}")["spec"]["ingress"]
        for peer in rule["from"]
    ]
    return {name for peer in peers for name in matching(get, peer["podSelector"]["matchLabels"])}


def test_the_router_may_read_pods_and_nothing_else(helm: Helm, control_plane: Any, namespace: str) -> None:
    helm("install", "demo", STACK, *PHASE2, *WAIT)
    account = f"--as=system:serviceaccount:{namespace}:demo-router"
    said = control_plane.kubectl("auth", "can-i", "--list", "--no-headers", account, "--namespace", namespace)
    (pods,) = [line.split() for line in said.splitlines() if line.startswith("pods")]
    assert pods[-3:] == ["[get", "list", "watch]"]
    assert not [line for line in said.splitlines() if line.startswith(("secrets", "*", "configmaps"))]
