"""What the KV rules weigh, and what they leave alone: near misses beside the examples of the rules."""

from __future__ import annotations

import json
from typing import Any

import pytest
from vllm_phases import rules
from vllm_phases.finding import Finding, Severity
from vllm_phases.model import Document, Release, relations

KUBE_VERSION = "1.35.0"


def connector(name: str = "NixlConnector", role: str = "kv_producer", **extra: Any) -> str:
    config = {"kv_connector": name, "kv_role": role, "kv_connector_extra_config": extra}
    return f"--kv-transfer-config={json.dumps(config)}"


def engine(
    name: str,
    *args: str,
    env: dict[str, str] | None = None,
    kind: str = "Deployment",
    image: str = "vllm/vllm-openai:v0.33.0",
    **pod: Any,
) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "vllm", "image": image, "args": ["m", *args]}
    container["env"] = [{"name": key, "value": value} for key, value in (env or {}).items()]
    spec = {"containers": [container], **pod}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": {"template": template}}


def release(*objects: dict[str, Any]) -> Release:
    return Release(tuple(Document("all.yaml", "kubernetes", tree) for tree in objects))


def found(rule: str, *objects: dict[str, Any]) -> list[Finding]:
    context = rules.Context(release(*objects), KUBE_VERSION)
    return list(rules.run(context, rules.Selection((rule,))))


def severities(rule: str, *objects: dict[str, Any]) -> list[Severity]:
    return [finding.severity for finding in found(rule, *objects)]


class TestWhatIsNotSure:
    def test_on_the_network_of_the_node_localhost_may_do(self) -> None:
        assert severities("KV040", engine("one-prefill", connector())) == [Severity.ERROR]
        assert severities("KV040", engine("one-prefill", connector(), hostNetwork=True)) == [Severity.WARNING]

    def test_an_operator_may_add_what_a_custom_resource_lacks(self) -> None:
        lacking = engine("one-prefill", kind="ModelServing")
        other = engine("one-decode", connector(role="kv_consumer"))
        assert severities("KV040", engine("one-prefill", connector(), kind="ModelServing")) == []
        assert severities("KV020", lacking, other) == [Severity.WARNING]
        assert severities("KV020", engine("one-prefill"), other) == [Severity.ERROR]

    def test_an_image_of_ones_own_may_bring_a_connector(self) -> None:
        ours = "registry.example.net/ours/vllm-openai:v0.33.0"
        assert severities("KV001", engine("one", connector("OurConnector"))) == [Severity.ERROR]
        assert severities("KV001", engine("one", connector("OurConnector"), image=ours)) == [Severity.WARNING]

    def test_the_connector_that_is_meant_begins_alike(self) -> None:
        (told,) = found("KV001", engine("one", connector("LMCacheConnector")))
        assert told.remediation == "Write LMCacheConnectorV1."

    def test_a_controller_that_merges_other_objects_adds_arguments(self) -> None:
        lacking = engine("one-prefill", kind="LLMInferenceService")
        assert severities("KV020", lacking, engine("one-decode", connector(role="kv_consumer"))) == []

    def test_a_plugin_may_bring_a_connector_into_an_image_of_another_name(self) -> None:
        given = connector("OursConnector")
        told = {"metadata": {"name": "own", "annotations": {"vllm-phases.dev/vllm-version": "0.33.0"}}}
        own = {**engine("own", given, image="registry.example.net/vllm-openai-ours:1"), **told}
        assert severities("KV001", own) == [Severity.WARNING]
        assert severities("KV001", engine("one", given)) == [Severity.ERROR]

    def test_a_connector_of_an_own_module_is_not_judged(self) -> None:
        config = {"kv_connector": "NixlConnector", "kv_role": "kv_both", "kv_connector_module_path": "our.kv"}
        own = engine("one-prefill", f"--kv-transfer-config={json.dumps(config)}")
        assert (
            found(
                "KV",
                own,
                engine("one-decode", connector("MooncakeConnector", "kv_consumer", mooncake_protocol="tcp")),
            )
            == []
        )

    def test_auto_may_be_what_the_other_side_names(self) -> None:
        prefill = engine("one-prefill", "--dtype=bfloat16", connector())
        decode = engine("one-decode", connector(role="kv_consumer"))
        assert severities("KV024", prefill, decode) == [Severity.WARNING]

    def test_a_handshake_that_is_told_not_to_compare(self) -> None:
        prefill = engine(
            "one-prefill", connector(enforce_handshake_compat=False), image="vllm/vllm-openai:v0.32.0"
        )
        decode = engine("one-decode", connector(role="kv_consumer", enforce_handshake_compat=False))
        assert severities("KV022", prefill, decode) == [Severity.WARNING]


