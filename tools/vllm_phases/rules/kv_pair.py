"""KV: prefill and decode engines that belong together, and what they must agree on."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Severity
from vllm_phases.model import Engine, Release, relations
from vllm_phases.rules import kv
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Argument, KvTransfer

_SETTINGS = ("dtype", "kv-cache-dtype", "attention-backend")
_HYBRID = "disable-hybrid-kv-cache-manager"
_DRAFTING = ("eagle", "mtp")
_SAME = {"fp8_e4m3": "fp8", "half": "float16", "float": "float32"}
_OPTIONS = {"backends": ["UCX"], "mooncake_protocol": "rdma", "enable_cross_layers_blocks": False}
_P2P_PORT = 14579
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?")
_GROUP = 32  # engines of one script that are compared with each other


@rule("KV020", "connector-on-one-side", Severity.ERROR, scope=Release)
def connector_on_one_side(release: Release, context: Context) -> Iterator[Problem]:
    """A prefill or decode engine without a KV connector.

    Why:
        Every request is answered with 200 all the same, and decode computes the whole prompt again:
        `Got kv_transfer_params, but no KVConnector found` is one line in its log.

    Bad:
        ```yaml
        metadata: {labels: {role: prefill}}
        spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}
        ---
        metadata: {labels: {role: decode}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ---
        apiVersion: inference.networking.k8s.io/v1
        kind: InferencePool
        metadata: {name: demo}
        spec: {selector: {matchLabels: {}}, targetPorts: [{number: 8000}]}
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: one-prefill}
        spec: {template: {spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}}}
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: one-decode}
        spec:
          template:
            spec:
              containers:
                - name: vllm
                  image: vllm/vllm-openai:v0.33.0
                  args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ```

    Good:
        ```sh
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```

    References:
        - https://github.com/kserve/kserve/issues/5987
    """
    told: set[int] = set()
    for pair in relations.pairs(release):
        for engine, other in (pair, pair[::-1]):
            lacks = engine.kv is None and "kv-offloading-backend" not in engine.arguments
            if lacks and not engine.arguments.open and id(engine) not in told:
                told.add(id(engine))
                here, there = kv.names(engine, other)
                message = f"{here} has no KV connector, so no KV goes between it and {there}"
                fix = f"Give --kv-transfer-config to both, with kv_role {_role(engine)} here."
                yield Problem(engine.start or engine.node, message, fix, _weight(release, engine, other))


def _role(engine: Engine) -> str:
    return "kv_producer" if engine.role == "prefill" else "kv_consumer"


def _weight(release: Release, engine: Engine, other: Engine) -> Severity | None:
    """Sure when the other one has a connector, or something hands requests from one to the other."""
    if not kv.as_written(engine.pod):
        return Severity.WARNING
    disaggregates = any(relations.sidecar_of(release, each) for each in (engine, other)) or any(
        "prefill" in router.arguments and engine in relations.routed(release, router)
        for router in release.routers
    )
    return None if other.kv or disaggregates else Severity.WARNING


@rule("KV021", "connectors-differ", Severity.ERROR, scope=Release)
def connectors_differ(release: Release, context: Context) -> Iterator[Problem]:
    """Prefill and decode whose connectors cannot talk to each other.

    Why:
        NIXL, Mooncake and P2pNccl are different protocols, and so are NIXL that pushes and NIXL that pulls: no KV
        is transferred, or the request fails.

    Bad:
        ```sh
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"MooncakeConnector","kv_role":"kv_consumer"}'
        ```
        ```sh
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"NixlPushConnector","kv_role":"kv_producer"}' &
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```

    Good:
        ```sh
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"NixlPullConnector","kv_role":"kv_producer"}' &
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```

    References:
        - docs/features/nixl_connector_usage.md
    """
    for prefill, decode in relations.pairs(release):
        ways, others = _ways(prefill, context), _ways(decode, context)
        if ways is None or others is None or ways.keys() & others.keys() or not (ways or others):
            continue
        given, wanted = (_shown(engine, side) for engine, side in ((prefill, ways), (decode, others)))
        if given and wanted:
            message = f"prefill has {given.connector} and decode has {wanted.connector}, which cannot talk"
            yield Problem(wanted.key("kv_connector"), message, "Set the same kv_connector on both.")


def _ways(engine: Engine, context: Context) -> dict[tuple[str, str], KvTransfer] | None:
    """The connectors that hand KV over, by protocol and mode; None where not every connector is known."""
    found = {}
    for transfer in kv.transfers(engine):
        fact = kv.fact(transfer, context)
        if not fact:
            return None
        if fact.get("protocol"):
            found[fact["protocol"], fact.get("mode", "")] = transfer
    return found


def _shown(engine: Engine, ways: dict[tuple[str, str], KvTransfer]) -> KvTransfer | None:
    """The connector to name in a message: one that hands KV over, or else the engine's own."""
    return next(iter(ways.values()), next(kv.transfers(engine), None))


