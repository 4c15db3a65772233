"""Phase 2, engine to engine: both roles from one place, the router in front, and what cannot work refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.charts.containers import engine, pod

if TYPE_CHECKING:
    from tests.conftest import Objects, Render

NIXL = "values/phase2-nccl.yaml"
P2P = "values/phase2-nccl-legacy.yaml"
MOONCAKE = "values/phase2-mooncake.yaml"
ROLES = ("demo-prefill", "demo-decode")


def vllm(**values: Any) -> dict[str, Any]:
    return {"global": {"vllm": values}}


def roles(**values: Any) -> dict[str, Any]:
    return {"pdNccl": values}


def transfer(objects: Objects, deployment: str) -> dict[str, Any]:
    """A role's --kv-transfer-config."""
    (item,) = [
        item for item in engine(objects, deployment)["args"] if item.startswith("--kv-transfer-config=")
    ]
    config: dict[str, Any] = json.loads(item.partition("=")[2])
    return config


def env(objects: Objects, deployment: str) -> dict[str, Any]:
    return {
        item["name"]: item.get("value", item.get("valueFrom")) for item in engine(objects, deployment)["env"]
    }


def router(objects: Objects) -> Any:
    return objects.get("Deployment/demo-router")["spec"]["template"]["spec"]["containers"][0]


def refused(render: Render, file: str, values: dict[str, Any], **options: Any) -> list[str]:
    heading, *messages = render.error(file, values=values, **options).strip().splitlines()
    assert heading == "These values cannot work:"
    return [message.removeprefix("- ") for message in messages]


POD_IP = {"fieldRef": {"fieldPath": "status.podIP"}}


class TestNixl:
    def test_both_roles_come_from_one_place(self, render: Render) -> None:
        objects = render(NIXL)
        extra = {"backends": ["UCX"], "kv_lease_duration": 30}
        assert [transfer(objects, role) for role in ROLES] == [
            {"kv_connector": "NixlConnector", "kv_role": role, "kv_connector_extra_config": extra}
            for role in ("kv_producer", "kv_consumer")
        ]

    def test_peers_dial_the_address_of_the_pod(self, render: Render) -> None:
        for role in ROLES:
            found = env(render(NIXL), role)
            assert found["VLLM_NIXL_SIDE_CHANNEL_HOST"] == found["VLLM_HOST_IP"] == POD_IP
            assert found["VLLM_NIXL_SIDE_CHANNEL_PORT"] == "5600"

    def test_the_lease_was_a_timeout_before_0_22(self, render: Render) -> None:
        objects = render(NIXL, set=["global.vllm.version=0.21.0"])
        assert "kv_lease_duration" not in transfer(objects, "demo-prefill")["kv_connector_extra_config"]
        assert env(objects, "demo-prefill")["VLLM_NIXL_ABORT_REQUEST_TIMEOUT"] == "480"
        assert "VLLM_NIXL_ABORT_REQUEST_TIMEOUT" not in env(render(NIXL), "demo-prefill")

    def test_push(self, render: Render) -> None:
        kv = {"nixl": {"mode": "push"}, "loadFailurePolicy": "recompute"}
        config = transfer(render(NIXL, values=vllm(kvTransfer=kv)), "demo-decode")
        assert (config["kv_connector"], config["kv_load_failure_policy"]) == (
            "NixlPushConnector",
            "recompute",
        )
        assert refused(render, NIXL, vllm(kvTransfer=kv, version="0.23.0")) == [
            "global.vllm.kvTransfer.connector: vLLM 0.23.0 has no NixlPushConnector, which came with 0.24.0; set a newer"
            " global.vllm.version"
        ]

    def test_the_buffer_lies_on_the_cpu_without_a_gpu(self, render: Render) -> None:
        objects = render(NIXL, "values/overlays/cpu.yaml")
        assert transfer(objects, "demo-prefill")["kv_buffer_device"] == "cpu"
        assert env(objects, "demo-decode")["UCX_TLS"] == "tcp"

    def test_hash_seeds_are_equal_where_the_engine_would_roll_them(self, render: Render) -> None:
        assert env(render(NIXL, set=["global.vllm.version=0.28.0"]), "demo-prefill")["PYTHONHASHSEED"] == "0"
        assert "PYTHONHASHSEED" not in env(render(NIXL), "demo-prefill")

    def test_prefill_outlives_its_lease(self, render: Render) -> None:
        """An engine's own drain does not wait until decode has fetched the blocks."""
        objects = render(NIXL, values=vllm(kvTransfer={"nixl": {"leaseSeconds": 45}}))
        waits = [engine(objects, role)["lifecycle"]["preStop"]["exec"]["command"] for role in ROLES]
        assert waits == [["sleep", "45"], ["sleep", "15"]]
        assert [pod(objects, role)["terminationGracePeriodSeconds"] for role in ROLES] == [180, 150]


