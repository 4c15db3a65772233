"""The objects around the engine pod: names, labels, Services, policies, scaling, monitors, the test, the notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.charts.containers import argv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Objects, Render

PHASE1 = "values/phase1.yaml"
SELECTOR = {
    "app.kubernetes.io/name": "vllm-base",
    "app.kubernetes.io/instance": "demo",
    "app.kubernetes.io/component": "server",
}


def vllm(**values: Any) -> dict[str, Any]:
    return {"global": {"vllm": values}}


def base(**values: Any) -> dict[str, Any]:
    return {"base": values}


def door(**values: Any) -> dict[str, Any]:
    return {"frontDoor": values}


def test_phase_1_is_these_objects(render: Render) -> None:
    assert sorted(render(PHASE1).ids) == [
        "Deployment/demo-server",
        "NetworkPolicy/demo-server",
        "Pod/demo-test",
        "PodDisruptionBudget/demo-server",
        "Service/demo-front-door",
        "Service/demo-server",
        "ServiceAccount/demo-server",
    ]


def selectors(objects: Objects) -> dict[str, Any]:
    """Every selector of pods in a release."""
    found = {}
    for name, document in objects.by_id.items():
        spec = document.get("spec", {})
        selector = spec.get("selector", spec.get("podSelector"))
        if selector:
            found[name] = selector.get("matchLabels", selector)
    return found


class TestLabels:
    def test_selectors_are_name_instance_and_component_and_nothing_else(self, render: Render) -> None:
        values = vllm(
            labels={"team": "search", "app.kubernetes.io/name": "mine"}, monitoring={"kind": "podMonitor"}
        )
        objects = render(
            PHASE1, values=values | base(labels={"tier": "x", "app.kubernetes.io/component": "mine"})
        )
        assert set(selectors(objects)) == {
            "Deployment/demo-server",
            "NetworkPolicy/demo-server",
            "PodDisruptionBudget/demo-server",
            "PodMonitor/demo-server",
            "Service/demo-front-door",
            "Service/demo-server",
        }
        assert [found for found in selectors(objects).values() if found != SELECTOR] == []
        pod_labels = objects.get("Deployment/demo-server")["spec"]["template"]["metadata"]["labels"]
        assert SELECTOR.items() <= pod_labels.items()
        assert {"team": "search", "tier": "x"}.items() <= pod_labels.items()

    def test_a_chart_release_alone_does_not_restart_engines(self, render: Render) -> None:
        template = render(PHASE1).get("Deployment/demo-server")["spec"]["template"]
        assert "helm.sh/chart" not in template["metadata"]["labels"]
        assert "helm.sh/chart" in render(PHASE1).get("Deployment/demo-server")["metadata"]["labels"]

    def test_labels_and_annotations_reach_every_object(self, render: Render) -> None:
        for document in render(PHASE1, values=vllm(labels={"l": "1"}, annotations={"a": "2"})).by_id.values():
            assert document["metadata"]["labels"]["l"] == "1"
            assert document["metadata"]["annotations"]["a"] == "2"


class TestNames:
    def test_a_long_name_is_cut_and_stays_unique(self, render: Render) -> None:
        ours = sorted(render(PHASE1, values=vllm(nameOverride="a" * 53)).ids)
        theirs = sorted(render(PHASE1, values=vllm(nameOverride="a" * 52 + "b")).ids)
        assert not set(ours) & set(theirs)
        assert all(len(name.split("/")[1]) <= 63 for name in ours + theirs)

    def test_no_service_is_called_vllm(self, render: Render) -> None:
        """Kubernetes would put VLLM_PORT into every pod of the namespace, and vLLM would die of it."""
        services = [
            name for name in render(PHASE1, values=vllm(nameOverride="vllm")).ids if "Service/" in name
        ]
        assert services == ["Service/vllm-server", "Service/vllm-front-door"]


def strings(value: Any, keys: tuple[str, ...]) -> Iterator[Any]:
    """The values of these keys, wherever they are."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if key in keys:
            yield item
        elif isinstance(item, dict | list):
            yield from strings(item, keys)


@pytest.mark.parametrize("name", ["on", "1", "1e3", "null"])
@pytest.mark.parametrize("phase", ["phase1", "phase2-nccl", "phase2-llmd"])
def test_names_that_yaml_would_read_as_something_else(render: Render, phase: str, name: str) -> None:
    """As `y` does for Helm, a release name that is a boolean, a number or null stays a string."""
    secrets = {"image": {"pullSecrets": [name]}, "auth": {"apiKeySecret": {"name": name, "key": name}}}
    values = {**vllm(**secrets), "pdNccl": {"router": {"clientAuth": "gateway"}}}
    objects = render(f"values/{phase}.yaml", values=values, release=(name, name))
    keys = ("app.kubernetes.io/instance", "namespace", "name", "key", "serviceAccountName")
    found = set(strings(objects.by_id, keys))
    assert name in found
    assert {type(one) for one in found} == {str}