@rule("KV022", "engine-versions-differ", Severity.ERROR, scope=Release)
def engine_versions_differ(release: Release, context: Context) -> Iterator[Problem]:
    """Prefill and decode of different vLLM releases.

    Why:
        What they exchange changes between releases. NIXL compares the version first: `NIXL compatibility hash
        mismatch`, and the request fails while both pods are healthy.

    Bad:
        ```compose
        services:
          prefill:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
          decode:
            image: vllm/vllm-openai:v0.32.0
            command: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ```

    Good:
        ```compose
        services:
          prefill:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
          decode:
            image: vllm/vllm-openai:v0.33.0-efa
            command: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ```

    References:
        - https://github.com/vllm-project/vllm/pull/29503
    """
    for prefill, decode in relations.pairs(release):
        if not prefill.version or not decode.version or not (prefill.kv and decode.kv):
            continue
        given, other = (_numbers(engine.version.text) for engine in (prefill, decode) if engine.version)
        if given != other:
            message = f"prefill runs vLLM {given} and decode runs {other}"
            severity = None if _compared(prefill, decode, context) else Severity.WARNING
            yield Problem(decode.version.node, message, "Run the same image on both.", severity)


def _numbers(version: str) -> str:
    """A version without what stands around its numbers."""
    match = _VERSION.search(version)
    return f"{match[0]}.0" if match and match[0].count(".") == 1 else match[0] if match else version


def _compared(prefill: Engine, decode: Engine, context: Context) -> bool:
    """Whether NIXL compares both sides when they meet, and refuses those that differ."""
    for engine in (prefill, decode):
        nixl = kv.over(engine, "nixl", context)
        if nixl is None or kv.within(engine, "0.14.0") is False:
            return False
        if kv.option(nixl, "enforce_handshake_compat", True) is not True:
            return False
    return True


@rule("KV023", "models-differ", Severity.ERROR, scope=Release)
def models_differ(release: Release, context: Context) -> Iterator[Problem]:
    """Prefill and decode that are given different models, or the same one by different names.

    Why:
        NIXL compares the text of the model argument, so /models/qwen and Qwen/Qwen3-8B do not match even when
        they are the same weights: `NIXL compatibility hash mismatch`, 500 for every long prompt. Other
        connectors do not look, and hand over KV of another model.

    Bad:
        ```sh
        vllm serve /models/qwen --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```

    Good:
        ```sh
        vllm serve /models/qwen --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve /models/qwen --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```

    References:
        - https://github.com/vllm-project/vllm/pull/29503
    """
    for prefill, decode in relations.pairs(release):
        given, other = prefill.model, decode.model
        if given and other and given != other and prefill.kv and decode.kv:
            message = f"prefill serves {given} and decode serves {other}"
            severity = None if _compared(prefill, decode, context) else Severity.WARNING
            where = decode.arguments.last("model") or next(iter(decode.arguments.positionals), decode.node)
            yield Problem(where, message, "Give both the same model by the same name or path.", severity)


