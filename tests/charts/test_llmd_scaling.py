"""Engines that KEDA scales on what the picker counts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.charts.test_llmd import LLMD, envoy, layer, refused, vllm

if TYPE_CHECKING:
    from tests.conftest import Objects, Render

QUEUE = "values/overlays/picker-queue.yaml"
PODS = '{namespace="default",pod=~"demo-picker-[a-z0-9]+-[a-z0-9]+"}'


def trigger(objects: Objects, role: str) -> Any:
    (found,) = objects.get(f"ScaledObject/demo-llmd-{role}")["spec"]["triggers"]
    return found["metadata"]


def keda(role: str, **values: Any) -> dict[str, Any]:
    return layer(**{role: {"autoscaling": {"type": "keda", **values}}})


def test_each_role_is_asked_for_of_this_release(render: Render) -> None:
    objects = render(LLMD, QUEUE)
    assert trigger(objects, "decode")["query"] == f"sum(llm_d_epp_flow_control_queue_size{PODS})"
    assert trigger(objects, "decode")["threshold"] == "4"
    assert trigger(objects, "prefill")["query"] == f"sum(llm_d_epp_request_running{PODS})"
    assert "replicas" not in objects.get("Deployment/demo-llmd-decode")["spec"]


def pod_name(deployment: str) -> str:
    """What an API server makes of the generated name of a ReplicaSet's pod."""
    return f"{deployment}-5d8f7c9b6d-"[:58] + "x7k2p"


@pytest.mark.parametrize("length", range(1, 54))
def test_the_query_finds_the_pods_of_any_release(render: Render, length: int) -> None:
    objects = render(LLMD, QUEUE, values=vllm(nameOverride="a" * length)).by_id.values()
    deployments = {
        item["metadata"]["labels"]["app.kubernetes.io/component"]: item["metadata"]["name"]
        for item in objects
        if item["kind"] == "Deployment"
    }
    queries = [
        item["spec"]["triggers"][0]["metadata"]["query"] for item in objects if item["kind"] == "ScaledObject"
    ]
    assert len(queries) == 2
    for query in queries:
        (pattern,) = re.findall('pod=~"([^"]+)"', query)
        found = {name for name, pods in deployments.items() if re.fullmatch(pattern, pod_name(pods))}
        assert found == {"picker"}


def test_the_oldest_release_has_other_names(render: Render) -> None:
    old = {
        **vllm(llmd={"version": "0.8.0"}),
        **layer(endpointPicker={"image": {"repository": "registry.example.com/picker"}}),
    }
    objects = render(LLMD, QUEUE, values=old)
    assert trigger(objects, "decode")["query"] == f"sum(inference_extension_flow_control_queue_size{PODS})"
    assert trigger(objects, "prefill")["query"] == f"sum(inference_objective_running_requests{PODS})"


def test_metrics_of_the_engines_are_as_before(render: Render) -> None:
    objects = render(LLMD, values=keda("decode", metric="num_requests_waiting"))
    assert trigger(objects, "decode")["query"] == (
        'sum(vllm:num_requests_waiting{namespace="default",pod=~"demo-llmd-decode-[a-z0-9]+-[a-z0-9]+"})'
    )


def test_the_proxy_does_not_wait_for_a_prefill_that_may_go(render: Render) -> None:
    def awaited(values: dict[str, Any]) -> set[str]:
        (chain,) = envoy(render(LLMD, values=values))["static_resources"]["listeners"][1]["filter_chains"]
        health = chain["filters"][0]["typed_config"]["http_filters"][0]["typed_config"]
        return set(health["cluster_min_healthy_percentages"])

    assert awaited(keda("prefill", minReplicas=0, metric="request_running")) == {"picker", "decode"}
    assert awaited(keda("prefill", minReplicas=1, metric="request_running")) == {
        "picker",
        "prefill",
        "decode",
    }


REFUSED = {
    "a count that nobody makes": (
        keda("decode", metric="flow_control_queue_size"),
        "llmd.decode.autoscaling.metric: flow_control_queue_size is counted only by the picker's flow control; set"
        " llmd.endpointPicker.flowControl.enabled to true, or another metric",
    ),
    "no decode engine": (
        keda("decode", minReplicas=0, metric="request_running"),
        "llmd.decode.autoscaling.minReplicas: 0, but the picker answers 429 while it knows prefill engines and no decode"
        " engine; set 1 or more",
    ),
    "a metric that goes with the last engine": (
        keda("prefill", minReplicas=0, metric="num_requests_waiting"),
        "llmd.prefill.autoscaling.minReplicas: 0, but num_requests_waiting comes from running engines, so none would ever"
        " start; set 1, or the metric request_running or flow_control_queue_size",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_never_scale_is_refused(render: Render, name: str) -> None:
    values, message = REFUSED[name]
    assert refused(render, values) == [message]


def test_an_adapter_has_no_metrics_of_the_picker(render: Render) -> None:
    values = layer(decode={"autoscaling": {"type": "hpa", "metric": "request_running"}})
    assert "metric" in render.error(LLMD, values=values)


def test_other_layers_have_no_picker(render: Render) -> None:
    values = {"base": {"autoscaling": {"type": "keda", "metric": "request_running"}}}
    assert "metric" in render.error("values/phase1.yaml", values=values)
