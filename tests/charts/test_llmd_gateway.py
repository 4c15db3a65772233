"""A Gateway in the proxy's place: the route, who may reach what, what clients may not send, and the front door."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.charts.test_llmd import LLMD, config, labels, picker, refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.conftest import Objects, Render

HEADERS = [
    "x-gateway-destination-endpoint",
    "x-prefiller-host-port",
    "x-encoder-hosts-ports",
    "x-data-parallel-host-port",
    "x-kv-cache-source-host-port",
]
OVERLAYS = {name: f"values/overlays/gateway-{name}.yaml" for name in ("istio", "agentgateway")}
LABEL = "gateway.networking.k8s.io/gateway-name"
SHARED = {"name": "shared", "namespace": "gateways"}


def gateway(llmd: Mapping[str, Any] | None = None, **values: Any) -> dict[str, Any]:
    """Values of a release behind a Gateway."""
    proxy = {"type": "gateway", "gateway": values}
    return {"llmd": {"inferencePool": {"enabled": True}, "proxy": proxy, **(llmd or {})}}


def behind_shared(**values: Any) -> dict[str, Any]:
    """Behind a Gateway of another namespace, without a front door."""
    return {**gateway(parentRefs=[SHARED], **values), "frontDoor": {"to": "none"}}


def route(objects: Objects) -> Any:
    return objects.get("HTTPRoute/demo-gateway")["spec"]


def rule(objects: Objects) -> Any:
    (found,) = route(objects)["rules"]
    return found


def of_kind(objects: Objects, kind: str) -> list[Any]:
    return [document for document in objects.by_id.values() if document["kind"] == kind]


def peers(objects: Objects, policy: str, port: str | int) -> list[Any]:
    rules = objects.get(f"NetworkPolicy/{policy}")["spec"]["ingress"]
    return [
        peer
        for each in rules
        if port in [item["port"] for item in each.get("ports", ())]
        for peer in each["from"]
    ]


def asked(objects: Objects) -> dict[str, str]:
    """What `helm test` is told of the door."""
    (container,) = objects.get("Pod/demo-test")["spec"]["containers"]
    wanted = ("VLLM_TEST_URL", "VLLM_TEST_SERVICE", "VLLM_TEST_HEADERS")
    return {each["name"]: each["value"] for each in container["env"] if each["name"] in wanted}


class TestRoute:
    @pytest.mark.parametrize("name", OVERLAYS)
    def test_it_leads_from_the_gateway_to_the_pool(self, render: Render, name: str) -> None:
        objects = render(LLMD, OVERLAYS[name])
        assert route(objects)["parentRefs"] == [{"name": "demo-gateway"}]
        assert rule(objects)["backendRefs"] == [
            {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "demo-pool"}
        ]
        assert rule(objects)["matches"] == [{"path": {"type": "PathPrefix", "value": "/v1"}}]
        assert objects.get("Gateway/demo-gateway")["spec"] == {
            "gatewayClassName": name,
            "listeners": [
                {
                    "name": "http",
                    "port": 80,
                    "protocol": "HTTP",
                    "allowedRoutes": {"namespaces": {"from": "Same"}},
                }
            ],
        }

    def test_no_envoy_is_left(self, render: Render) -> None:
        values = gateway(create=True)
        values["llmd"]["proxy"]["autoscaling"] = {"enabled": True}
        values["global"] = {"vllm": {"monitoring": {"kind": "podMonitor"}}}
        assert [name for name in render(LLMD, values=values).ids if name.endswith("-proxy")] == []

    def test_a_long_answer_is_not_cut(self, render: Render) -> None:
        values = gateway(create=True)
        values["llmd"]["proxy"]["requestTimeoutSeconds"] = 99999
        assert rule(render(LLMD, values=values))["timeouts"] == {
            "request": "99999s",
            "backendRequest": "99999s",
        }

    def test_models_differ_by_host_path_and_header(self, render: Render) -> None:
        model = {"name": "x-gateway-model-name", "value": "Qwen/Qwen3-8B"}
        values = behind_shared(
            route={"hostnames": ["models.example.com"], "prefix": "/qwen", "headers": [model]}
        )
        objects = render(LLMD, values=values)
        assert route(objects)["parentRefs"] == [SHARED]
        assert route(objects)["hostnames"] == ["models.example.com"]
        assert rule(objects)["matches"] == [
            {"path": {"type": "PathPrefix", "value": "/qwen/v1"}, "headers": [model]}
        ]
        rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/v1"}}
        assert rule(objects)["filters"] == [{"type": "URLRewrite", "urlRewrite": rewrite}]

    def test_a_listener_with_a_secret_ends_tls(self, render: Render) -> None:
        listeners = [{"name": "https", "port": 443, "hostname": "*.example.com", "tlsSecretName": "wildcard"}]
        objects = render(LLMD, values=gateway(create=True, listeners=listeners))
        (listener,) = objects.get("Gateway/demo-gateway")["spec"]["listeners"]
        assert (listener["protocol"], listener["hostname"]) == ("HTTPS", "*.example.com")
        assert listener["tls"] == {"mode": "Terminate", "certificateRefs": [{"name": "wildcard"}]}
        assert asked(objects) == {
            "VLLM_TEST_URL": "https://test.example.com:80",
            "VLLM_TEST_SERVICE": "demo-front-door",
        }

    def test_the_name_leaves_room_for_the_class(self, render: Render) -> None:
        """Istio calls its Service by both."""
        values = gateway(create=True, className="istio-for-models-of-this-team")
        values["global"] = {"vllm": {"nameOverride": "a" * 53}}
        (made,) = of_kind(render(LLMD, values=values), "Gateway")
        assert len(f"{made['metadata']['name']}-istio-for-models-of-this-team") == 63


class TestPickerIsAskedOverTls:
    @pytest.mark.parametrize("name", OVERLAYS)
    def test_it_serves_tls_on_a_port_that_is_http2(self, render: Render, name: str) -> None:
        """`https` would make Istio pass TLS through, without HTTP/2."""
        objects = render(LLMD, OVERLAYS[name])
        assert "--secure-serving=true" in picker(objects)["args"]
        (port,) = (p for p in objects.get("Service/demo-picker")["spec"]["ports"] if p["name"] == "grpc")
        assert port["appProtocol"] == "kubernetes.io/h2c"

    def test_istio_is_told_and_agentgateway_knows(self, render: Render) -> None:
        spec = render(LLMD, OVERLAYS["istio"]).get("DestinationRule/demo-picker")["spec"]
        assert spec == {
            "host": "demo-picker",
            "trafficPolicy": {"tls": {"mode": "SIMPLE", "insecureSkipVerify": True}},
        }
        assert of_kind(render(LLMD, OVERLAYS["agentgateway"]), "DestinationRule") == []


class TestNoClientMaySteer:
    def test_istio_takes_the_headers_with_envoys_first_filter(self, render: Render) -> None:
        """The very filter of the chart's own Envoy, through which tests/llmd sends forged headers."""
        (found,) = of_kind(render(LLMD, OVERLAYS["istio"]), "EnvoyFilter")
        (patch,) = found["spec"]["configPatches"]
        assert (patch["applyTo"], patch["match"]["context"]) == ("HTTP_FILTER", "GATEWAY")
        assert patch["patch"]["operation"] == "INSERT_FIRST"
        own = yaml.safe_load(render(LLMD).get("ConfigMap/demo-proxy")["data"]["envoy.yaml"])
        (chain,) = own["static_resources"]["listeners"][0]["filter_chains"]
        assert patch["patch"]["value"] == chain["filters"][0]["typed_config"]["http_filters"][0]
        mutations = patch["patch"]["value"]["typed_config"]["mutations"]["request_mutations"]
        assert [mutation["remove"] for mutation in mutations] == HEADERS

    def test_its_filter_lies_beside_each_gateway_once(self, render: Render) -> None:
        parents = [
            {**SHARED, "sectionName": "http"},
            {**SHARED, "sectionName": "https"},
            {"name": "own"},
        ]
        found = of_kind(render(LLMD, values=gateway(parentRefs=parents)), "EnvoyFilter")
        assert [(each["metadata"]["namespace"], each["spec"]["targetRefs"][0]["name"]) for each in found] == [
            ("gateways", "shared"),
            ("default", "own"),
        ]
        assert len({each["metadata"]["name"] for each in found}) == 2

    def test_agentgateways_routes_take_them_before_the_picker(self, render: Render) -> None:
        objects = render(LLMD, OVERLAYS["agentgateway"])
        assert rule(objects)["filters"] == [
            {"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": HEADERS}}
        ]
        assert of_kind(objects, "EnvoyFilter") == []

    def test_istios_routes_would_take_the_pickers_own(self, render: Render) -> None:
        assert "filters" not in rule(render(LLMD, OVERLAYS["istio"]))

    def test_of_another_the_user_must_know(self, render: Render) -> None:
        other: dict[str, Any] = {"implementation": "other", "parentRefs": [SHARED], "address": "10.0.0.1"}
        values = {**gateway(**other, clientHeadersRemoved=True), "frontDoor": {"to": "none"}}
        assert "filters" not in rule(render(LLMD, values=values))
        guarded = gateway({"routingSidecar": {"ssrfProtection": True}}, **other)
        assert rule(render(LLMD, values={**guarded, "frontDoor": {"to": "none"}}))


