"""Phase 2, by llm-d: every part of the path derived from one place, and what cannot work refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.charts.containers import engine, pod

if TYPE_CHECKING:
    from tests.conftest import Objects, Render

LLMD = "values/phase2-llmd.yaml"
POOL = {"llm-d.ai/inference-serving": "true", "vllm-phases.dev/pool": "demo-pool"}


def vllm(**values: Any) -> dict[str, Any]:
    return {"global": {"vllm": values}}


def layer(**values: Any) -> dict[str, Any]:
    return {"llmd": values}


def sidecar(objects: Objects) -> Any:
    (found,) = pod(objects, "demo-llmd-decode")["initContainers"]
    return found


def picker(objects: Objects) -> Any:
    return pod(objects, "demo-picker")["containers"][0]


def config(objects: Objects) -> Any:
    """The picker's configuration."""
    return yaml.safe_load(objects.get("ConfigMap/demo-picker")["data"]["picker.yaml"])


def envoy(objects: Objects) -> Any:
    return yaml.safe_load(objects.get("ConfigMap/demo-proxy")["data"]["envoy.yaml"])


def labels(objects: Objects, deployment: str) -> dict[str, str]:
    found: dict[str, str] = objects.get(f"Deployment/{deployment}")["spec"]["template"]["metadata"]["labels"]
    return found


def refused(render: Render, values: dict[str, Any]) -> list[str]:
    heading, *messages = render.error(LLMD, values=values).strip().splitlines()
    assert heading == "These values cannot work:"
    return [message.removeprefix("- ") for message in messages]


def callers(objects: Objects, policy: str, port: str | int) -> list[str]:
    """The components that a NetworkPolicy lets in on a port."""
    rules = objects.get(f"NetworkPolicy/{policy}")["spec"]["ingress"]
    peers = [
        peer
        for rule in rules
        if port in [item["port"] for item in rule.get("ports", ())]
        for peer in rule["from"]
    ]
    return [peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for peer in peers]


class TestSidecar:
    def test_its_ports_and_protocol_are_derived(self, render: Render) -> None:
        objects = render(LLMD, values=layer(prefill={"port": 9000}, decode={"port": 9001}))
        assert sidecar(objects)["args"] == [
            "--kv-connector=nixlv2",
            "--model-server-port=9001",
            "--port=9000",
            "--secure-proxy=false",
        ]
        assert sidecar(objects)["ports"] == [{"name": "sidecar", "containerPort": 9000}]
        assert "--port=9001" in engine(objects, "demo-llmd-decode")["args"]
        assert "--port=9000" in engine(objects, "demo-llmd-prefill")["args"]

    def test_it_outlives_the_engine_and_is_not_probed(self, render: Render) -> None:
        objects = render(LLMD)
        assert sidecar(objects)["restartPolicy"] == "Always"
        assert [key for key in sidecar(objects) if key.endswith("Probe")] == []
        assert engine(objects, "demo-llmd-decode")["readinessProbe"]["httpGet"]["port"] == "http"
        assert "initContainers" not in pod(objects, "demo-llmd-prefill")

    def test_it_follows_the_users_own_init_containers(self, render: Render) -> None:
        fetch = {"name": "fetch", "image": "registry.example.com/fetch:v1"}
        objects = render(LLMD, values=layer(decode={"extraInitContainers": [fetch]}))
        assert [item["name"] for item in pod(objects, "demo-llmd-decode")["initContainers"]] == [
            "fetch",
            "routing-sidecar",
        ]

    def test_mooncake_is_another_protocol(self, render: Render) -> None:
        kv = {"connector": "mooncake", "mooncake": {"bootstrapPort": 8999}}
        args = sidecar(render(LLMD, values=vllm(kvTransfer=kv)))["args"]
        assert "--kv-connector=mooncake" in args
        assert "--mooncake-bootstrap-port=8999" in args

    def test_flags_and_images_are_those_of_the_release(self, render: Render) -> None:
        objects = render(LLMD, values=vllm(llmd={"version": "0.9.0"}))
        assert "--vllm-port=8200" in sidecar(objects)["args"]
        assert sidecar(objects)["image"] == "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.9.0"
        assert picker(objects)["image"] == "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.9.0"
        assert [item for item in picker(objects)["args"] if item.startswith("--drain-timeout")] == []

    def test_protection_reads_the_pool(self, render: Render) -> None:
        objects = render(
            LLMD, values=layer(routingSidecar={"ssrfProtection": True}, inferencePool={"enabled": True})
        )
        assert "--inference-pool=default/demo-pool" in sidecar(objects)["args"]
        assert pod(objects, "demo-llmd-decode")["automountServiceAccountToken"] is True
        assert objects.get("RoleBinding/demo-llmd-decode")["subjects"][0]["name"] == "demo-llmd-decode"
        assert pod(render(LLMD), "demo-llmd-decode")["automountServiceAccountToken"] is False

    def test_engines_keep_connections_longer_than_it_does(self, render: Render) -> None:
        keep = {"name": "VLLM_HTTP_TIMEOUT_KEEP_ALIVE", "value": "120"}
        assert all(keep in engine(render(LLMD), f"demo-llmd-{role}")["env"] for role in ("prefill", "decode"))


