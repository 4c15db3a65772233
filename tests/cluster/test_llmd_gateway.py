"""A Gateway in the proxy's place: a real API server takes its objects, and releases that share one do not meet.

Nothing here runs a Gateway: neither Istio nor agentgateway is there to act on the objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

from .release import eventually

if TYPE_CHECKING:
    from .control_plane import ControlPlane
    from .release import Get, Helm

pytestmark = pytest.mark.cluster

STACK = ROOT / "charts/vllm-stack"
LLMD = ("-f", ROOT / "values/phase2-llmd.yaml")
WAIT = ("--wait", "--timeout=2m")
OVERLAYS = {name: ("-f", ROOT / f"values/overlays/gateway-{name}.yaml") for name in ("istio", "agentgateway")}
JOINS = "llmd.proxy.gateway.create=false,llmd.proxy.gateway.parentRefs[0].name=one-gateway"
KINDS = "gateways.gateway.networking.k8s.io,httproutes,destinationrules,envoyfilters,inferencepools"


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_object_is_admitted_and_goes(helm: Helm, get: Get, name: str) -> None:
    helm("install", "demo", STACK, *LLMD, *OVERLAYS[name], *WAIT)
    found = {each["kind"] for each in get(KINDS)}
    istio = {"DestinationRule", "EnvoyFilter"} if name == "istio" else set()
    assert found == {"Gateway", "HTTPRoute", "InferencePool", *istio}
    helm("uninstall", "demo", "--wait", "--timeout=60s")
    eventually(lambda: get(KINDS), [])


def test_a_release_moves_from_envoy_to_a_gateway_and_back(helm: Helm, get: Get) -> None:
    """Its engines are not touched, and the front door keeps its address."""
    helm("install", "demo", STACK, *LLMD, *WAIT)
    before = get("service", "demo-front-door")["spec"]
    engines = {role: get("deployment", f"demo-llmd-{role}")["spec"] for role in ("prefill", "decode")}
    helm("upgrade", "demo", STACK, *LLMD, *OVERLAYS["istio"], *WAIT)
    door = get("service", "demo-front-door")["spec"]
    assert door["clusterIP"] == before["clusterIP"]
    assert door["selector"] == {"gateway.networking.k8s.io/gateway-name": "demo-gateway"}
    assert {role: get("deployment", f"demo-llmd-{role}")["spec"] for role in engines} == engines
    helm("rollback", "demo", "1", *WAIT)
    assert get("service", "demo-front-door")["spec"]["selector"] == before["selector"]


@pytest.mark.parametrize("name", OVERLAYS)
def test_two_releases_share_a_gateway(helm: Helm, get: Get, name: str) -> None:
    prefix = "llmd.proxy.gateway.route.prefix"
    helm("install", "one", STACK, *LLMD, *OVERLAYS[name], "--set", f"{prefix}=/one", *WAIT)
    helm("install", "two", STACK, *LLMD, *OVERLAYS[name], "--set", f"{prefix}=/two,{JOINS}", *WAIT)
    (made,) = get("gateways.gateway.networking.k8s.io")
    assert made["metadata"]["name"] == "one-gateway"
    routes = {each["metadata"]["name"]: each["spec"] for each in get("httproutes")}
    for release in ("one", "two"):
        spec = routes[f"{release}-gateway"]
        assert [parent["name"] for parent in spec["parentRefs"]] == ["one-gateway"]
        (rule,) = spec["rules"]
        assert rule["matches"][0]["path"]["value"] == f"/{release}/v1"
        assert [backend["name"] for backend in rule["backendRefs"]] == [f"{release}-pool"]


def test_releases_of_two_namespaces_share_a_gateway_of_a_third(control_plane: ControlPlane) -> None:
    """Of one name: their EnvoyFilters lie beside the Gateway, and must not meet there."""
    values = "frontDoor.to=none,llmd.proxy.gateway.create=false,llmd.proxy.gateway.parentRefs[0].name=shared"
    with (
        control_plane.namespace({}) as gateways,
        control_plane.namespace({}) as one,
        control_plane.namespace({}) as two,
    ):
        where = f"{values},llmd.proxy.gateway.parentRefs[0].namespace={gateways}"
        for namespace in (one, two):
            release = ("demo", STACK, *LLMD, *OVERLAYS["istio"], "--set", where, "--namespace", namespace)
            control_plane.helm("install", *release)
        assert len(control_plane.get("envoyfilters", "-n", gateways)) == 2
        control_plane.helm("uninstall", "demo", "--namespace", one)
        (left,) = control_plane.get("envoyfilters", "-n", gateways)
        assert left["metadata"]["annotations"]["meta.helm.sh/release-namespace"] == two
        control_plane.helm("uninstall", "demo", "--namespace", two)


@pytest.mark.parametrize("name", OVERLAYS)
@pytest.mark.parametrize("length", [1, 40, 46, 47, 48, 53])
def test_a_release_may_have_any_name(control_plane: ControlPlane, name: str, length: int) -> None:
    """Two in a namespace that differ in the last letter only. Istio's Service is named by Gateway and class."""
    names = ("a" * (length - 1) + "x", "a" * (length - 1) + "y")
    with control_plane.namespace({}) as namespace:
        for release in names:
            values = (STACK, *LLMD, *OVERLAYS[name], "--namespace", namespace)
            control_plane.helm("install", release, *values)
        made = control_plane.get("gateways.gateway.networking.k8s.io", "-n", namespace)
        assert len({gateway["metadata"]["name"] for gateway in made}) == 2
        assert all(len(f"{gateway['metadata']['name']}-{name}") <= 63 for gateway in made)
        for release in names:
            control_plane.helm("uninstall", release, "--namespace", namespace)