class TestNetworkPolicy:
    @pytest.mark.parametrize("name", OVERLAYS)
    def test_the_gateways_pods_are_let_in_and_no_others(self, render: Render, name: str) -> None:
        objects = render(LLMD, OVERLAYS[name])
        ours = {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
            "podSelector": {"matchLabels": {LABEL: "demo-gateway"}},
        }
        assert peers(objects, "demo-picker", "grpc") == [ours]
        for policy, port in (("demo-llmd-prefill", "http"), ("demo-llmd-decode", 8000)):
            first, *others = peers(objects, policy, port)
            assert first == ours
            assert "proxy" not in [
                peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for peer in others
            ]

    def test_of_another_the_namespace_is_let_in(self, render: Render) -> None:
        values = gateway(implementation="other", parentRefs=[SHARED], address="g", clientHeadersRemoved=True)
        objects = render(LLMD, values={**values, "frontDoor": {"to": "none"}})
        assert peers(objects, "demo-picker", "grpc") == [
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gateways"}}}
        ]

    def test_or_whom_the_user_names(self, render: Render) -> None:
        pods = [{"ipBlock": {"cidr": "10.8.0.0/16"}}]
        objects = render(LLMD, values=behind_shared(pods=pods))
        assert peers(objects, "demo-picker", "grpc") == pods
        assert peers(objects, "demo-llmd-decode", 8000)[0] == pods[0]