class TestPicker:
    def test_it_finds_the_engines_by_labels_that_nothing_else_has(self, render: Render) -> None:
        objects = render(LLMD)
        selector = ",".join(f"{key}={value}" for key, value in POOL.items())
        assert f"--endpoint-selector={selector}" in picker(objects)["args"]
        assert "--endpoint-target-ports=8000" in picker(objects)["args"]
        assert {
            name: (POOL.items() <= labels(objects, f"demo-{name}").items())
            for name in ("llmd-prefill", "llmd-decode", "picker", "proxy")
        } == {"llmd-prefill": True, "llmd-decode": True, "picker": False, "proxy": False}
        assert labels(objects, "demo-llmd-prefill")["llm-d.ai/role"] == "prefill"
        assert labels(objects, "demo-llmd-decode")["llm-d.ai/role"] == "decode"

    def test_labels_of_the_user_cannot_hide_an_engine(self, render: Render) -> None:
        objects = render(LLMD, values=layer(prefill={"labels": {"llm-d.ai/role": "both", "team": "a"}}))
        assert labels(objects, "demo-llmd-prefill")["llm-d.ai/role"] == "prefill"
        assert labels(objects, "demo-llmd-prefill")["team"] == "a"

    def test_the_pool_has_the_same_labels(self, render: Render) -> None:
        objects = render(LLMD, values=layer(inferencePool={"enabled": True}))
        pool = objects.get("InferencePool/demo-pool")["spec"]
        assert pool["selector"]["matchLabels"] == POOL
        assert pool["targetPorts"] == [{"number": 8000}]
        assert pool["endpointPickerRef"] == {
            "name": "demo-picker",
            "port": {"number": 9002},
            "failureMode": "FailClose",
        }
        assert "--pool-name=demo-pool" in picker(objects)["args"]
        assert not [item for item in picker(objects)["args"] if item.startswith("--endpoint-")]

    def test_it_may_read_what_it_watches(self, render: Render) -> None:
        def resources(values: dict[str, Any]) -> list[str]:
            rules = render(LLMD, values=layer(**values)).get("Role/demo-picker")["rules"]
            return [resource for rule in rules for resource in rule["resources"]]

        assert resources({}) == ["pods"]
        pool = ["pods", "inferencepools", "inferenceobjectives", "inferencemodelrewrites"]
        assert resources({"inferencePool": {"enabled": True}}) == pool
        assert resources({"endpointPicker": {"replicas": 2}}) == ["pods", "leases", "events"]

    def test_of_several_only_the_leader_is_ready(self, render: Render) -> None:
        one, two = render(LLMD), render(LLMD, values=layer(endpointPicker={"replicas": 2}))
        assert picker(one)["readinessProbe"]["grpc"]["service"] == "inference-extension"
        assert picker(two)["readinessProbe"]["grpc"]["service"] == "readiness"
        assert "--ha-enable-leader-election=false" in picker(one)["args"]
        assert "--ha-enable-leader-election=true" in picker(two)["args"]

    def test_a_prompt_goes_to_prefill_when_enough_of_it_is_new(self, render: Render) -> None:
        handler = {"deciders": {"prefill": "prefix-based-pd-decider"}}
        plugins = {plugin["type"]: plugin.get("parameters") for plugin in config(render(LLMD))["plugins"]}
        assert plugins["prefix-based-pd-decider"] == {"nonCachedTokens": 256}
        assert plugins["disagg-profile-handler"] == handler
        always = config(render(LLMD, values=layer(endpointPicker={"decider": {"type": "always"}})))
        assert {"type": "always-disagg-pd-decider"} in always["plugins"]

    def test_each_role_is_chosen_among_its_own(self, render: Render) -> None:
        profiles = {
            profile["name"]: profile["plugins"] for profile in config(render(LLMD))["schedulingProfiles"]
        }
        assert profiles["prefill"] == [
            {"pluginRef": "prefill-filter"},
            {"pluginRef": "prefix-cache-scorer", "weight": 2},
            {"pluginRef": "queue-scorer", "weight": 1},
            {"pluginRef": "max-score-picker"},
        ]
        assert profiles["decode"][0] == {"pluginRef": "decode-filter"}

    def test_scorers_merge_and_go(self, render: Render) -> None:
        scorers = {"prefix-cache-scorer": None, "kv-cache-utilization-scorer": 1.5}
        found = config(
            render(LLMD, values=layer(endpointPicker={"profiles": {"decode": {"scorers": scorers}}}))
        )
        (decode,) = (
            profile["plugins"] for profile in found["schedulingProfiles"] if profile["name"] == "decode"
        )
        assert decode[1:-1] == [
            {"pluginRef": "active-request-scorer", "weight": 1},
            {"pluginRef": "kv-cache-utilization-scorer", "weight": 1.5},
        ]

    def test_the_oldest_release_wants_another_configuration(self, render: Render) -> None:
        image = {"image": {"repository": "registry.example.com/picker"}}
        values = {**vllm(llmd={"version": "0.8.0"}), **layer(endpointPicker=image)}
        found = config(render(LLMD, values=values))
        assert found["apiVersion"] == "inference.networking.x-k8s.io/v1alpha1"
        assert "featureGates" not in found
        assert {"type": "disagg-headers-handler"} in found["plugins"]
        assert config(render(LLMD))["apiVersion"] == "llm-d.ai/v1alpha1"

    def test_a_changed_configuration_rolls_the_pod(self, render: Render) -> None:
        def checksums(**values: Any) -> list[str]:
            objects = render(LLMD, values=layer(**values))
            return [
                objects.get(f"Deployment/demo-{name}")["spec"]["template"]["metadata"]["annotations"][
                    "checksum/config"
                ]
                for name in ("picker", "proxy")
            ]

        before = checksums()
        picked = checksums(endpointPicker={"decider": {"uncachedTokens": 512}})
        proxied = checksums(proxy={"requestTimeoutSeconds": 60})
        assert [new == old for new, old in zip(picked, before, strict=True)] == [False, True]
        assert [new == old for new, old in zip(proxied, before, strict=True)] == [True, False]

    def test_checking_tokens_takes_a_right_in_the_whole_cluster(self, render: Render) -> None:
        objects = render(LLMD, values=layer(endpointPicker={"metricsAuthentication": True}))
        (role,) = (item for item in objects.by_id.values() if item["kind"] == "ClusterRole")
        assert [rule["resources"] for rule in role["rules"]] == [["tokenreviews"], ["subjectaccessreviews"]]
        assert not [item for item in render(LLMD).by_id.values() if item["kind"].startswith("ClusterRole")]