class TestP2pNccl:
    def test_numbers_that_the_connector_wants_as_text(self, render: Render) -> None:
        config = transfer(render(P2P), "demo-prefill")
        assert config == {
            "kv_connector": "P2pNcclConnector",
            "kv_role": "kv_producer",
            "kv_port": 14579,
            "kv_buffer_size": 10,
            "kv_connector_extra_config": {
                "proxy_ip": "demo-router",
                "proxy_port": "30001",
                "http_port": "8000",
                "send_type": "PUT_ASYNC",
                "nccl_num_channels": "8",
                "mem_pool_size_gb": 4,
            },
        }
        assert transfer(render(P2P), "demo-decode")["kv_buffer_size"] == 8_000_000_000

    @pytest.mark.parametrize(("version", "value"), [("0.13.0", None), ("0.17.0", "1"), ("0.23.0", "1")])
    def test_request_ids_stay_as_they_are_on_both_roles(
        self, render: Render, version: str, value: str | None
    ) -> None:
        objects = render(P2P, set=[f"global.vllm.version={version}"])
        assert [env(objects, role).get("VLLM_DISABLE_REQUEST_ID_RANDOMIZATION") for role in ROLES] == [
            value
        ] * 2

    def test_the_memory_pool_is_counted(self, render: Render) -> None:
        values = roles(prefill={"parallelism": {"tensor": 2}}, decode={"parallelism": {"tensor": 2}})
        resources = engine(render(P2P, values=values), "demo-prefill")["resources"]
        assert resources["limits"]["memory"] == resources["requests"]["memory"] == "40960Mi"

    def test_engines_register_with_the_router(self, render: Render) -> None:
        objects = render(P2P)
        assert "--vllm-discovery-address=0.0.0.0:30001" in router(objects)["args"]
        assert not [item for item in router(objects)["args"] if "service-discovery" in item]
        ports = objects.get("Service/demo-router")["spec"]["ports"]
        assert {port["name"]: port["port"] for port in ports} == {"http": 8000, "registration": 30001}

    def test_it_ended_with_0_23(self, render: Render) -> None:
        assert refused(render, P2P, vllm(version="0.33.0")) == [
            "global.vllm.kvTransfer.connector: vLLM 0.33.0 has no P2pNcclConnector, which was removed in 0.24.0; set the"
            " connector nixl, or an older global.vllm.version such as 0.23.0"
        ]

    @pytest.mark.parametrize("version", ["0.14.0", "0.15.0", "0.16.0"])
    def test_between_0_14_and_0_16_no_setting_can_cure_it(self, render: Render, version: str) -> None:
        assert refused(render, P2P, vllm(version=version)) == [
            f"global.vllm.kvTransfer.connector: in vLLM {version} every request through P2pNcclConnector hangs, because"
            " the engine changes the request ids that it reads addresses from, and no setting can cure it; set the"
            " connector nixl, or global.vllm.version to 0.13.0 or 0.23.0"
        ]

    def test_what_it_cannot_do(self, render: Render) -> None:
        values = roles(
            prefill={"parallelism": {"tensor": 2, "pipeline": 2}},
            router={"replicas": 2, "autoscaling": {"enabled": True}},
        )
        assert refused(render, P2P, values) == [
            "pdNccl.decode.parallelism.tensor: 1, but prefill has 2, and p2pNccl needs them equal",
            "pdNccl.router.replicas: 2, but engines of p2pNccl register with one router only; set 1",
            "pdNccl.router.autoscaling.enabled: engines of p2pNccl register with one router only; set false",
            "pdNccl.prefill.parallelism.pipeline: p2pNccl knows no pipeline parallelism; set 1",
        ]