class TestDeployment:
    def test_the_default_rollout_needs_no_spare_gpu(self, render: Render) -> None:
        spec = render(PHASE1).get("Deployment/demo-server")["spec"]
        assert spec["strategy"] == {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
        }
        assert spec["progressDeadlineSeconds"] == 1800 + 150 + 60

    def test_recreate(self, render: Render) -> None:
        values = base(rollout={"strategy": "Recreate", "maxUnavailable": 0})
        assert render(PHASE1, values=values).get("Deployment/demo-server")["spec"]["strategy"] == {
            "type": "Recreate"
        }

    def test_percentages(self, render: Render) -> None:
        values = base(
            rollout={"maxSurge": "25%", "maxUnavailable": "0%"}, disruption={"maxUnavailable": "50%"}
        )
        objects = render(PHASE1, values=values)
        strategy = objects.get("Deployment/demo-server")["spec"]["strategy"]
        assert strategy["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "0%"}
        assert objects.get("PodDisruptionBudget/demo-server")["spec"]["maxUnavailable"] == "50%"


class TestAutoscaling:
    @pytest.mark.parametrize("kind", ["hpa", "keda"])
    def test_who_owns_the_replicas(self, render: Render, kind: str) -> None:
        """A Deployment that states replicas would undo the autoscaler's work at every upgrade."""
        objects = render(PHASE1, values=base(replicas=2, autoscaling={"type": kind}))
        assert "replicas" not in objects.get("Deployment/demo-server")["spec"]
        scalers = [
            name for name in objects.ids if name.split("/")[0] in ("HorizontalPodAutoscaler", "ScaledObject")
        ]
        assert len(scalers) == 1
        assert render(PHASE1, values=base(replicas=2)).get("Deployment/demo-server")["spec"]["replicas"] == 2

    def test_hpa_on_a_vllm_metric(self, render: Render) -> None:
        scaling = {
            "type": "hpa",
            "metric": "kv_cache_usage_perc",
            "target": 0.8,
            "minReplicas": 2,
            "maxReplicas": 8,
        }
        spec = render(PHASE1, values=base(autoscaling=scaling)).get("HorizontalPodAutoscaler/demo-server")[
            "spec"
        ]
        assert spec["scaleTargetRef"] == {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "demo-server",
        }
        assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 8)
        assert spec["metrics"][0]["pods"] == {
            "metric": {"name": "vllm_kv_cache_usage_perc"},
            "target": {"type": "AverageValue", "averageValue": "0.8"},
        }

    def test_keda_asks_prometheus_for_this_role_only(self, render: Render) -> None:
        scaling = {"type": "keda", "minReplicas": 0, "keda": {"authentication": "prometheus"}}
        spec = render(PHASE1, values=base(autoscaling=scaling)).get("ScaledObject/demo-server")["spec"]
        (trigger,) = spec["triggers"]
        assert trigger["metadata"]["query"] == (
            'sum(vllm:num_requests_waiting{namespace="default",pod=~"demo-server-[a-z0-9]+-[a-z0-9]+"})'
        )
        assert trigger["authenticationRef"] == {"name": "prometheus"}
        assert spec["minReplicaCount"] == 0


class TestNetworkPolicy:
    def test_only_the_http_port_is_open(self, render: Render) -> None:
        spec = render(PHASE1).get("NetworkPolicy/demo-server")["spec"]
        assert spec["policyTypes"] == ["Ingress"]
        assert spec["ingress"] == [{"ports": [{"port": "http", "protocol": "TCP"}]}]

    def test_clients_and_a_closed_way_out(self, render: Render) -> None:
        peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "apps"}}}
        rule = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}
        policy = {"clients": [peer], "egress": "dns", "extraEgress": [rule]}
        spec = render(PHASE1, values=vllm(networkPolicy=policy)).get("NetworkPolicy/demo-server")["spec"]
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        assert spec["ingress"][0]["from"] == [peer]
        assert spec["egress"] == [
            {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]},
            rule,
        ]

    def test_off(self, render: Render) -> None:
        assert (
            "NetworkPolicy/demo-server"
            not in render(PHASE1, values=vllm(networkPolicy={"enabled": False})).ids
        )


