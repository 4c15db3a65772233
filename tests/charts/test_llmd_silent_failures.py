"""Wirings of prefill and decode that upstream lets through and that answer 200 all the same, row by row.

A row is impossible in what the chart renders, refused by its schema or its templates, or found by the linter: in a
release whose open values (extraConfig, extra*Spec, env) break it, and in manifests that somebody wrote by hand.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from vllm_phases import rules
from vllm_phases.model import Document, Release

from tests.charts.containers import engine, pod
from tests.charts.test_llmd import LLMD, config, envoy, labels, layer, picker, sidecar, vllm

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Objects, Render

    Change = Callable[[dict[str, Any]], None]

ROWS = range(1, 27)
MIRROR = {"image": {"repository": "registry.example.com/picker"}}
POOL = layer(inferencePool={"enabled": True})
PROTECTED = layer(inferencePool={"enabled": True}, routingSidecar={"ssrfProtection": True})
TCP = {"connector": "mooncake", "mooncake": {"protocol": "tcp"}}

# The releases in which a relation must hold.
SETTINGS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "llm-d 0.9": vllm(llmd={"version": "0.9.0"}),
    "llm-d 0.8, an old engine": {
        **vllm(llmd={"version": "0.8.0"}, version="0.20.2"),
        **layer(endpointPicker=MIRROR, routingSidecar=MIRROR),
    },
    "Mooncake": vllm(
        kvTransfer={"connector": "mooncake", "mooncake": {"protocol": "tcp", "bootstrapPort": 8999}}
    ),
    "other ports": layer(prefill={"port": 9000}, decode={"port": 9001}),
    "a pool and several pickers": layer(inferencePool={"enabled": True}, endpointPicker={"replicas": 2}),
    "protection": PROTECTED,
    "labels that lie": layer(
        prefill={"labels": {"llm-d.ai/role": "decode", "vllm-phases.dev/pool": "other"}},
        decode={"labels": {"llm-d.ai/role": "", "llm-d.ai/inference-serving": "false"}},
    ),
    "TLS on every hop": vllm(tls={"secretName": "vllm-tls", "caKey": "ca.crt"}),
    "a precise index": layer(endpointPicker={"prefixCache": {"type": "precise"}}),
    "several servers in a pod": layer(
        prefill={"parallelism": {"data": 2, "expert": True, "loadBalancing": "external"}},
        decode={"parallelism": {"data": 2, "expert": True, "loadBalancing": "external"}},
    ),
    "every prompt, by other scorers": layer(
        endpointPicker={
            "decider": {"type": "always"},
            "profiles": {"decode": {"scorers": {"prefix-cache-scorer": None, "load-aware-scorer": 0.5}}},
        }
    ),
}


def flags(container: Any) -> dict[str, str]:
    """The options of one of llm-d's programs."""
    pairs = (item.removeprefix("--").partition("=") for item in container["args"])
    return {name: value for name, _, value in pairs}


def flag(container: Any, name: str) -> str | None:
    return flags(container).get(name)


def of(objects: Objects, role: str) -> Any:
    return engine(objects, f"demo-llmd-{role}")


def chosen(objects: Objects) -> tuple[dict[str, str], list[int]]:
    """What the picker takes for an endpoint: labels and ports."""
    if "InferencePool/demo-pool" in objects.by_id:
        assert flag(picker(objects), "pool-name") == "demo-pool"
        spec = objects.get("InferencePool/demo-pool")["spec"]
        return spec["selector"]["matchLabels"], [port["number"] for port in spec["targetPorts"]]
    selector = (flag(picker(objects), "endpoint-selector") or "").split(",")
    ports = (flag(picker(objects), "endpoint-target-ports") or "").split(",")
    return dict(pair.split("=") for pair in selector), [int(port) for port in ports]


def selects_the_engines(objects: Objects) -> None:
    selector, _ = chosen(objects)
    workloads = [item for item in objects.by_id.values() if item["kind"] in ("Deployment", "StatefulSet")]
    taken = [
        item["metadata"]["name"]
        for item in workloads
        if selector.items() <= item["spec"]["template"]["metadata"]["labels"].items()
    ]
    assert selector
    assert sorted(taken) == ["demo-llmd-decode", "demo-llmd-prefill"]


def tells_each_role(objects: Objects) -> None:
    roles = {role: labels(objects, f"demo-llmd-{role}")["llm-d.ai/role"] for role in ("prefill", "decode")}
    assert roles == {"prefill": "prefill", "decode": "decode"}
    profiles = {profile["name"]: profile["plugins"] for profile in config(objects)["schedulingProfiles"]}
    assert {name: plugins[0] for name, plugins in profiles.items()} == {
        role: {"pluginRef": f"{role}-filter"} for role in roles
    }