class TestMooncake:
    def test_prefill_tells_where_its_ranks_are(self, render: Render) -> None:
        objects = render(MOONCAKE)
        assert env(objects, "demo-prefill")["VLLM_MOONCAKE_BOOTSTRAP_PORT"] == "8998"
        assert "VLLM_MOONCAKE_BOOTSTRAP_PORT" not in env(objects, "demo-decode")
        template = objects.get("Deployment/demo-prefill")["spec"]["template"]
        assert template["metadata"]["annotations"] == {"vllm.ai/bootstrap-port": "8998"}
        assert "annotations" not in objects.get("Deployment/demo-decode")["spec"]["template"]["metadata"]
        assert "--kv-connector=mooncake" in router(objects)["args"]

    def test_tcp_is_said_because_the_engine_would_take_rdma(self, render: Render) -> None:
        extra = transfer(render(MOONCAKE), "demo-decode")["kv_connector_extra_config"]
        assert extra == {"mooncake_protocol": "tcp", "num_workers": 10}

    def test_rdma_needs_a_device_in_every_pod(self, render: Render) -> None:
        assert refused(render, MOONCAKE, vllm(kvTransfer={"mooncake": {"protocol": "rdma"}})) == [
            f"pdNccl.{role}.resources.extended: mooncake over rdma needs an RDMA device in the pod; set one such as"
            " rdma/ib, or global.vllm.kvTransfer.mooncake.protocol to tcp"
            for role in ("prefill", "decode")
        ]
        objects = render(MOONCAKE, "values/overlays/rdma.yaml")
        assert engine(objects, "demo-prefill")["resources"]["limits"]["rdma/ib"] == "1"
        assert engine(objects, "demo-prefill")["securityContext"]["capabilities"] == {
            "add": ["IPC_LOCK"],
            "drop": ["ALL"],
        }

    def test_each_version_has_its_own_limits(self, render: Render) -> None:
        kv = {"mooncake": {"devices": ["mlx5_0"]}, "loadFailurePolicy": "fail"}
        assert refused(render, MOONCAKE, vllm(version="0.13.0", kvTransfer=kv)) == [
            "global.vllm.kvTransfer.mooncake.protocol: MooncakeConnector of vLLM 0.13.0 speaks rdma only (0.14.0 can do"
            " tcp); set rdma or a newer global.vllm.version",
            "global.vllm.kvTransfer.mooncake.devices: vLLM 0.13.0 cannot choose devices (0.25.0 can); leave it empty",
        ]
        assert refused(render, MOONCAKE, vllm(version="0.12.0"))[0] == (
            "global.vllm.kvTransfer.connector: vLLM 0.12.0 has no MooncakeConnector, which came with 0.13.0; set a newer"
            " global.vllm.version, or the connector nixl"
        )


class TestCustom:
    def test_a_module_of_ones_own(self, render: Render) -> None:
        custom = {"name": "Mine", "modulePath": "my.connectors", "extraConfig": {"a": 1}}
        config = transfer(
            render(NIXL, values=vllm(kvTransfer={"connector": "custom", "custom": custom})), "demo-prefill"
        )
        assert config == {
            "kv_connector": "Mine",
            "kv_role": "kv_producer",
            "kv_connector_module_path": "my.connectors",
            "kv_connector_extra_config": {"a": 1},
        }

    def test_a_name_that_no_release_has(self, render: Render) -> None:
        kv = {"connector": "custom", "custom": {"name": "Mine"}}
        assert refused(render, NIXL, vllm(kvTransfer=kv)) == [
            "global.vllm.kvTransfer.custom.name: vLLM has no connector Mine; set kvTransfer.custom.modulePath to the module"
            " that holds it"
        ]


