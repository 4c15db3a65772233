"""A precise prefix index: what engines publish and what the picker hears agree, whatever the values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.charts.containers import engine
from tests.charts.test_llmd import LLMD, callers, config, layer, refused, vllm

if TYPE_CHECKING:
    from tests.conftest import Objects, Render

OVERLAY = "values/overlays/precise-prefix.yaml"
ROLES = ("prefill", "decode")
PRODUCER = "precise-prefix-cache-producer"


def precise(**values: Any) -> dict[str, Any]:
    return layer(endpointPicker={"prefixCache": {"type": "precise", **values}})


def plugins(objects: Objects) -> dict[str, Any]:
    """Parameters of the picker's plugins by type."""
    return {plugin["type"]: plugin.get("parameters") for plugin in config(objects)["plugins"]}


def flags(objects: Objects, role: str) -> dict[str, str]:
    given = [item for item in engine(objects, f"demo-llmd-{role}")["args"] if item.startswith("--")]
    return {flag: value for flag, _, value in (item.partition("=") for item in given)}


def events(objects: Objects, role: str) -> Any:
    return json.loads(flags(objects, role)["--kv-events-config"])


class TestEngines:
    def test_both_roles_publish_to_whom_the_picker_listens(self, render: Render) -> None:
        objects = render(LLMD, OVERLAY, values=layer(prefill={"port": 9000}))
        for role in ROLES:
            assert events(objects, role) == {
                "enable_kv_cache_events": True,
                "publisher": "zmq",
                "endpoint": "tcp://*:5557",
                # The picker knows an engine by the port of the pool, on decode that of the sidecar.
                "topic": "kv@$(POD_IP):9000@Qwen/Qwen3-8B",
            }
        assert plugins(objects)[PRODUCER]["kvEventsConfig"] == {
            "topicFilter": "kv@",
            "discoverPods": True,
            "podDiscoveryConfig": {"socketPort": 5557},
        }

    def test_the_port_is_one_for_all(self, render: Render) -> None:
        objects = render(LLMD, values=precise(eventsPort=6000))
        for role in ROLES:
            assert events(objects, role)["endpoint"] == "tcp://*:6000"
            assert {"name": "kv-events", "containerPort": 6000} in engine(objects, f"demo-llmd-{role}")[
                "ports"
            ]
            assert callers(objects, f"demo-llmd-{role}", "kv-events") == ["picker"]
        assert plugins(objects)[PRODUCER]["kvEventsConfig"]["podDiscoveryConfig"] == {"socketPort": 6000}

    def test_the_name_is_the_one_that_requests_have(self, render: Render) -> None:
        model = {"name": "org/model", "servedNames": ["chat"]}
        objects = render(LLMD, OVERLAY, values=vllm(model=model))
        assert events(objects, "decode")["topic"] == "kv@$(POD_IP):8000@chat"
        assert plugins(objects)["token-producer"]["modelName"] == "chat"

    @pytest.mark.parametrize("spelling", ["block-size", "block_size"])
    def test_blocks_are_as_large_as_the_user_says(self, render: Render, spelling: str) -> None:
        objects = render(LLMD, OVERLAY, values=vllm(args={spelling: 128}))
        for role in ROLES:
            sizes = {flag: value for flag, value in flags(objects, role).items() if "size" in flag}
            assert sizes == {f"--{spelling}": "128"}
        assert plugins(objects)[PRODUCER]["tokenProcessorConfig"] == {"blockSize": 128}

    def test_or_64_tokens(self, render: Render) -> None:
        objects = render(LLMD, OVERLAY)
        assert {flags(objects, role)["--block-size"] for role in ROLES} == {"64"}
        assert plugins(objects)[PRODUCER]["tokenProcessorConfig"] == {"blockSize": 64}

    def test_without_it_they_publish_nothing(self, render: Render) -> None:
        objects = render(LLMD)
        for role in ROLES:
            assert not {"--kv-events-config", "--block-size"} & flags(objects, role).keys()
            assert [port["name"] for port in engine(objects, f"demo-llmd-{role}")["ports"]] == ["http"]
            assert callers(objects, f"demo-llmd-{role}", "kv-events") == []