class TestPorts:
    def test_ranks_of_one_pod_each_have_a_port(self) -> None:
        both = [
            {"name": f"rank{rank}", "image": "vllm/vllm-openai:v0.33.0",
             "args": ["m", f"--port={8000 + rank}", f"--data-parallel-rank={rank}", connector()]}
            for rank in (0, 1)
        ]  # fmt: skip
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": both}}
        assert found("KV031", pod) == []
        both[1]["args"] = ["m", "--port=8001", connector()]
        assert [finding.message for finding in found("KV031", pod)] == [
            "NIXL's side channel listens on port 5600, which NIXL's side channel of the engine beside it has"
        ]

    def test_events_of_one_rank_may_lie_below_the_side_channel(self) -> None:
        events = json.dumps({"enable_kv_cache_events": True, "endpoint": "tcp://*:5599"})
        one = engine("one", connector(), f"--kv-events-config={events}")
        two = engine("two", connector(), "--data-parallel-size=2", f"--kv-events-config={events}")
        assert severities("KV031", one) == []
        assert severities("KV031", two) == [Severity.ERROR]


class TestPairs:
    def test_a_tier_is_no_way_to_the_other_side(self) -> None:
        prefill = engine("one-prefill", connector())
        decode = engine("one-decode", connector("OffloadingConnector", "kv_both", cpu_bytes_to_use=1))
        assert [finding.message for finding in found("KV021", prefill, decode)] == [
            "prefill has NixlConnector and decode has OffloadingConnector, which cannot talk"
        ]
        assert found("KV021", engine("a-prefill", connector("LMCacheConnectorV1")), decode) == []

    @pytest.mark.parametrize(("prefill", "decode", "errors"), [(4, 2, 0), (2, 4, 0), (3, 2, 1), (1, 8, 0)])
    def test_tensor_parallel_sizes_divide(self, prefill: int, decode: int, errors: int) -> None:
        objects = [
            engine("one-prefill", f"-tp={prefill}", connector()),
            engine("one-decode", f"-tp={decode}", connector(role="kv_consumer")),
        ]
        assert severities("KV026", *objects) == [Severity.ERROR] * errors

    def test_a_large_group_is_compared_with_its_first_and_still_shows_who_differs(self) -> None:
        def group(count: int) -> list[dict[str, Any]]:
            roles = {"prefill": connector(), "decode": connector(role="kv_consumer")}
            objects = [
                {**engine(f"{role}-{number}", given), "metadata": {"name": f"one-{role}", "uid": str(number)}}
                for role, given in roles.items()
                for number in range(count)
            ]
            objects[-1]["spec"]["template"]["spec"]["containers"][0]["args"][0] = "another"
            return objects

        assert len(list(relations.pairs(release(*group(8))))) == 64
        assert len(list(relations.pairs(release(*group(40))))) < 100
        assert {finding.message for finding in found("KV023", *group(40))} == {
            "prefill serves m and decode serves another"
        }


class TestRouters:
    def router(self, *args: str) -> dict[str, Any]:
        container = {"name": "router", "image": "vllm/vllm-router:v0.1.17", "args": ["--host=0.0.0.0", *args]}
        meta = {"name": "router"}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}

    def test_discovers_by_label(self) -> None:
        given = connector("MooncakeConnector", mooncake_protocol="tcp")
        prefill = engine("prefill", given, env={"VLLM_MOONCAKE_BOOTSTRAP_PORT": "9100"})
        prefill["spec"]["template"]["metadata"]["annotations"] = {"vllm.ai/bootstrap-port": "8998"}
        discovery = ("--vllm-pd-disaggregation", "--service-discovery", "--service-discovery-port=8000")
        router = self.router(*discovery, "--prefill-selector", "app=prefill", "--kv-connector=mooncake")
        assert [finding.message for finding in found("KV09", prefill, router)] == [
            "vllm.ai/bootstrap-port is 8998, but the bootstrap server listens on 9100"
        ]

    def test_nothing_is_said_of_engines_that_are_not_here(self) -> None:
        router = self.router(
            "--vllm-pd-disaggregation", "--prefill", "http://p:80", "--decode", "http://d:80"
        )
        assert found("KV", router) == []