class TestTiers:
    TIERS: ClassVar[dict[str, Any]] = {
        "offload": {"gibPerPod": 64},
        "lmcache": {"enabled": True},
        "mooncakeStore": {"enabled": True},
    }

    def test_the_transfer_comes_first_and_decode_only_reads_the_store(self, render: Render) -> None:
        objects = render(NIXL, values=vllm(kvTiers=self.TIERS))
        for role, outer, store in (
            ("demo-prefill", "kv_producer", "kv_both"),
            ("demo-decode", "kv_consumer", "kv_consumer"),
        ):
            config = transfer(objects, role)
            children = config["kv_connector_extra_config"]["connectors"]
            assert (config["kv_connector"], config["kv_role"]) == ("MultiConnector", outer)
            assert [(child["kv_connector"], child["kv_role"]) for child in children] == [
                ("NixlConnector", outer),
                ("OffloadingConnector", "kv_both"),
                ("LMCacheConnectorV1", "kv_both"),
                ("MooncakeStoreConnector", store),
            ]
            assert children[1]["kv_connector_extra_config"] == {"cpu_bytes_to_use": 64 * 2**30}
            assert not [child for child in children if "engine_id" in child]

    def test_phase_1_takes_no_part_in_transfer_but_may_offload(self, render: Render) -> None:
        plain = engine(render("values/phase1.yaml"))["args"]
        assert not [item for item in plain if item.startswith("--kv-transfer-config")]
        objects = render("values/phase1.yaml", values=vllm(kvTiers={"offload": {"gibPerPod": 8}}))
        assert transfer(objects, "demo-server")["kv_connector"] == "OffloadingConnector"

    def test_their_memory_is_counted_and_offloading_lies_in_shared_memory(self, render: Render) -> None:
        objects = render(NIXL, values=vllm(kvTiers=self.TIERS))
        volumes = {volume["name"]: volume for volume in pod(objects, "demo-prefill")["volumes"]}
        assert volumes["shm"]["emptyDir"]["sizeLimit"] == f"{(2 + 64) * 1024}Mi"
        gib = 32 + 64 + 5 + 16 + 4
        assert engine(objects, "demo-prefill")["resources"]["limits"]["memory"] == f"{gib * 1024}Mi"

    def test_engines_are_told_where_the_store_is(self, render: Render) -> None:
        objects = render(NIXL, values=vllm(kvTiers={"mooncakeStore": {"enabled": True, "segmentGiB": 0}}))
        for role in ROLES:
            config = json.loads(objects.get(f"ConfigMap/{role}-kv-store")["data"]["store.json"])
            assert (config["mode"], config["global_segment_size"]) == ("standalone-store", 0)
            assert config["metadata_server"] == "P2PHANDSHAKE"
            assert env(objects, role)["MOONCAKE_CONFIG_PATH"] == "/etc/mooncake/store.json"

    def test_each_tier_belongs_to_versions(self, render: Render) -> None:
        assert refused(render, "values/phase1.yaml", vllm(version="0.13.0", kvTiers=self.TIERS)) == [
            "global.vllm.kvTiers.offload.gibPerPod: OffloadingConnector of vLLM 0.13.0 takes no size in bytes (0.14.0"
            " does); set 0 or a newer global.vllm.version",
            "global.vllm.kvTiers.mooncakeStore.enabled: vLLM 0.13.0 has no MooncakeStoreConnector, which came with 0.21.0;"
            " set false or a newer global.vllm.version",
        ]