def disaggregates(objects: Objects) -> None:
    plugins = {plugin["type"]: plugin.get("parameters", {}) for plugin in config(objects)["plugins"]}
    decider = plugins["disagg-profile-handler"]["deciders"]["prefill"]
    assert decider in plugins
    assert decider == "always-disagg-pd-decider" or plugins[decider]["nonCachedTokens"] > 0


def sends_to_the_sidecar(objects: Objects) -> None:
    _, ports = chosen(objects)
    listens = [port["containerPort"] for port in sidecar(objects)["ports"]]
    serves = [
        port["containerPort"] for port in of(objects, "prefill")["ports"] if port["name"].startswith("http")
    ]
    assert ports == listens == serves
    assert (
        ports[0] == int(flag(sidecar(objects), "port") or 0) == int(flag(of(objects, "prefill"), "port") or 0)
    )


def reaches_its_engine(objects: Objects) -> None:
    given = flags(sidecar(objects))
    assert given.get("model-server-port", given.get("vllm-port")) == flag(of(objects, "decode"), "port")


def speaks_the_engines_protocol(objects: Objects) -> None:
    transfers = {
        role: yaml.safe_load(flag(of(objects, role), "kv-transfer-config") or "")
        for role in ("prefill", "decode")
    }
    known = {"NixlConnector": "nixlv2", "MooncakeConnector": "mooncake"}
    (connector,) = {transfer["kv_connector"] for transfer in transfers.values()}
    assert flag(sidecar(objects), "kv-connector") == known[connector]
    assert {role: transfer["kv_role"] for role, transfer in transfers.items()} == {
        "prefill": "kv_producer",
        "decode": "kv_consumer",
    }
    bootstrap = flag(sidecar(objects), "mooncake-bootstrap-port")
    env = {item["name"]: item.get("value") for item in of(objects, "prefill")["env"]}
    assert bootstrap == (
        env.get("VLLM_MOONCAKE_BOOTSTRAP_PORT") if connector == "MooncakeConnector" else None
    )


def agrees_on_the_model(objects: Objects) -> None:
    shared = ("served-model-name", "dtype", "block-size", "kv-cache-dtype", "max-model-len")
    sides = [of(objects, role) for role in ("prefill", "decode")]
    assert sides[0]["args"][0] == sides[1]["args"][0]
    assert [flag(sides[0], name) for name in shared] == [flag(sides[1], name) for name in shared]
    seeds = [[item for item in side["env"] if item["name"] == "PYTHONHASHSEED"] for side in sides]
    assert seeds[0] == seeds[1]


def announces_its_address(objects: Objects) -> None:
    for role in ("prefill", "decode"):
        env = {item["name"]: item.get("valueFrom") for item in of(objects, role)["env"]}
        names = ["VLLM_HOST_IP", *(name for name in env if name == "VLLM_NIXL_SIDE_CHANNEL_HOST")]
        assert len(names) == (1 if flag(sidecar(objects), "kv-connector") == "mooncake" else 2)
        assert [env[name]["fieldRef"]["fieldPath"] for name in names] == ["status.podIP"] * len(names)


def speaks_tls_everywhere_or_nowhere(objects: Objects) -> None:
    everywhere = flag(of(objects, "prefill"), "ssl-certfile") is not None
    assert (flag(of(objects, "decode"), "ssl-certfile") is not None) is everywhere
    assert flag(sidecar(objects), "secure-proxy") == str(everywhere).lower()
    assert flag(sidecar(objects), "enable-tls") == ("prefiller,decoder" if everywhere else None)
    assert not [name for name in flags(sidecar(objects)) if "use-tls" in name]
    for program in (sidecar(objects), picker(objects)):
        assert flag(program, "cert-path") == ("/tls" if everywhere else None)
    assert flag(picker(objects), "secure-serving") == str(everywhere).lower()
    found = envoy(objects)["static_resources"]
    speaking = [cluster["name"] for cluster in found["clusters"] if "transport_socket" in cluster]
    assert speaking == (["engines", "picker"] if everywhere else [])
    assert ("transport_socket" in found["listeners"][0]["filter_chains"][0]) is everywhere
    scheme = {plugin["type"]: plugin.get("parameters", {}) for plugin in config(objects)["plugins"]}
    assert scheme.get("metrics-data-source", {}).get("scheme", "http") == ("https" if everywhere else "http")


def may_read_the_pool(objects: Objects) -> None:
    protected = flag(sidecar(objects), "enable-ssrf-protection") == "true"
    assert (flag(sidecar(objects), "inference-pool") == "default/demo-pool") is protected
    assert pod(objects, "demo-llmd-decode")["automountServiceAccountToken"] is protected
    assert ("RoleBinding/demo-llmd-decode" in objects.by_id) is protected