class TestFrontDoor:
    @pytest.mark.parametrize("name", OVERLAYS)
    def test_it_leads_to_the_pods_of_the_gateway(self, render: Render, name: str) -> None:
        objects = render(LLMD, OVERLAYS[name])
        door = objects.get("Service/demo-front-door")["spec"]
        assert door["selector"] == {LABEL: "demo-gateway"}
        assert door["ports"] == [{"name": "http", "port": 80, "targetPort": 80}]
        assert asked(objects) == {"VLLM_TEST_URL": "http://demo-front-door:80"}

    def test_the_first_listener_without_tls_is_behind_it(self, render: Render) -> None:
        listeners = [
            {"name": "https", "port": 443, "tlsSecretName": "wildcard"},
            {"name": "http", "port": 8080},
        ]
        objects = render(LLMD, values=gateway(create=True, listeners=listeners))
        assert objects.get("Service/demo-front-door")["spec"]["ports"][0]["targetPort"] == 8080

    def test_it_leads_to_an_existing_gateway_of_the_namespace(self, render: Render) -> None:
        objects = render(LLMD, values=gateway(parentRefs=[SHARED, {"name": "own"}], port=8080))
        door = objects.get("Service/demo-front-door")["spec"]
        assert (door["selector"], door["ports"][0]["targetPort"]) == ({LABEL: "own"}, 8080)

    @pytest.mark.parametrize(
        ("values", "host"),
        [
            ({}, "shared-istio.gateways.svc"),
            ({"className": "istio-internal"}, "shared-istio-internal.gateways.svc"),
            ({"implementation": "agentgateway"}, "shared.gateways.svc"),
            ({"address": "models.example.com"}, "models.example.com"),
        ],
    )
    def test_without_one_the_gateway_itself_is_tested(
        self, render: Render, values: dict[str, Any], host: str
    ) -> None:
        objects = render(LLMD, values=behind_shared(**values))
        assert "Service/demo-front-door" not in objects.ids
        assert asked(objects) == {"VLLM_TEST_URL": f"http://{host}:80"}
        assert f"http://{host}:80/v1/completions" in objects.notes

    def test_the_test_asks_as_the_route_wants(self, render: Render) -> None:
        headers = [
            {"name": "x-gateway-model-name", "value": "qwen"},
            {"name": "x-tenant", "value": "a.*", "type": "RegularExpression"},
        ]
        objects = render(
            LLMD,
            values=behind_shared(
                route={"hostnames": ["*.example.com"], "prefix": "/qwen", "headers": headers}
            ),
        )
        assert asked(objects) == {
            "VLLM_TEST_URL": "http://test.example.com:80/qwen",
            "VLLM_TEST_SERVICE": "shared-istio.gateways.svc",
            "VLLM_TEST_HEADERS": '{"x-gateway-model-name":"qwen"}',
        }

    def test_the_chart_alone_tests_its_gateway(self, render: Render) -> None:
        values = gateway(create=True)["llmd"]
        objects = render(chart="charts/vllm-llmd", values=values)
        assert asked(objects) == {"VLLM_TEST_URL": "http://demo-gateway-istio.default.svc:80"}

    def test_nothing_else_changes(self, render: Render) -> None:
        plain, changed = render(LLMD), render(LLMD, OVERLAYS["istio"])
        assert config(plain) == config(changed)
        for role in ("demo-llmd-prefill", "demo-llmd-decode"):
            assert labels(plain, role) == labels(changed, role)