class TestAgreement:
    def test_what_must_agree_stands_in_one_place(self, render: Render) -> None:
        values = roles(decode={"args": {"block_size": 32, "kv-cache-dtype": "fp8"}})
        assert refused(render, NIXL, values) == [
            "pdNccl.decode.args.block_size: prefill and decode must agree on it; set global.vllm.args.block_size instead",
            "pdNccl.decode.args.kv-cache-dtype: prefill and decode must agree on it; set"
            " global.vllm.args.kv-cache-dtype instead",
        ]

    @pytest.mark.parametrize(
        ("prefill", "decode", "version", "message"),
        [
            (2, 4, "0.33.0", ""),
            (4, 2, "0.33.0", ""),
            (
                3,
                2,
                "0.33.0",
                "pdNccl.decode.parallelism.tensor: 2, but prefill has 3, and one must divide the other",
            ),
            (
                4,
                2,
                "0.13.0",
                "pdNccl.prefill.parallelism.tensor: 4, but decode has 2, and NIXL of vLLM 0.13.0 needs decode to have at"
                " least as many (0.14.0 does not)",
            ),
        ],
    )
    def test_tensor_parallelism(
        self, render: Render, prefill: int, decode: int, version: str, message: str
    ) -> None:
        values = roles(
            prefill={"parallelism": {"tensor": prefill}}, decode={"parallelism": {"tensor": decode}}
        )
        values |= vllm(version=version)
        if message:
            assert refused(render, NIXL, values) == [message]
        else:
            limits = engine(render(NIXL, values=values), "demo-prefill")["resources"]["limits"]
            assert limits["nvidia.com/gpu"] == str(prefill)

    def test_mooncake_once_wanted_equal_sizes(self, render: Render) -> None:
        values = roles(decode={"parallelism": {"tensor": 2}})
        mooncake = {"connector": "mooncake", "mooncake": {"protocol": "tcp"}}
        message = (
            "pdNccl.decode.parallelism.tensor: 2, but prefill has 1, and MooncakeConnector of vLLM 0.18.1 needs them equal"
            " (0.19.0 does not)"
        )
        assert refused(render, NIXL, values | vllm(version="0.18.1", kvTransfer=mooncake)) == [message]
        assert render(NIXL, values=values | vllm(version="0.19.0", kvTransfer=mooncake))

    def test_decode_has_no_pipeline_with_nixl(self, render: Render) -> None:
        assert refused(render, NIXL, roles(decode={"parallelism": {"pipeline": 2}})) == [
            "pdNccl.decode.parallelism.pipeline: with nixl, decode may have no pipeline parallelism; set 1"
        ]

    def test_ports_do_not_meet(self, render: Render) -> None:
        values = roles(prefill={"port": 5601, "parallelism": {"data": 2}}, decode={"port": 5601})
        assert refused(render, NIXL, values) == [
            "global.vllm.kvTransfer.nixl.sideChannelPort: the ports 5600 to 5601 meet 5601 of pdNccl.prefill.port; choose"
            " others"
        ]
        events = vllm(
            args={"kv-events-config": {"enable_kv_cache_events": True}},
            kvTransfer={"nixl": {"sideChannelPort": 5557}},
        )
        assert refused(render, NIXL, events) == [
            "global.vllm.kvTransfer.nixl.sideChannelPort: the ports 5557 to 5557 meet 5557 of the KV events; choose others"
        ]

    def test_the_router_looks_on_one_port(self, render: Render) -> None:
        assert refused(render, NIXL, roles(decode={"port": 9000})) == [
            "pdNccl.decode.port: 9000, but prefill has 8000, and the router looks for all engines on one port; set them"
            " equal"
        ]

    def test_a_role_keeps_the_checks_of_phase_1(self, render: Render) -> None:
        values = roles(prefill={"rollout": {"maxUnavailable": 0}}, decode={"args": {"port": 1}})
        assert [message.split(":")[0] for message in refused(render, NIXL, values)] == [
            "pdNccl.prefill.rollout",
            "pdNccl.decode.args.port",
        ]