def is_of_one_release(objects: Objects) -> None:
    tags = {container["image"].rpartition(":")[2] for container in (sidecar(objects), picker(objects))}
    old = tags == {"v0.8.0"}
    group = "inference.networking.x-k8s.io" if old else "llm-d.ai"
    assert len(tags) == 1
    assert not tags & {"latest", "main"}
    assert config(objects)["apiVersion"] == f"{group}/v1alpha1"
    assert ("model-server-port" in flags(sidecar(objects))) is (tags == {"v0.10.0"})


def defines_what_it_uses(objects: Objects) -> None:
    found = config(objects)
    types = [plugin["type"] for plugin in found["plugins"]]
    used = {item["pluginRef"] for profile in found["schedulingProfiles"] for item in profile["plugins"]}
    assert used <= set(types)
    assert len(types) == len(set(types))
    weighted = {
        item["pluginRef"]
        for profile in found["schedulingProfiles"]
        for item in profile["plugins"]
        if "weight" in item
    }
    assert all(name.endswith("-scorer") for name in weighted)


def probes_the_engine(objects: Objects) -> None:
    """Several servers of a pod are watched by a process of their own, which has a port for that."""
    probes = {
        of(objects, "decode")[f"{kind}Probe"]["httpGet"]["port"]
        for kind in ("startup", "readiness", "liveness")
    }
    ports = {port["name"] for port in of(objects, "decode")["ports"]}
    assert probes == {"health" if "http-1" in ports else "http"}
    assert probes <= ports
    assert not probes & {port["name"] for port in sidecar(objects)["ports"]}


def outlives_idle_connections(objects: Objects) -> None:
    for role in ("prefill", "decode"):
        env = {item["name"]: item.get("value") for item in of(objects, role)["env"]}
        assert int(env["VLLM_HTTP_TIMEOUT_KEEP_ALIVE"]) > 90


def drains_in_time(objects: Objects) -> None:
    for role in ("prefill", "decode"):
        waits = int(of(objects, role)["lifecycle"]["preStop"]["exec"]["command"][1])
        drains = int(flag(of(objects, role), "shutdown-timeout") or 0)
        assert drains > 0
        assert waits + drains < pod(objects, f"demo-llmd-{role}")["terminationGracePeriodSeconds"]


def has_one_leader(objects: Objects) -> None:
    several = objects.get("Deployment/demo-picker")["spec"]["replicas"] > 1
    assert flag(picker(objects), "ha-enable-leader-election") == str(several).lower()
    assert picker(objects)["readinessProbe"]["grpc"]["service"] == (
        "readiness" if several else "inference-extension"
    )


def runs_beside_the_engine(objects: Objects) -> None:
    assert sidecar(objects)["restartPolicy"] == "Always"
    assert "initContainers" not in pod(objects, "demo-llmd-prefill")


def has_one_picker(objects: Objects) -> None:
    pickers = [
        item for item in objects.by_id.values() if item["kind"] == "Deployment" and "/app/epp" in str(item)
    ]
    assert len(pickers) == 1
    selector = objects.get("Service/demo-picker")["spec"]["selector"]
    assert selector.items() <= pickers[0]["spec"]["template"]["metadata"]["labels"].items()
    for pool in (item for item in objects.by_id.values() if item["kind"] == "InferencePool"):
        assert pool["spec"]["endpointPickerRef"]["name"] == "demo-picker"
        assert pool["spec"]["endpointPickerRef"]["failureMode"] == "FailClose"


def lets_no_client_steer(objects: Objects) -> None:
    """And gives the picker whole bodies, waits for the engine, and answers nobody past the picker."""
    (chain,) = envoy(objects)["static_resources"]["listeners"][0]["filter_chains"]
    manager = chain["filters"][0]["typed_config"]
    mutation, processor = (item["typed_config"] for item in manager["http_filters"][:2])
    removed = {item["remove"] for item in mutation["mutations"]["request_mutations"]}
    assert {"x-gateway-destination-endpoint", "x-prefiller-host-port"} <= removed
    assert processor["failure_mode_allow"] is False
    modes = processor["processing_mode"]
    assert {modes["request_body_mode"], modes["response_body_mode"]} == {"FULL_DUPLEX_STREAMED"}
    assert {modes["request_trailer_mode"], modes["response_trailer_mode"]} == {"SEND"}
    (route,) = manager["route_config"]["virtual_hosts"][0]["routes"]
    assert "timeout" in route["route"]
    assert flag(picker(objects), "health-checking") == "true"