@rule("KV024", "cache-settings-differ", Severity.ERROR, scope=Release)
def cache_settings_differ(release: Release, context: Context) -> Iterator[Problem]:
    """Prefill and decode whose KV caches do not look alike.

    Why:
        The dtype of model and cache and the attention backend decide what a block of KV holds. NIXL compares them
        and refuses; other connectors hand over what decode reads wrongly.

    Bad:
        ```sh
        vllm serve Qwen/Qwen3-8B --kv-cache-dtype fp8 \
          --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve Qwen/Qwen3-8B --kv-cache-dtype bfloat16 \
          --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```

    Good:
        ```sh
        vllm serve Qwen/Qwen3-8B --kv-cache-dtype fp8 \
          --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve Qwen/Qwen3-8B --kv-cache-dtype fp8 \
          --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```

    References:
        - https://github.com/vllm-project/vllm/pull/29503
    """
    for prefill, decode in relations.pairs(release):
        for flag in _SETTINGS if prefill.kv and decode.kv else ():
            given, other = _setting(prefill, flag), _setting(decode, flag)
            where = decode.arguments.last(flag) or prefill.arguments.last(flag)
            if given is None or other is None or given == other or where is None:
                continue
            sure = _compared(prefill, decode, context) and "auto" not in (given, other)
            message = f"--{flag} is {given} on prefill and {other} on decode"
            severity = None if sure else Severity.WARNING
            yield Problem(where, message, f"Set the same --{flag} on both.", severity)


def _setting(engine: Engine, flag: str) -> str | None:
    """A setting as it is compared, "auto" where the engine decides; None where it cannot be known."""
    if flag not in engine.arguments:
        return None if engine.arguments.open else "auto"
    value = engine.arguments.text(flag)
    return None if value is None else _SAME.get(value.lower(), value.lower())


@rule("KV033", "hybrid-cache-on-one-side", Severity.ERROR, scope=Release)
def hybrid_cache_on_one_side(release: Release, context: Context) -> Iterator[Problem]:
    """The hybrid KV cache manager turned on by one of prefill and decode, and off by the other.

    Why:
        It decides how blocks are laid out for layers with a window. NIXL compares it: `NIXL compatibility hash
        mismatch`.

    Bad:
        ```sh
        vllm serve openai/gpt-oss-20b --disable-hybrid-kv-cache-manager \
          --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve openai/gpt-oss-20b --no-disable-hybrid-kv-cache-manager \
          --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```

    Good:
        ```sh
        vllm serve openai/gpt-oss-20b --enable-hybrid-kv-cache-manager \
          --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve openai/gpt-oss-20b --no-disable-hybrid-kv-cache-manager \
          --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```

    References:
        - https://github.com/vllm-project/vllm/pull/29503
    """
    for prefill, decode in relations.pairs(release):
        given, other = _hybrid(prefill), _hybrid(decode)
        where = decode.arguments.last(_HYBRID) or prefill.arguments.last(_HYBRID)
        if given == other or where is None or any(engine.arguments.open for engine in (prefill, decode)):
            continue
        sure = _compared(prefill, decode, context) and None not in (given, other)
        words = {True: "on", False: "off", None: "left to vLLM"}
        message = f"the hybrid KV cache is {words[given]} on prefill and {words[other]} on decode"
        severity = None if sure else Severity.WARNING
        yield Problem(where, message, "Give both the same flag for the hybrid KV cache.", severity)


def _hybrid(engine: Engine) -> bool | None:
    """Whether the flags turn the hybrid KV cache on or off; None where they do not speak of it."""
    flag = engine.arguments.last(_HYBRID)
    if flag is None or flag.attached:
        return None
    return kv.wants_hybrid(flag.written)


@rule("KV025", "speculation-differs", Severity.ERROR, scope=Release)
def speculation_differs(release: Release, context: Context) -> Iterator[Problem]:
    """EAGLE or MTP on one of prefill and decode only, or with different draft models.

    Why:
        Their layers have KV too, so the caches differ. NIXL refuses such a pair where it compares, and otherwise
        decode crashes on long prompts.

    Bad:
        ```sh
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}' \
          --speculative-config '{"method":"eagle3","model":"draft/qwen3","num_speculative_tokens":3}'
        ```

    Good:
        ```sh
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}' \
          --speculative-config '{"method":"ngram","num_speculative_tokens":3}'
        ```

    References:
        - https://github.com/vllm-project/vllm/pull/49230
    """
    for prefill, decode in relations.pairs(release):
        if not kv.over(prefill, "nixl", context) or not kv.over(decode, "nixl", context):
            continue
        given, other = _drafting(prefill), _drafting(decode)
        where = _speculation(decode) or _speculation(prefill)
        if given is not None and other is not None and given != other and where:
            message = f"prefill drafts with {_said(given)} and decode with {_said(other)}"
            yield Problem(where, message, "Give both the same --speculative-config.")