class TestProxy:
    def test_no_client_may_steer(self, render: Render) -> None:
        """Envoy and sidecar obey these headers, whoever set them; only the picker may, after this filter."""
        (chain,) = envoy(render(LLMD))["static_resources"]["listeners"][0]["filter_chains"]
        mutation, processor, _ = chain["filters"][0]["typed_config"]["http_filters"]
        removed = [item["remove"] for item in mutation["typed_config"]["mutations"]["request_mutations"]]
        assert removed == [
            "x-gateway-destination-endpoint",
            "x-prefiller-host-port",
            "x-encoder-hosts-ports",
            "x-data-parallel-host-port",
            "x-kv-cache-source-host-port",
        ]
        assert processor["name"] == "envoy.filters.http.ext_proc"
        assert processor["typed_config"]["failure_mode_allow"] is False

    def test_it_is_ready_when_picker_and_both_roles_are(self, render: Render) -> None:
        (chain,) = envoy(render(LLMD))["static_resources"]["listeners"][1]["filter_chains"]
        health = chain["filters"][0]["typed_config"]["http_filters"][0]["typed_config"]
        assert set(health["cluster_min_healthy_percentages"]) == {"picker", "prefill", "decode"}
        container = pod(render(LLMD), "demo-proxy")["containers"][0]
        assert container["readinessProbe"]["httpGet"] == {"path": "/ready", "port": "health"}

    def test_it_ends_after_its_streams(self, render: Render) -> None:
        objects = render(LLMD, values=layer(proxy={"drain": {"preStopSeconds": 5, "timeoutSeconds": 60}}))
        assert pod(objects, "demo-proxy")["terminationGracePeriodSeconds"] == 80
        hook = pod(objects, "demo-proxy")["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
        assert hook == ["bash", "/etc/envoy/drain.sh", "5", "60"]

    def test_who_may_reach_what(self, render: Render) -> None:
        objects = render(LLMD)
        assert callers(objects, "demo-llmd-prefill", "http") == ["proxy", "picker", "llmd-decode", "test"]
        assert callers(objects, "demo-llmd-decode", 8000) == ["proxy", "picker"]
        assert callers(objects, "demo-llmd-decode", "http") == ["test"]
        assert callers(objects, "demo-picker", "grpc") == ["proxy"]

    def test_the_front_door_leads_to_it(self, render: Render) -> None:
        selector = render(LLMD).get("Service/demo-front-door")["spec"]["selector"]
        assert (selector["app.kubernetes.io/name"], selector["app.kubernetes.io/component"]) == (
            "vllm-llmd",
            "proxy",
        )


class TestTls:
    def test_one_certificate_serves_every_hop(self, render: Render) -> None:
        objects = render(LLMD, values=vllm(tls={"secretName": "vllm-tls", "caKey": "ca.crt"}))
        for name in ("llmd-prefill", "llmd-decode", "picker", "proxy"):
            secrets = [volume.get("secret") for volume in pod(objects, f"demo-{name}")["volumes"]]
            assert {"secretName": "vllm-tls"} in secrets
        assert sidecar(objects)["volumeMounts"] == [{"name": "tls", "mountPath": "/tls", "readOnly": True}]
        assert {
            "--secure-proxy=true",
            "--cert-path=/tls",
            "--enable-tls=prefiller,decoder",
            "--tls-insecure-skip-verify=prefiller,decoder",
        } <= set(sidecar(objects)["args"])
        assert {"--secure-serving=true", "--cert-path=/tls", "--enable-cert-reload=true"} <= set(
            picker(objects)["args"]
        )
        assert {"type": "metrics-data-source", "parameters": {"scheme": "https"}} in config(objects)[
            "plugins"
        ]

    def test_the_proxy_knows_whom_it_calls(self, render: Render) -> None:
        def contexts(**tls: str) -> dict[str, Any]:
            clusters = envoy(render(LLMD, values=vllm(tls=tls)))["static_resources"]["clusters"]
            found = {cluster["name"]: cluster.get("transport_socket") for cluster in clusters}
            return {
                name: socket["typed_config"]["common_tls_context"] for name, socket in found.items() if socket
            }

        trusted = {"trusted_ca": {"filename": "/tls/ca.crt"}}
        assert contexts(secretName="vllm-tls", caKey="ca.crt") == {
            "engines": {"alpn_protocols": ["http/1.1"], "validation_context": trusted},
            "picker": {"alpn_protocols": ["h2"], "validation_context": trusted},
        }
        assert contexts(secretName="vllm-tls")["engines"] == {"alpn_protocols": ["http/1.1"]}
        assert contexts() == {}

    def test_clients_speak_it_to_the_proxy(self, render: Render) -> None:
        listeners = envoy(render(LLMD, values=vllm(tls={"secretName": "vllm-tls"})))["static_resources"][
            "listeners"
        ]
        assert ["transport_socket" in listener["filter_chains"][0] for listener in listeners] == [True, False]


REFUSED = {
    "no protocol for p2pNccl": (
        vllm(version="0.23.0", kvTransfer={"connector": "p2pNccl"}),
        "global.vllm.kvTransfer.connector: llm-d's sidecar has no protocol for P2pNcclConnector; set nixl or mooncake,"
        " or use the layer pdNccl",
    ),
    "nor for NIXL that pushes": (
        vllm(kvTransfer={"nixl": {"mode": "push"}}),
        "global.vllm.kvTransfer.connector: llm-d's sidecar 0.10.0 has no protocol for NixlPushConnector; set the connector"
        " nixl in mode pull, or mooncake",
    ),
    "Mooncake came with 0.9": (
        {
            **vllm(llmd={"version": "0.8.0"}, kvTransfer={"connector": "mooncake"}),
            **layer(endpointPicker={"image": {"repository": "registry.example.com/picker"}}),
        },
        "global.vllm.kvTransfer.connector: llm-d's sidecar 0.8.0 has no protocol for MooncakeConnector (0.9.0 has); set a"
        " newer global.vllm.llmd.version, or the connector nixl in mode pull",
    ),
    "the first picker's image is gone": (
        vllm(llmd={"version": "0.8.0"}),
        "llmd.endpointPicker.image.repository: the package of llm-d's picker 0.8.0 was removed from its registry; set your"
        " own copy, or global.vllm.llmd.version to 0.9.0 or newer",
    ),
    "a release before all that is known": (
        {
            **vllm(llmd={"version": "0.7.1"}),
            **layer(endpointPicker={"image": {"repository": "registry.example.com/picker"}}),
        },
        "global.vllm.llmd.version: 0.7.1 is older than 0.8.0, the first release of llm-d's router that this chart knows",
    ),
    "one port for two": (
        layer(decode={"port": 8000}),
        "llmd.decode.port: 8000 is the sidecar's, which listens on the port of prefill; set another, such as 8200",
    ),
    "ranks that do not divide": (
        layer(prefill={"parallelism": {"tensor": 3}}, decode={"parallelism": {"tensor": 2}}),
        "llmd.decode.parallelism.tensor: 2, but prefill has 3, and one must divide the other",
    ),
    "a scorer that nobody knows": (
        layer(endpointPicker={"profiles": {"decode": {"scorers": {"semantic-scorer": 1}}}}),
        "llmd.endpointPicker.profiles.decode.scorers.semantic-scorer: llm-d has no such scorer; set one of docs/values.md",
    ),
    "an experimental scorer": (
        layer(endpointPicker={"profiles": {"decode": {"scorers": {"topology-affinity-scorer": 1}}}}),
        "llmd.endpointPicker.profiles.decode.scorers.topology-affinity-scorer: experimental; set"
        " llmd.endpointPicker.args.allow-experimental-plugins to true as well, or leave it out",
    ),
    "protection without a pool": (
        layer(routingSidecar={"ssrfProtection": True}),
        "llmd.routingSidecar.ssrfProtection: it reads the engines' addresses from an InferencePool; set"
        " llmd.inferencePool.enabled to true",
    ),
    "a flag that the chart derives": (
        layer(routingSidecar={"args": {"kv-connector": "mooncake"}}),
        "llmd.routingSidecar.args.kv-connector: the chart derives it; take it out",
    ),
    "TLS inside an older release": (
        vllm(tls={"secretName": "tls"}, llmd={"version": "0.9.0"}),
        "global.vllm.tls.secretName: TLS inside this layer takes llm-d 0.10.0, and this is 0.9.0; set a newer"
        " global.vllm.llmd.version, or leave this empty",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_refused(render: Render, name: str) -> None:
    values, message = REFUSED[name]
    assert refused(render, values) == [message]