# Rows that the chart cannot render, whatever the values.
CONSTRUCTED: dict[tuple[int, ...], tuple[Callable[[Objects], None], ...]] = {
    (1,): (selects_the_engines,),
    (2, 3): (tells_each_role,),
    (4,): (disaggregates,),
    (5, 21): (sends_to_the_sidecar,),
    (6,): (reaches_its_engine,),
    (7, 8): (speaks_the_engines_protocol,),
    (10,): (agrees_on_the_model,),
    (11,): (announces_its_address,),
    (12,): (speaks_tls_everywhere_or_nowhere, lets_no_client_steer),
    (13,): (may_read_the_pool,),
    (14, 24): (is_of_one_release,),
    (16,): (defines_what_it_uses,),
    (18,): (probes_the_engine,),
    (19,): (outlives_idle_connections,),
    (20,): (drains_in_time,),
    (22,): (has_one_leader,),
    (23,): (runs_beside_the_engine,),
    (25,): (has_one_picker,),
}
RELATIONS = [(numbers, holds) for numbers, checks in CONSTRUCTED.items() for holds in checks]


def name_of(numbers: tuple[int, ...], words: str) -> str:
    return f"{'+'.join(map(str, numbers))} {words}"


@pytest.fixture(scope="module")
def rendered(render: Render) -> dict[str, Objects]:
    return {name: render(LLMD, values=values) for name, values in SETTINGS.items()}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    "holds", [pytest.param(holds, id=name_of(numbers, holds.__name__)) for numbers, holds in RELATIONS]
)
def test_impossible(rendered: dict[str, Objects], holds: Callable[[Objects], None], setting: str) -> None:
    holds(rendered[setting])


DERIVED = "the chart derives it; take it out"


def picked(**given: Any) -> dict[str, Any]:
    return layer(endpointPicker=given)


def sidecar_args(**given: Any) -> dict[str, Any]:
    return layer(routingSidecar={"args": {name.replace("_", "-"): value for name, value in given.items()}})