OTHER: dict[str, Any] = {"implementation": "other", "parentRefs": [SHARED]}
REFUSED = {
    "a pool is needed": (
        {"llmd": {"proxy": {"type": "gateway", "gateway": {"create": True}}}},
        "llmd.inferencePool.enabled: a Gateway routes to an InferencePool; set true, or llmd.proxy.type to envoy",
    ),
    "a Gateway is needed": (
        {**gateway(), "frontDoor": {"to": "base"}, "base": {"enabled": True}},
        "llmd.proxy.gateway.parentRefs: empty; name the Gateway that leads here, or set llmd.proxy.gateway.create to"
        " true",
    ),
    "either one or the other": (
        gateway(create=True, parentRefs=[SHARED]),
        "llmd.proxy.gateway.parentRefs: given although llmd.proxy.gateway.create makes a Gateway; set one of them",
    ),
    "who takes the headers": (
        {**gateway(**OTHER, address="g"), "frontDoor": {"to": "none"}},
        f"llmd.proxy.gateway.clientHeadersRemoved: false, and whoever sends {', '.join(HEADERS)} chooses where prompts"
        " go; have your Gateway take them from requests before it asks the picker and set true, or set"
        " llmd.routingSidecar.ssrfProtection to true with llmd.inferencePool.failureMode FailClose",
    ),
    "the sidecar's protection is not enough where the Gateway fails open": (
        {
            **gateway(
                {
                    "routingSidecar": {"ssrfProtection": True},
                    "inferencePool": {"enabled": True, "failureMode": "FailOpen"},
                },
                **OTHER,
                address="g",
            ),
            "frontDoor": {"to": "none"},
        },
        f"llmd.proxy.gateway.clientHeadersRemoved: false, and whoever sends {', '.join(HEADERS)} chooses where prompts"
        " go; have your Gateway take them from requests before it asks the picker and set true, or set"
        " llmd.routingSidecar.ssrfProtection to true with llmd.inferencePool.failureMode FailClose",
    ),
    "where another answers": (
        {**gateway(**OTHER, clientHeadersRemoved=True), "frontDoor": {"to": "none"}},
        "llmd.proxy.gateway.address: empty, and the Service of a Gateway of type other is not known; set the host at"
        " which pods reach it",
    ),
    "the class of another": (
        {
            **gateway(implementation="other", create=True, clientHeadersRemoved=True, address="g"),
            "frontDoor": {"to": "none"},
        },
        "llmd.proxy.gateway.className: empty, and the class of an implementation of type other is not known; set it",
    ),
    "a Service leads to no other namespace": (
        gateway(parentRefs=[SHARED]),
        "frontDoor.to: a Service cannot lead to the pods of this Gateway, which lie in another namespace; set none, and"
        " let clients speak to the Gateway",
    ),
    "nor to pods that are not known": (
        gateway(implementation="other", parentRefs=[{"name": "g"}], address="g", clientHeadersRemoved=True),
        "frontDoor.to: a Service cannot lead to the pods of this Gateway, which are not known; set none, and let clients"
        " speak to the Gateway",
    ),
    "no front door needs a Gateway": (
        {"frontDoor": {"to": "none"}},
        "frontDoor.to: none is for a Gateway, to which clients speak instead; set llmd.proxy.type to gateway, or"
        " frontDoor.to to llmd",
    ),
    "no Ingress before nothing": (
        {**gateway(parentRefs=[SHARED]), "frontDoor": {"to": "none", "ingress": {"enabled": True}}},
        "frontDoor.ingress.enabled: without a front door there is nothing behind it; set false",
    ),
    "one route, not two": (
        {
            **gateway(create=True),
            "frontDoor": {"httpRoute": {"enabled": True, "gateways": [{"name": "demo-gateway"}]}},
        },
        "frontDoor.httpRoute.enabled: llmd makes the route of its Gateway itself, from llmd.proxy.gateway.route; set"
        " false",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_refused(render: Render, name: str) -> None:
    values, message = REFUSED[name]
    assert refused(render, values) == [message]