def _speculation(engine: Engine) -> Argument | None:
    return engine.arguments.last("speculative-config")


def _drafting(engine: Engine) -> tuple[str, str] | None:
    """Method and draft model where the draft has KV, ("", "") without one; None where it cannot be known."""
    if _speculation(engine) is None:
        return None if engine.arguments.open else ("", "")
    config = engine.arguments.object("speculative-config")
    if config is None or not all(map(kv.known, config.values())):
        return None
    method = str(config.get("method") or "")
    if not method:
        return None
    drafts = any(part in method for part in _DRAFTING)
    return (method, str(config.get("model") or "")) if drafts else ("", "")


def _said(drafting: tuple[str, str]) -> str:
    return " ".join(filter(None, drafting)) or "nothing"


@rule("KV026", "tensor-parallel-ratio", Severity.ERROR, scope=Release)
def tensor_parallel_ratio(release: Release, context: Context) -> Iterator[Problem]:
    """Tensor parallel sizes of prefill and decode of which neither divides the other.

    Why:
        A rank's KV heads go to whole ranks of the other side. Before 0.14 NIXL also refused a prefiller with the
        larger size, and before 0.19 Mooncake every difference.

    Bad:
        ```sh
        vllm serve Qwen/Qwen3-8B -tp 2 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve Qwen/Qwen3-8B -tp 3 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```
        ```compose
        services:
          prefill:
            image: vllm/vllm-openai:v0.13.0
            command: [m, -tp=4, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
          decode:
            image: vllm/vllm-openai:v0.13.0
            command: [m, -tp=1, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ```
        ```compose
        services:
          prefill:
            image: vllm/vllm-openai:v0.18.1
            command: [m, -tp=1, '--kv-transfer-config={"kv_connector":"MooncakeConnector","kv_role":"kv_producer"}']
          decode:
            image: vllm/vllm-openai:v0.18.1
            command: [m, -tp=4, '--kv-transfer-config={"kv_connector":"MooncakeConnector","kv_role":"kv_consumer"}']
        ```

    Good:
        ```sh
        vllm serve Qwen/Qwen3-8B -tp 4 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve Qwen/Qwen3-8B -tp 2 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```

    References:
        - docs/features/nixl_connector_compatibility.md
        - https://github.com/vllm-project/vllm/issues/43523
    """
    for prefill, decode in relations.pairs(release):
        protocols = {kv.protocol_of(engine, context) for engine in (prefill, decode)}
        given, other = (engine.number("tensor-parallel-size") for engine in (prefill, decode))
        if not given or not other or len(protocols) > 1 or not protocols & {"nixl", "mooncake"}:
            continue
        where = decode.arguments.last("tensor-parallel-size") or prefill.arguments.last(
            "tensor-parallel-size"
        )
        message = f"the tensor parallel size is {given} on prefill and {other} on decode"
        if max(given, other) % min(given, other):
            yield Problem(where or decode.node, message, "Set sizes of which one divides the other.")
        elif (
            given > other and "nixl" in protocols and kv.has(decode, "nixlPrefillTpLarger", context) is False
        ):
            fix = "Give prefill no larger size than decode, or run 0.14 or newer."
            yield Problem(where or decode.node, message, fix)
        elif (
            given != other
            and "mooncake" in protocols
            and kv.has(decode, "mooncakeTensorDiffers", context) is False
        ):
            yield Problem(where or decode.node, message, "Set equal sizes, or run 0.19 or newer.")