class TestRouter:
    def test_it_finds_exactly_the_engines_of_its_release(self, render: Render) -> None:
        items = router(render(NIXL))["args"]
        for component in ("prefill", "decode"):
            start = items.index(f"--{component}-selector")
            assert items[start + 1 : start + 4] == [
                f"app.kubernetes.io/component={component}",
                "app.kubernetes.io/instance=demo",
                "app.kubernetes.io/name=vllm-pd-nccl",
            ]
        assert {"--service-discovery-namespace=default", "--service-discovery-port=8000"} <= set(items)

    def test_it_may_read_pods_of_its_namespace_and_nothing_else(self, render: Render) -> None:
        objects = render(NIXL)
        assert objects.get("Role/demo-router")["rules"] == [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
        ]
        binding = objects.get("RoleBinding/demo-router")
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": "demo-router", "namespace": "default"}
        ]
        assert not [name for name in objects.ids if name.startswith("ClusterRole")]

    def test_ready_means_that_it_has_engines_of_both_roles(self, render: Render) -> None:
        container = router(render(NIXL))
        assert container["readinessProbe"]["httpGet"]["path"] == "/readiness"
        assert container["livenessProbe"]["httpGet"]["path"] == "/liveness"

    def test_it_drops_every_privilege(self, render: Render) -> None:
        spec = pod(render(NIXL), "demo-router")
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["containers"][0]["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }

    def test_a_key_that_nobody_checks_is_refused(self, render: Render) -> None:
        auth = {"apiKeySecret": {"name": "api", "key": "k"}}
        assert refused(render, NIXL, vllm(auth=auth)) == [
            "global.vllm.auth.apiKeySecret: vllm-router checks no key and adds the engines' own to every request, so"
            " everybody who reaches the front door is let in; check keys at a gateway before it and set"
            " pdNccl.router.clientAuth to gateway"
        ]
        objects = render(NIXL, values=vllm(auth=auth) | roles(router={"clientAuth": "gateway"}))
        key = {"secretKeyRef": {"name": "api", "key": "k"}}
        assert {"name": "OPENAI_API_KEY", "valueFrom": key} in router(objects)["env"]
        assert env(objects, "demo-decode")["VLLM_API_KEY"] == key

    def test_tls_ends_before_it(self, render: Render) -> None:
        assert refused(render, NIXL, vllm(tls={"secretName": "t"})) == [
            "global.vllm.tls.secretName: vllm-router speaks plain HTTP on both sides; end TLS at the Ingress or Gateway"
            " before the front door, and leave this empty"
        ]

    def test_retries_and_circuit_breaker_can_be_turned_off(self, render: Render) -> None:
        values = roles(router={"retries": {"max": 0}, "circuitBreaker": {"enabled": False}})
        items = set(router(render(NIXL, values=values))["args"])
        assert {"--disable-retries", "--disable-circuit-breaker"} <= items
        assert not [item for item in items if item.startswith(("--retry-", "--cb-"))]

    def test_its_own_autoscaler_owns_the_replicas(self, render: Render) -> None:
        objects = render(NIXL, values=roles(router={"autoscaling": {"enabled": True}}))
        assert "replicas" not in objects.get("Deployment/demo-router")["spec"]
        assert "HorizontalPodAutoscaler/demo-router" in objects.ids


class TestNetworkPolicy:
    def test_engines_are_reached_by_the_router_the_test_and_each_other_only(self, render: Render) -> None:
        for role in ROLES:
            http, engines = render(NIXL).get(f"NetworkPolicy/{role}")["spec"]["ingress"]
            assert http["ports"] == [{"port": "http", "protocol": "TCP"}]
            assert [
                peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for peer in http["from"]
            ] == [
                "router",
                "test",
            ]
            assert "ports" not in engines
            assert [peer["podSelector"]["matchLabels"] for peer in engines["from"]] == [
                {
                    "app.kubernetes.io/name": "vllm-pd-nccl",
                    "app.kubernetes.io/instance": "demo",
                    "app.kubernetes.io/component": component,
                }
                for component in ("prefill", "decode")
            ]

    def test_the_front_door_leads_to_the_router(self, render: Render) -> None:
        selector = render(NIXL).get("Service/demo-front-door")["spec"]["selector"]
        assert selector == {
            "app.kubernetes.io/name": "vllm-pd-nccl",
            "app.kubernetes.io/instance": "demo",
            "app.kubernetes.io/component": "router",
        }

    def test_with_a_closed_way_out_engines_still_reach_each_other_and_the_router(
        self, render: Render
    ) -> None:
        values = vllm(networkPolicy={"egress": "dns"})
        rules = render(P2P, values=values).get("NetworkPolicy/demo-prefill")["spec"]["egress"]
        reached = [
            peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
            for rule in rules
            for peer in rule.get("to", [])
        ]
        assert reached == ["prefill", "decode", "router"]


class TestHelmTest:
    def test_it_knows_the_roles_and_what_their_connector_counts(self, render: Render) -> None:
        container = render(NIXL).get("Pod/demo-test")["spec"]["containers"][0]
        found = {item["name"]: item.get("value") for item in container["env"]}
        assert found == {
            "VLLM_TEST_URL": "http://demo-front-door:80",
            "VLLM_TEST_MODEL": "Qwen/Qwen3-8B",
            "VLLM_TEST_TIMEOUT": "120",
            "VLLM_TEST_PREFILL": "demo-prefill:8000",
            "VLLM_TEST_DECODE": "demo-decode:8000",
            "VLLM_TEST_MOVED": "vllm:nixl_xfer_time_seconds_count",
            "VLLM_TEST_FAILED": "vllm:nixl_num_failed_transfers_total",
        }

    @pytest.mark.parametrize(
        ("version", "moved"), [("0.32.0", ""), ("0.33.0", "vllm:mooncake_xfer_time_seconds_count")]
    )
    def test_counters_belong_to_versions(self, render: Render, version: str, moved: str) -> None:
        objects = render(MOONCAKE, set=[f"global.vllm.version={version}"])
        found = {
            item["name"]: item.get("value")
            for item in objects.get("Pod/demo-test")["spec"]["containers"][0]["env"]
        }
        assert found["VLLM_TEST_MOVED"] == moved

    def test_the_names_of_the_roles_resolve_to_pods(self, render: Render) -> None:
        for role in ROLES:
            assert render(NIXL).get(f"Service/{role}")["spec"]["clusterIP"] == "None"