class TestPicker:
    def test_scorers_read_the_precise_index_and_the_decider_the_other(self, render: Render) -> None:
        scorers = {"no-hit-lru-scorer": 1, "token-load-scorer": 1}
        values = layer(
            endpointPicker={
                "profiles": {"decode": {"scorers": scorers, "filters": ["prefix-cache-affinity-filter"]}}
            }
        )
        found = plugins(render(LLMD, OVERLAY, values=values))
        named = {"prefixMatchInfoProducerName": PRODUCER}
        readers = {type for type, given in found.items() if given == named}
        assert readers == {
            "prefix-cache-scorer",
            "no-hit-lru-scorer",
            "prefix-cache-affinity-filter",
            "inflight-load-producer",
        }
        assert found["approx-prefix-cache-producer"] == {
            "lruCapacityPerServer": 31250,
            "maxPrefixTokensToMatch": 131072,
        }
        assert found["prefix-based-pd-decider"] == {"nonCachedTokens": 256}

    def test_it_hears_of_engines_that_come_and_go(self, render: Render) -> None:
        source = {"pluginRef": "endpoint-notification-source", "extractors": [{"pluginRef": PRODUCER}]}
        assert config(render(LLMD, OVERLAY))["dataLayer"] == {"sources": [source]}
        assert "dataLayer" not in config(render(LLMD))

    def test_prompts_become_tokens_on_prefill(self, render: Render) -> None:
        objects = render(LLMD, OVERLAY, values=layer(prefill={"port": 9000}))
        assert plugins(objects)["token-producer"] == {
            "modelName": "Qwen/Qwen3-8B",
            "vllm": {"url": "http://demo-llmd-prefill.default.svc:9000"},
        }
        assert "picker" in callers(objects, "demo-llmd-prefill", "http")

    def test_or_elsewhere(self, render: Render) -> None:
        elsewhere = precise(tokenizerUrl="http://render.models.svc:8000")
        found = plugins(render(LLMD, values={**elsewhere, **vllm(auth={"apiKeySecret": {"name": "key"}})}))
        assert found["token-producer"]["vllm"] == {"url": "http://render.models.svc:8000"}

    def test_its_last_choice_may_count_before_events_tell(self, render: Render) -> None:
        assert plugins(render(LLMD, OVERLAY))[PRODUCER]["speculativeIndexing"] is True
        assert (
            plugins(render(LLMD, values=precise(speculative=False)))[PRODUCER]["speculativeIndexing"] is False
        )

    def test_of_several_one_leads(self, render: Render) -> None:
        objects = render(LLMD, OVERLAY, values=layer(endpointPicker={"replicas": 2}))
        (container,) = objects.get("Deployment/demo-picker")["spec"]["template"]["spec"]["containers"]
        assert "--ha-enable-leader-election=true" in container["args"]

    def test_the_release_before_has_it_too(self, render: Render) -> None:
        objects = render(LLMD, OVERLAY, values=vllm(llmd={"version": "0.9.0"}))
        assert PRODUCER in plugins(objects)


TYPE = "llmd.endpointPicker.prefixCache.type"
TOKENIZER = "llmd.endpointPicker.prefixCache.tokenizerUrl"
OLD = {"image": {"repository": "registry.example.com/picker"}, "prefixCache": {"type": "precise"}}
REFUSED = {
    "a release before it": (
        {**vllm(llmd={"version": "0.8.0"}), **layer(endpointPicker=OLD)},
        f"{TYPE}: precise, but llm-d 0.8.0 has no precise index of this form (0.9.0 has); set approximate, or a newer"
        " global.vllm.llmd.version",
    ),
    "more names than the topic has": (
        vllm(model={"servedNames": ["chat", "code"]}),
        "global.vllm.model.servedNames: 2 names, but a precise index knows the model by the first alone; leave one, and"
        " map others to it by llmd.inferencePool.rewrites",
    ),
    "a name that parts the topic": (
        vllm(model={"servedNames": ["chat@v2"]}),
        "global.vllm.model.servedNames: the name chat@v2 has an @, which parts the topic of KV events; set another",
    ),
    "ranks that nobody hears": (
        layer(decode={"parallelism": {"data": 2}}),
        f"llmd.decode.parallelism.data: with a precise index the picker hears one rank of a pod; set 1, or {TYPE} to"
        " approximate",
    ),
    "no prefix caching": (
        vllm(args={"enable-prefix-caching": False}),
        f"global.vllm.args.enable-prefix-caching: without prefix caching there are no KV events; take it out, or set {TYPE}"
        " to approximate",
    ),
    "nor by its other spelling": (
        layer(decode={"args": {"no_enable_prefix_caching": True}}),
        "llmd.decode.args.no_enable_prefix_caching: without prefix caching there are no KV events; take it out, or set"
        f" {TYPE} to approximate",
    ),
    "engines that do not render": (
        vllm(version="0.17.1"),
        f"{TOKENIZER}: empty, but vLLM 0.17.1 does not render prompts into tokens (0.18.0 does); set a server that does,"
        " or a newer global.vllm.version",
    ),
    "engines that ask for a key": (
        vllm(auth={"apiKeySecret": {"name": "key"}}),
        f"{TOKENIZER}: empty, but the engines want an API key, which the picker does not send; set a server without one,"
        " such as `vllm launch render`",
    ),
    "prefill that may be gone": (
        layer(prefill={"autoscaling": {"type": "keda", "minReplicas": 0, "metric": "request_running"}}),
        f"{TOKENIZER}: empty, but prefill may scale to 0, and prompts are tokenized there; set a server of its own",
    ),
    "the flag by hand": (
        vllm(args={"kv-events-config": {"enable_kv_cache_events": True}}),
        f"global.vllm.args.kv-events-config: set {TYPE} instead, which renders this flag",
    ),
    "a port that NIXL has": (
        layer(endpointPicker={"prefixCache": {"eventsPort": 5600}}),
        "global.vllm.kvTransfer.nixl.sideChannelPort: the ports 5600 to 5600 meet 5600 of the port kv-events; choose others",
    ),
    "a port that requests have": (
        layer(endpointPicker={"prefixCache": {"eventsPort": 8200}}),
        "llmd.endpointPicker.prefixCache.eventsPort: 8200 is the port of llmd.decode; set another, such as 5557",
    ),
}


def joined(left: Any, right: Any) -> Any:
    """Values over values, as Helm merges them."""
    if isinstance(left, dict) and isinstance(right, dict):
        return {**left, **{key: joined(left.get(key), value) for key, value in right.items()}}
    return right


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_leave_the_index_empty_is_refused(render: Render, name: str) -> None:
    values, message = REFUSED[name]
    assert refused(render, joined(precise(), values)) == [message]