@rule("KV027", "block-sizes-differ", Severity.ERROR, scope=Release)
def block_sizes_differ(release: Release, context: Context) -> Iterator[Problem]:
    """Prefill and decode with different block sizes.

    Why:
        KV moves in blocks. NIXL can split decode's larger blocks, without the hybrid KV cache and with the smaller
        tensor parallel size on prefill; any other difference is refused.

    Bad:
        ```sh
        vllm serve m --block-size 64 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve m --block-size 16 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```

    Good:
        ```sh
        vllm serve m --block-size 64 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve m --block-size 64 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```

    References:
        - docs/features/nixl_connector_compatibility.md
        - https://github.com/vllm-project/vllm/issues/42895
    """
    for prefill, decode in relations.pairs(release):
        given, other = (engine.arguments.number("block-size") for engine in (prefill, decode))
        where = decode.arguments.last("block-size")
        if not given or not other or given == other or not where or not (prefill.kv and decode.kv):
            continue
        protocol = kv.protocol_of(decode, context)
        splits = protocol == "nixl" and given < other
        message = f"--block-size is {given} on prefill and {other} on decode"
        severity = Severity.WARNING if splits or not protocol else None
        yield Problem(where, message, "Set the same --block-size on both.", severity)


@rule("KV028", "connector-options-differ", Severity.ERROR, scope=Release)
def connector_options_differ(release: Release, context: Context) -> Iterator[Problem]:
    """Connector options that must be the same on prefill and decode, but are not.

    Why:
        Backends of NIXL and protocols of Mooncake must meet, and cross-layer blocks change the layout of the cache.

    Bad:
        ```sh
        vllm serve m --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_connector_extra_config":{"backends":["LIBFABRIC"]}}' &
        vllm serve m --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```
        ```sh
        vllm serve m --kv-transfer-config '{"kv_connector":"MooncakeConnector","kv_role":"kv_producer","kv_connector_extra_config":{"mooncake_protocol":"tcp"}}' &
        vllm serve m --kv-transfer-config '{"kv_connector":"MooncakeConnector","kv_role":"kv_consumer"}'
        ```

    Good:
        ```sh
        vllm serve m --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_connector_extra_config":{"backends":["UCX"]}}' &
        vllm serve m --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```

    References:
        - https://github.com/ai-dynamo/dynamo/issues/10027
    """
    for prefill, decode in relations.pairs(release):
        for one, other in _facing(prefill, decode, context):
            for key, default in _OPTIONS.items():
                given, wanted = kv.option(one, key, default), kv.option(other, key, default)
                read = key in (kv.fact(one, context).get("keys") or {})
                if read and None not in (given, wanted) and not _agree(given, wanted):
                    message = f"{key} is {given} on prefill and {wanted} on decode"
                    yield Problem(other.option(key), message, f"Set the same {key} on both.")


def _facing(prefill: Engine, decode: Engine, context: Context) -> Iterator[tuple[KvTransfer, KvTransfer]]:
    """The two connectors by which KV goes from prefill to decode."""
    ways, others = _ways(prefill, context) or {}, _ways(decode, context) or {}
    for way in ways.keys() & others.keys():
        yield ways[way], others[way]


def _agree(given: Any, wanted: Any) -> bool:
    if isinstance(given, list) and isinstance(wanted, list):
        return bool(set(map(str, given)) & set(map(str, wanted)))
    return str(given).lower() == str(wanted).lower()


@rule("KV029", "one-way-only", Severity.WARNING, scope=Release)
def one_way_only(release: Release, context: Context) -> Iterator[Problem]:
    """bidirectional_kv_xfer on one of prefill and decode only.

    Why:
        KV goes back from decode to prefill only when both were told so; else later turns are computed again.

    Bad:
        ```sh
        vllm serve m --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve m --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer","kv_connector_extra_config":{"bidirectional_kv_xfer":true}}'
        ```

    Good:
        ```sh
        vllm serve m --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_connector_extra_config":{"bidirectional_kv_xfer":true}}' &
        vllm serve m --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer","kv_connector_extra_config":{"bidirectional_kv_xfer":true}}'
        ```

    References:
        - docs/features/nixl_connector_usage.md
    """
    for prefill, decode in relations.pairs(release):
        for one, other in _facing(prefill, decode, context):
            given, wanted = (kv.option(each, "bidirectional_kv_xfer", default=False) for each in (one, other))
            if None not in (given, wanted) and bool(given) != bool(wanted):
                lacking = other if given else one
                message = "bidirectional_kv_xfer is set on the other side only"
                yield Problem(lacking.argument, message, "Set bidirectional_kv_xfer on both, or on neither.")