# Rows that schema or templates refuse: the values, and what is said.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "1 a selector of one's own": (
        picked(args={"endpoint-selector": "app=mine"}),
        f"llmd.endpointPicker.args.endpoint-selector: {DERIVED}",
    ),
    "1 a pool of a group that nobody reads": (
        picked(args={"pool-group": "inference.networking.x-k8s.io"}),
        f"llmd.endpointPicker.args.pool-group: {DERIVED}",
    ),
    "4 a decider that never decides for prefill": (
        picked(decider={"uncachedTokens": 0}),
        "at '/endpointPicker/decider/uncachedTokens': minimum: got 0, want 1",
    ),
    "5 requests past the sidecar": (
        picked(args={"endpoint-target-ports": 8200}),
        "llmd.endpointPicker.args.endpoint-target-ports: set llmd.prefill.port instead, which renders this flag",
    ),
    "6 another port of the engine": (
        sidecar_args(model_server_port=8300),
        "llmd.routingSidecar.args.model-server-port: set llmd.decode.port instead, which renders this flag",
    ),
    "6 its configuration in one piece": (
        sidecar_args(configuration="port: 1"),
        "llmd.routingSidecar.args.configuration: set llmd.routingSidecar.args instead, which renders this flag",
    ),
    "7 another protocol": (
        sidecar_args(kv_connector="shared-storage"),
        f"llmd.routingSidecar.args.kv-connector: {DERIVED}",
    ),
    "7 a connector without a protocol": (
        vllm(version="0.23.0", kvTransfer={"connector": "p2pNccl"}),
        "global.vllm.kvTransfer.connector: llm-d's sidecar has no protocol for P2pNcclConnector; set nixl or mooncake,"
        " or use the layer pdNccl",
    ),
    "8 a kv_role of one's own": (
        layer(prefill={"args": {"kv-transfer-config.kv_role": "kv_consumer"}}),
        "llmd.prefill.args.kv-transfer-config.kv_role: set global.vllm.kvTransfer instead, which renders this flag",
    ),
    "9 ranks that do not divide": (
        layer(prefill={"parallelism": {"tensor": 3}}, decode={"parallelism": {"tensor": 2}}),
        "llmd.decode.parallelism.tensor: 2, but prefill has 3, and one must divide the other",
    ),
    "9 NIXL's larger prefill before it could": (
        {**vllm(version="0.13.0"), **layer(prefill={"parallelism": {"tensor": 2}})},
        "llmd.prefill.parallelism.tensor: 2, but decode has 1, and NIXL of vLLM 0.13.0 needs decode to have at least as"
        " many (0.14.0 does not)",
    ),
    "9 Mooncake's sizes that differ before they could": (
        {**vllm(version="0.18.1", kvTransfer=TCP), **layer(decode={"parallelism": {"tensor": 4}})},
        "llmd.decode.parallelism.tensor: 4, but prefill has 1, and MooncakeConnector of vLLM 0.18.1 needs them equal"
        " (0.19.0 does not)",
    ),
    "10 a block size of one role": (
        layer(decode={"args": {"block-size": 32}}),
        "llmd.decode.args.block-size: prefill and decode must agree on it; set global.vllm.args.block-size instead",
    ),
    "10 a model of one role": (
        layer(decode={"args": {"model": "Qwen/Qwen3-4B"}}),
        "llmd.decode.args.model: set global.vllm.model.name instead, which renders this flag",
    ),
    "12 HTTPS without a certificate": (
        sidecar_args(secure_proxy=True),
        f"llmd.routingSidecar.args.secure-proxy: {DERIVED}",
    ),
    "12 HTTPS to engines that do not speak it": (
        sidecar_args(enable_tls="prefiller"),
        f"llmd.routingSidecar.args.enable-tls: {DERIVED}",
    ),
    "12 a picker with TLS behind a proxy without": (
        picked(args={"secure-serving": True}),
        f"llmd.endpointPicker.args.secure-serving: {DERIVED}",
    ),
    "13 protection without a pool": (
        layer(routingSidecar={"ssrfProtection": True}),
        "llmd.routingSidecar.ssrfProtection: it reads the engines' addresses from an InferencePool; set"
        " llmd.inferencePool.enabled to true",
    ),
    "13 protection that cannot read the pool": (
        {**vllm(llmd={"version": "0.9.0"}), **PROTECTED},
        "llmd.routingSidecar.ssrfProtection: llm-d 0.9.0 cannot read pools of inference.networking.k8s.io/v1 and would"
        " refuse every prefill engine (0.10.0 can); set false, or a newer global.vllm.llmd.version",
    ),
    "14 retries before there were any": (
        {
            **vllm(llmd={"version": "0.8.0"}),
            **layer(endpointPicker=MIRROR, routingSidecar={"prefillRetries": 2}),
        },
        "llmd.routingSidecar.prefillRetries: llm-d 0.8.0 has no retries (0.9.0 has); set 0",
    ),
    "15 a failure mode that nobody has": (
        layer(inferencePool={"failureMode": "FailClosed"}),
        "at '/inferencePool/failureMode': value must be one of 'FailClose', 'FailOpen'",
    ),
    "16 a scorer that nobody has": (
        picked(profiles={"decode": {"scorers": {"semantic-scorer": 1}}}),
        "llmd.endpointPicker.profiles.decode.scorers.semantic-scorer: llm-d has no such scorer; set one of docs/values.md",
    ),
    "16 a weight below nothing": (
        picked(profiles={"decode": {"scorers": {"queue-scorer": -1}}}),
        "at '/endpointPicker/profiles/decode/scorers/queue-scorer': minimum: got -1, want 0",
    ),
    "20 a drain that ends at once": (
        layer(decode={"args": {"shutdown-timeout": 0}}),
        "llmd.decode.args.shutdown-timeout: set llmd.decode.drain.timeoutSeconds instead, which renders this flag",
    ),
    "20 a picker that drains longer than its pod lives": (
        picked(args={"drain-timeout": "1h"}),
        "llmd.endpointPicker.args.drain-timeout: set llmd.endpointPicker.drainSeconds instead, which renders this flag",
    ),
    "22 several leaders": (
        picked(replicas=2, args={"ha-enable-leader-election": False}),
        "llmd.endpointPicker.args.ha-enable-leader-election: set llmd.endpointPicker.replicas instead, which renders"
        " this flag",
    ),
    "25 the pool of another picker": (
        picked(args={"pool-name": "other-pool"}),
        f"llmd.endpointPicker.args.pool-name: {DERIVED}",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(render: Render, name: str) -> None:
    values, message = REFUSED[name]
    said = render.error(LLMD, values=values).strip().splitlines()
    assert f"- {message}" in said
    assert len(said) <= 5, "nothing else is wrong with these values"


PREFILL, DECODE = "Deployment/demo-llmd-prefill", "Deployment/demo-llmd-decode"
PICKER, CONFIG, PROXY = "Deployment/demo-picker", "ConfigMap/demo-picker", "ConfigMap/demo-proxy"
KEPT = [
    {"type": name}
    for name in (
        "prefill-filter",
        "decode-filter",
        "prefix-cache-scorer",
        "queue-scorer",
        "active-request-scorer",
    )
]
HANDLER = {
    "type": "disagg-profile-handler",
    "parameters": {"deciders": {"prefill": "prefix-based-pd-decider"}},
}


def plugins(*others: dict[str, Any]) -> dict[str, Any]:
    return picked(extraConfig={"plugins": [*KEPT, {"type": "max-score-picker"}, *others]})


def decider(**parameters: Any) -> dict[str, Any]:
    return {"type": "prefix-based-pd-decider", "parameters": parameters}


def profiles(*given: tuple[str, list[str]]) -> dict[str, Any]:
    built = [{"name": name, "plugins": [{"pluginRef": ref} for ref in refs]} for name, refs in given]
    return picked(extraConfig={"schedulingProfiles": built})


# Rows that open values can bring about: the values, and the rule that finds it in the release.
FOUND: dict[str, tuple[dict[str, Any], str, str]] = {
    "4 a decider without a number": (plugins(decider(), HANDLER), "LLMD045", CONFIG),
    "4 a decider that is told never": (plugins(decider(nonCachedTokens=0), HANDLER), "LLMD045", CONFIG),
    "4 a handler without a decider": (plugins({"type": "disagg-profile-handler"}), "LLMD045", CONFIG),
    "4 no profile for prefill": (profiles(("decode", ["decode-filter"])), "LLMD045", CONFIG),
    "4 no profile for decode": (profiles(("prefill", ["prefill-filter"])), "LLMD046", CONFIG),
    "4 no profile at all": (picked(extraConfig={"schedulingProfiles": []}), "LLMD046", CONFIG),
    "3 profiles without filters": (
        profiles(("prefill", ["queue-scorer"]), ("decode", ["queue-scorer"])),
        "LLMD047",
        CONFIG,
    ),
    "5 prefill on the port of decode": (
        layer(prefill={"extraContainerSpec": {"args": ["Qwen/Qwen3-8B", "--port=8200"]}}),
        "LLMD055",
        PICKER,
    ),
    "5 no sidecar": (layer(decode={"extraPodSpec": {"initContainers": []}}), "LLMD055", PICKER),
    "6 decode on a port of its own": (
        layer(decode={"extraContainerSpec": {"args": ["Qwen/Qwen3-8B", "--port=8300"]}}),
        "LLMD006",
        DECODE,
    ),
    "8 an engine without a connector": (
        layer(decode={"extraContainerSpec": {"args": ["Qwen/Qwen3-8B", "--port=8200"]}}),
        "KV020",
        DECODE,
    ),
    "11 a side channel on loopback": (
        layer(prefill={"env": {"VLLM_NIXL_SIDE_CHANNEL_HOST": "localhost"}}),
        "KV040",
        PREFILL,
    ),
    "11 no side channel's host": (
        layer(prefill={"env": {"VLLM_NIXL_SIDE_CHANNEL_HOST": None}}),
        "KV040",
        PREFILL,
    ),
    "14 an option of another release": (sidecar_args(decode_node_port=1), "LLMD003", DECODE),
    "14 a picker's option of another release": (
        picked(args={"model-server-metrics-port": 9000}),
        "LLMD030",
        PICKER,
    ),
    "14 an image that is older than its flags": (
        layer(routingSidecar={"image": {"tag": "v0.9.0"}}),
        "LLMD003",
        DECODE,
    ),
    "14 a picker that is older than its configuration": (picked(image={"tag": "v0.8.0"}), "LLMD040", CONFIG),
    "14 a configuration of a later release": (
        picked(extraConfig={"apiVersion": "llm-d.ai/v1"}),
        "LLMD040",
        CONFIG,
    ),
    "14 an image whose package is gone": (
        layer(routingSidecar={"image": {"repository": "ghcr.io/llm-d/llm-d-routing-sidecar"}}),
        "LLMD014",
        DECODE,
    ),
    "16 a plugin that nobody has": (
        plugins(decider(nonCachedTokens=16), HANDLER, {"type": "semantic-scorer"}),
        "LLMD041",
        CONFIG,
    ),
    "16 a reference to nothing": (
        profiles(("prefill", ["prefill-filter", "other"]), ("decode", ["decode-filter"])),
        "LLMD042",
        CONFIG,
    ),
    "16 a key that nobody reads": (picked(extraConfig={"profiles": []}), "LLMD043", CONFIG),
    "16 several decode engines for one request": (
        picked(
            extraConfig={
                "plugins": [
                    *KEPT,
                    {"type": "max-score-picker", "parameters": {"maxNumOfEndpoints": 2}},
                    decider(nonCachedTokens=16),
                    HANDLER,
                ]
            }
        ),
        "LLMD048",
        CONFIG,
    ),
    "16 an order of stages that takes no decider": (
        plugins(
            decider(nonCachedTokens=16),
            {"type": HANDLER["type"], "parameters": {**HANDLER["parameters"], "stageOrder": "prefill-first"}},  # type: ignore[dict-item]
        ),
        "LLMD052",
        CONFIG,
    ),
    "17 a precise index without events": (
        plugins(decider(nonCachedTokens=16), HANDLER, {"type": "precise-prefix-cache-producer"}),
        "LLMD051",
        CONFIG,
    ),
    "18 a probe of the sidecar": (
        layer(decode={"extraContainerSpec": {"readinessProbe": {"httpGet": {"port": 8000}}}}),
        "LLMD008",
        DECODE,
    ),
    "19 connections that close early": (
        layer(prefill={"env": {"VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "5"}}),
        "LLMD009",
        PREFILL,
    ),
    "20 a pod that ends before its engine": (
        layer(decode={"extraPodSpec": {"terminationGracePeriodSeconds": 10}}),
        "RUN021",
        DECODE,
    ),
    "24 a tag that moves": (picked(image={"tag": "latest"}), "SEC003", PICKER),
    "24 a tag that is the head of development": (
        layer(routingSidecar={"image": {"tag": "main"}}),
        "SEC003",
        DECODE,
    ),
    "26 transfer to a slice of a card": (
        layer(decode={"resources": {"extended": {"nvidia.com/gpumem": 20000}}}),
        "SHR019",
        DECODE,
    ),
}


@dataclass(frozen=True)
class Written:
    """A change that somebody makes by hand to the manifests of a release, and the rule that finds it, and where."""

    change: Change
    rule: str
    place: str
    values: dict[str, Any]


def template(objects: dict[str, Any], workload: str) -> Any:
    return objects[workload]["spec"]["template"]


def role_label(workload: str, value: str | None) -> Change:
    def change(objects: dict[str, Any]) -> None:
        metadata = template(objects, workload)["metadata"]
        metadata["labels"].pop("llm-d.ai/role")
        if value is not None:
            metadata["labels"]["llm-d.ai/role"] = value

    return change


def argument(workload: str, old: str, new: str, containers: str = "containers") -> Change:
    """Another argument in place of one; "" takes it away."""

    def change(objects: dict[str, Any]) -> None:
        container = template(objects, workload)["spec"][containers][0]
        assert old in container["args"]
        container["args"] = [new if item == old else item for item in container["args"] if new or item != old]

    return change


def beside(old: str, new: str) -> Change:
    return argument(DECODE, old, new, "initContainers")


def replaced(object_id: str, key: str, old: str, new: str) -> Change:
    def change(objects: dict[str, Any]) -> None:
        assert old in objects[object_id]["data"][key]
        objects[object_id]["data"][key] = objects[object_id]["data"][key].replace(old, new)

    return change


def both(*changes: Change) -> Change:
    def change(objects: dict[str, Any]) -> None:
        for one in changes:
            one(objects)

    return change


def transfer(workload: str, old: str, new: str) -> Change:
    def change(objects: dict[str, Any]) -> None:
        (container,) = template(objects, workload)["spec"]["containers"]
        assert old in str(container["args"])
        container["args"] = [item.replace(old, new) for item in container["args"]]

    return change


def pool(**given: Any) -> Change:
    def change(objects: dict[str, Any]) -> None:
        objects["InferencePool/demo-pool"]["spec"].update(given)

    return change


def gone(object_id: str) -> Change:
    def change(objects: dict[str, Any]) -> None:
        del objects[object_id]

    return change


def ordinary(objects: dict[str, Any]) -> None:
    spec = template(objects, DECODE)["spec"]
    (found,) = spec.pop("initContainers")
    spec["containers"].append({key: value for key, value in found.items() if key != "restartPolicy"})


def blocking(objects: dict[str, Any]) -> None:
    del template(objects, DECODE)["spec"]["initContainers"][0]["restartPolicy"]


def two_pickers(objects: dict[str, Any]) -> None:
    objects[PICKER]["spec"]["replicas"] = 2


WRITTEN: dict[str, Written] = {
    "1 a pool that selects nothing": Written(
        pool(selector={"matchLabels": {"app": "chat"}}), "LLMD022", "InferencePool/demo-pool", POOL
    ),
    "2 a prefill engine without a role": Written(role_label(PREFILL, None), "LLMD023", PREFILL, {}),
    "2 a role that is misspelt": Written(role_label(PREFILL, "prefiller"), "LLMD023", PREFILL, POOL),
    "3 a prefill engine that is called decode": Written(role_label(PREFILL, "decode"), "KV015", PREFILL, {}),
    "3 the same in a pool": Written(role_label(PREFILL, "decode"), "KV015", PREFILL, POOL),
    "4 a decider that is told never": Written(
        replaced(CONFIG, "picker.yaml", "nonCachedTokens: 256", "nonCachedTokens: 0"), "LLMD045", CONFIG, {}
    ),
    "5 a pool past the sidecar": Written(
        both(pool(targetPorts=[{"number": 8200}]), argument(PREFILL, "--port=8000", "--port=8200")),
        "LLMD021",
        "InferencePool/demo-pool",
        POOL,
    ),
    "5 a picker past the sidecar": Written(
        both(
            argument(PICKER, "--endpoint-target-ports=8000", "--endpoint-target-ports=8200"),
            argument(PREFILL, "--port=8000", "--port=8200"),
        ),
        "LLMD021",
        PICKER,
        {},
    ),
    "5 prefill on the port of decode": Written(
        argument(PREFILL, "--port=8000", "--port=8200"), "LLMD020", "InferencePool/demo-pool", POOL
    ),
    "6 another port of the engine": Written(
        beside("--model-server-port=8200", "--model-server-port=8201"), "LLMD006", DECODE, {}
    ),
    "7 another protocol": Written(
        beside("--kv-connector=nixlv2", "--kv-connector=shared-storage"), "LLMD005", DECODE, {}
    ),
    "7 no protocol told": Written(
        beside("--kv-connector=mooncake", ""), "LLMD005", DECODE, vllm(kvTransfer=TCP)
    ),
    "8 two producers": Written(transfer(DECODE, "kv_consumer", "kv_producer"), "KV015", DECODE, {}),
    "9 ranks that do not divide": Written(
        argument(DECODE, "--tensor-parallel-size=4", "--tensor-parallel-size=3"),
        "KV026",
        DECODE,
        layer(prefill={"parallelism": {"tensor": 2}}, decode={"parallelism": {"tensor": 4}}),
    ),
    "10 a model on one side": Written(
        argument(DECODE, "Qwen/Qwen3-8B", "Qwen/Qwen3-4B"), "KV023", DECODE, {}
    ),
    "12 HTTPS by default": Written(beside("--secure-proxy=false", ""), "LLMD007", DECODE, {}),
    "12 HTTPS to a plain prefill": Written(
        beside("--secure-proxy=false", "--enable-tls=prefiller"), "LLMD013", DECODE, {}
    ),
    "12 clients that steer": Written(
        replaced(PROXY, "envoy.yaml", "- remove: x-prefiller-host-port", ""), "LLMD062", PROXY, {}
    ),
    "12 bodies that nobody answers": Written(
        replaced(PROXY, "envoy.yaml", "FULL_DUPLEX_STREAMED", "BUFFERED"), "LLMD060", PROXY, {}
    ),
    "12 a route that ends after 15 seconds": Written(
        replaced(
            PROXY,
            "envoy.yaml",
            "cluster: engines\n                            timeout: 1800s",
            "cluster: engines",
        ),
        "LLMD061",
        PROXY,
        {},
    ),
    "13 protection that may not read the pool": Written(
        gone("RoleBinding/demo-llmd-decode"), "LLMD035", DECODE, PROTECTED
    ),
    "13 protection of no pool": Written(
        beside("--inference-pool=default/demo-pool", ""), "LLMD036", DECODE, PROTECTED
    ),
    "15 a failure mode that nobody has": Written(
        pool(
            endpointPickerRef={"name": "demo-picker", "port": {"number": 9002}, "failureMode": "FailClosed"}
        ),
        "LLMD027",
        "InferencePool/demo-pool",
        POOL,
    ),
    "21 nine ports": Written(
        pool(targetPorts=[{"number": port} for port in range(8000, 8009)]),
        "LLMD028",
        "InferencePool/demo-pool",
        POOL,
    ),
    "22 pickers side by side": Written(two_pickers, "LLMD037", PICKER, {}),
    "23 a sidecar that blocks": Written(blocking, "LLMD001", DECODE, {}),
    "23 a sidecar that cuts streams": Written(ordinary, "LLMD002", DECODE, {}),
    "25 a pool whose picker serves another": Written(
        argument(PICKER, "--pool-name=demo-pool", "--pool-name=other"), "LLMD032", PICKER, POOL
    ),
}


def told(objects: dict[str, Any]) -> set[tuple[str, str]]:
    """What the linter finds: rule and object."""
    documents = tuple(Document(f"{name}.yaml", "kubernetes", tree) for name, tree in objects.items())
    context = rules.Context(Release(documents), "1.35.0")
    return {(finding.rule_id, finding.object) for finding in rules.run(context)}


@pytest.mark.parametrize("name", FOUND)
def test_found_in_a_release(render: Render, name: str) -> None:
    values, rule, place = FOUND[name]
    assert (rule, place) in told(dict(render(LLMD, values=values).by_id))


@pytest.mark.parametrize("name", WRITTEN)
def test_found_in_manifests(render: Render, name: str) -> None:
    written = WRITTEN[name]
    objects = copy.deepcopy(dict(render(LLMD, values=written.values).by_id))
    assert (written.rule, written.place) not in told(objects)
    written.change(objects)
    assert (written.rule, written.place) in told(objects)


@pytest.mark.parametrize("setting", SETTINGS)
def test_nothing_is_found_in_what_the_chart_renders(rendered: dict[str, Objects], setting: str) -> None:
    assert told(dict(rendered[setting].by_id)) == set()


def test_every_row_is_here() -> None:
    named = {int(name.split()[0]) for table in (REFUSED, FOUND, WRITTEN) for name in table}
    constructed = {number for numbers in CONSTRUCTED for number in numbers}
    assert named | constructed == set(ROWS)