class TestFrontDoor:
    def test_it_leads_to_the_pods_of_its_layer(self, render: Render) -> None:
        spec = render(PHASE1).get("Service/demo-front-door")["spec"]
        assert spec == {
            "type": "ClusterIP",
            "selector": SELECTOR,
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        }

    def test_load_balancer(self, render: Render) -> None:
        values = door(
            type="LoadBalancer",
            port=8080,
            nodePort=30080,
            loadBalancerClass="example.com/lb",
            loadBalancerSourceRanges=["10.0.0.0/8"],
            annotations={"a": "b"},
        )
        service = render(PHASE1, values=values).get("Service/demo-front-door")
        assert service["metadata"]["annotations"] == {"a": "b"}
        assert service["spec"]["ports"][0]["nodePort"] == 30080
        assert service["spec"]["loadBalancerClass"] == "example.com/lb"
        assert service["spec"]["loadBalancerSourceRanges"] == ["10.0.0.0/8"]

    def test_ingress(self, render: Render) -> None:
        ingress = {"enabled": True, "className": "nginx", "host": "chat.example.com", "tlsSecretName": "t"}
        spec = render(PHASE1, values=door(ingress=ingress)).get("Ingress/demo-front-door")["spec"]
        assert spec["tls"] == [{"secretName": "t", "hosts": ["chat.example.com"]}]
        (rule,) = spec["rules"]
        (path,) = rule["http"]["paths"]
        assert (rule["host"], path["path"]) == ("chat.example.com", "/v1")
        assert path["backend"] == {"service": {"name": "demo-front-door", "port": {"name": "http"}}}

    def test_http_route(self, render: Render) -> None:
        route = {
            "enabled": True,
            "gateways": [{"name": "public", "namespace": "gateways"}],
            "hostnames": ["a.example"],
        }
        spec = render(PHASE1, values=door(httpRoute=route, port=81)).get("HTTPRoute/demo-front-door")["spec"]
        assert spec["parentRefs"] == [{"name": "public", "namespace": "gateways"}]
        assert spec["rules"][0]["backendRefs"] == [{"name": "demo-front-door", "port": 81}]
        assert spec["rules"][0]["timeouts"] == {"request": "0s"}

    def test_a_route_without_a_gateway_is_refused(self, render: Render) -> None:
        assert "/frontDoor/httpRoute/gateways" in render.error(
            PHASE1, values=door(httpRoute={"enabled": True})
        )


class TestMonitoring:
    @pytest.mark.parametrize(
        ("kind", "object_kind", "field"),
        [
            ("podMonitor", "PodMonitor", "podMetricsEndpoints"),
            ("serviceMonitor", "ServiceMonitor", "endpoints"),
        ],
    )
    def test_one_monitor_of_the_kind_asked_for(
        self, render: Render, kind: str, object_kind: str, field: str
    ) -> None:
        objects = render(
            PHASE1, values=vllm(monitoring={"kind": kind, "interval": "5s", "labels": {"release": "p"}})
        )
        monitor = objects.get(f"{object_kind}/demo-server")
        assert monitor["metadata"]["labels"]["release"] == "p"
        assert monitor["spec"][field] == [{"port": "http", "path": "/metrics", "interval": "5s"}]
        assert len([name for name in objects.ids if "Monitor" in name]) == 1


class TestHelmTest:
    def test_it_is_a_hook_in_the_engine_image(self, render: Render) -> None:
        objects = render(PHASE1, values=vllm(auth={"apiKeySecret": {"name": "api", "key": "k"}}))
        pod = objects.get("Pod/demo-test")
        assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
        (container,) = pod["spec"]["containers"]
        assert container["image"] == "vllm/vllm-openai:v0.33.0"
        assert container["env"] == [
            {"name": "VLLM_TEST_URL", "value": "http://demo-front-door:80"},
            {"name": "VLLM_TEST_MODEL", "value": "Qwen/Qwen3-8B"},
            {"name": "VLLM_TEST_TIMEOUT", "value": "120"},
            {"name": "VLLM_TEST_API_KEY", "valueFrom": {"secretKeyRef": {"name": "api", "key": "k"}}},
        ]
        assert not set(SELECTOR.items()) <= set(pod["metadata"]["labels"].items())

    def test_it_can_be_left_out(self, render: Render) -> None:
        assert "Pod/demo-test" not in render(PHASE1, values=vllm(test={"enabled": False})).ids

    def test_a_chart_alone_tests_its_own_service(self, render: Render) -> None:
        pod = render(chart="charts/vllm-base").get("Pod/demo-test")
        assert pod["spec"]["containers"][0]["env"][0]["value"] == "http://demo-server:8000"


def test_notes_name_the_next_commands(render: Render) -> None:
    notes = render(PHASE1, values=vllm(auth={"apiKeySecret": {"name": "api", "key": "a.b"}})).notes
    assert "helm test demo --namespace default --logs" in notes
    assert "port-forward service/demo-front-door 8000:80" in notes
    assert "get secret api --output jsonpath='{.data.a\\.b}'" in notes


def test_extra_objects_are_templates(render: Render) -> None:
    extra = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "{{ .Release.Name }}-x"},
        "data": {"a": "b"},
    }
    assert render(PHASE1, values={"extraObjects": [extra]}).get("ConfigMap/demo-x")["data"] == {"a": "b"}


def test_a_chart_alone_renders_the_same_engine(render: Render) -> None:
    assert argv(render(chart="charts/vllm-base")) == argv(render(values=base()))


@pytest.mark.parametrize("overlay", ["airgap", "cpu", "h100", "keda", "openshift", "two-gpus-tp2"])
def test_every_overlay_renders_on_phase_1(render: Render, overlay: str) -> None:
    objects = render(PHASE1, f"values/overlays/{overlay}.yaml")
    assert objects.warnings == ()
    assert objects.by_id != render(PHASE1).by_id