@rule("KV030", "cache-layouts-differ", Severity.ERROR, scope=Release)
def cache_layouts_differ(release: Release, context: Context) -> Iterator[Problem]:
    """Prefill and decode with different VLLM_KV_CACHE_LAYOUT.

    Why:
        NIXL refuses another layout than its own, unless decode is told to permute (enable_permute_local_kv).

    Bad:
        ```compose
        services:
          prefill:
            image: vllm/vllm-openai:v0.27.0
            command: [m, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
            environment: {VLLM_KV_CACHE_LAYOUT: NHD}
          decode:
            image: vllm/vllm-openai:v0.27.0
            command: [m, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
            environment: {VLLM_KV_CACHE_LAYOUT: HND}
        ```

    Good:
        ```compose
        services:
          prefill:
            image: vllm/vllm-openai:v0.27.0
            command: [m, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
            environment: {VLLM_KV_CACHE_LAYOUT: HND}
          decode:
            image: vllm/vllm-openai:v0.27.0
            command: [m, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
            environment: {VLLM_KV_CACHE_LAYOUT: HND}
        ```

    References:
        - docs/features/nixl_connector_compatibility.md
    """
    name = "VLLM_KV_CACHE_LAYOUT"
    for prefill, decode in relations.pairs(release):
        nixl = [kv.over(engine, "nixl", context) for engine in (prefill, decode)]
        given, other = prefill.variable(name), decode.variable(name)
        permuted = any(each.config.get("enable_permute_local_kv") for each in nixl if each)
        if all(nixl) and given and other and given != other and not permuted:
            message = f"{name} is {given} on prefill and {other} on decode"
            yield Problem(decode.variables[name], message, f"Set the same {name} on both.")


@rule("KV031", "kv-ports-meet", Severity.ERROR, scope=Release)
def kv_ports_meet(release: Release, context: Context) -> Iterator[Problem]:
    """Two listeners of engines that share a network on the same port.

    Why:
        HTTP, NIXL's side channel (one port a data parallel rank), Mooncake's bootstrap server, P2pNccl's kv_port
        (one a GPU) and KV events (one a rank) each need ports of their own: the second one to start ends with
        `Address already in use`. Engines of one pod, or one machine, share them.

    Bad:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}
          - --kv-events-config={"enable_kv_cache_events":true,"endpoint":"tcp://*:5600"}
        ```
        ```sh
        vllm serve m --port 8100 --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}' &
        vllm serve m --port 8200 --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_consumer"}'
        ```

    Good:
        ```sh
        export VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1
        VLLM_NIXL_SIDE_CHANNEL_PORT=5600 vllm serve m --port 8100 \
          --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        VLLM_NIXL_SIDE_CHANNEL_PORT=5601 vllm serve m --port 8200 \
          --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/20965
        - https://github.com/vllm-project/vllm/issues/44061
        - https://github.com/vllm-project/vllm/issues/25059
    """
    for group in _neighbours(release):
        listeners = [(engine, *found) for engine in group[:_GROUP] for found in _listeners(engine, context)]
        for (one, name, ports, _), (other, second, taken, where) in combinations(listeners, 2):
            shared = sorted(set(ports) & set(taken))
            if shared and {name, second} != {"HTTP"}:
                whose = "" if one is other else " of the engine beside it"
                message = f"{second} listens on port {shared[0]}, which {name}{whose} has"
                yield Problem(where, message, "Set another port for one of them.")


def _neighbours(release: Release) -> Iterator[list[Engine]]:
    """The engines that surely share a network, together."""
    places: dict[tuple[str, int], list[list[Engine]]] = {}
    for engine in release.engines:
        place = engine.node.document if engine.pod.platform in ("shell", "compose") else engine.pod
        groups = places.setdefault((engine.pod.platform, id(place)), [])
        home = next((group for group in groups[:16] if kv.one_network(group[0], engine)), None)
        if home is None:
            groups.append([engine])
        else:
            home.append(engine)
    for groups in places.values():
        yield from groups


def _listeners(engine: Engine, context: Context) -> Iterator[tuple[str, range, Argument | Engine]]:
    """What an engine listens on: its name, its ports, and where they are set."""
    ranks, cards = kv.local_ranks(engine), engine.gpus_needed
    if engine.port is not None:
        yield "HTTP", range(engine.port, engine.port + 1), engine.arguments.last("port") or engine
    nixl, side = kv.over(engine, "nixl", context), kv.side_channel_port(engine, context)
    if nixl and side and ranks:
        yield "NIXL's side channel", _from(side, ranks), nixl.argument
    mooncake, bootstrap = kv.over(engine, "mooncake", context), kv.bootstrap_port(engine)
    if mooncake and bootstrap and mooncake.role == "kv_producer":
        yield "Mooncake's bootstrap server", range(bootstrap, bootstrap + 1), mooncake.argument
    p2p = kv.over(engine, "p2pNccl", context)
    port = str(p2p.config.get("kv_port", _P2P_PORT)) if p2p else ""
    if p2p and port.isdecimal() and cards and kv.present(p2p, engine):
        yield "P2pNccl", range(int(port), int(port) + cards), p2p.argument
    events = kv.events_port(engine)
    flag = engine.arguments.last("kv-events-config")
    if events and ranks and flag:
        yield "the KV events", _from(events, ranks), flag


def _from(port: int, ranks: tuple[int, int]) -> range:
    """The ports of data parallel ranks, each at its own distance from the first."""
    first, count = ranks
    return range(port + first, port + first + count)


@rule("KV032", "kv-ports-meet-on-node", Severity.WARNING, scope=Release)
def kv_ports_meet_on_node(release: Release, context: Context) -> Iterator[Problem]:
    """Prefill and decode on the machine's network with the same KV port, so that they cannot share a node.

    Why:
        With hostNetwork each port is the node's. When both land on one node, the second does not start.

    Bad:
        ```yaml
        kind: Deployment
        apiVersion: apps/v1
        metadata: {name: one-prefill}
        spec:
          template:
            spec:
              hostNetwork: true
              containers:
                - name: vllm
                  image: vllm/vllm-openai:v0.33.0
                  args: [m, --port=8100, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ---
        kind: Deployment
        apiVersion: apps/v1
        metadata: {name: one-decode}
        spec:
          template:
            spec:
              hostNetwork: true
              containers:
                - name: vllm
                  image: vllm/vllm-openai:v0.33.0
                  args: [m, --port=8200, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ```

    Good:
        ```yaml
        kind: Deployment
        apiVersion: apps/v1
        metadata: {name: one-prefill}
        spec:
          template:
            spec:
              hostNetwork: true
              containers:
                - name: vllm
                  image: vllm/vllm-openai:v0.33.0
                  args: [m, --port=8100, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ---
        kind: Deployment
        apiVersion: apps/v1
        metadata: {name: one-decode}
        spec:
          template:
            spec:
              hostNetwork: true
              containers:
                - name: vllm
                  image: vllm/vllm-openai:v0.33.0
                  args: [m, --port=8200, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
                  env: [{name: VLLM_NIXL_SIDE_CHANNEL_PORT, value: "5700"}]
        ```

    References:
        - https://github.com/ray-project/ray/issues/60057
        - https://github.com/vllm-project/vllm-ascend/issues/4725
    """
    for prefill, decode in relations.pairs(release):
        pods = (prefill.pod, decode.pod)
        if not all(pod.platform == "kubernetes" and kv.host_network(pod) for pod in pods):
            continue
        if pods[0] is pods[1] or any(pod.spec.at("affinity", "podAntiAffinity") for pod in pods):
            continue
        for name, ports, _ in _listeners(prefill, context):
            for other, taken, where in _listeners(decode, context):
                if name == other != "HTTP" and set(ports) & set(taken):
                    message = f"{name} has port {ports[0]} on prefill and decode, which may share a node"
                    yield Problem(
                        where, message, "Give them different ports, or keep them on different nodes."
                    )
