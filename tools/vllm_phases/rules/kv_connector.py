"""KV: connectors by name, and the fields and options that they are given."""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Severity
from vllm_phases.model import Engine, relations
from vllm_phases.model.engine import is_official_image
from vllm_phases.rules import kv, repairs
from vllm_phases.rules.history import last_release
from vllm_phases.rules.registry import Context, Problem, rule
from vllm_phases.sources.changes import RenameKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.catalogue import EngineRelease
    from vllm_phases.model import KvTransfer
    from vllm_phases.sources.repair import Repair

_LITERAL = re.compile(r"'(\w+)'")
_DEAD_FIELDS = ("kv_rank", "kv_parallel_size", "kv_ip")
_P2P = "P2pNcclConnector"


@rule("KV001", "unknown-connector", Severity.ERROR, scope=Engine, versioned=True)
def unknown_connector(engine: Engine, context: Context) -> Iterator[Problem]:
    """A KV connector that the engine's release does not have.

    Why:
        The name is looked up when the engine is made, after the arguments were taken: `Unsupported connector
        type`, and the server never starts.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.24.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}']
        ```
        ```yaml
        image: vllm/vllm-openai:v0.12.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeConnector","kv_role":"kv_producer"}']
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NIXLConnector","kv_role":"kv_producer"}']
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ```
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - '--kv-transfer-config={"kv_connector":"Ours","kv_role":"kv_both","kv_connector_module_path":"our.kv"}'
        ```

    References:
        - vllm/distributed/kv_transfer/kv_connector/factory.py of the releases
        - https://github.com/vllm-project/vllm/pull/44854
    """
    release = engine.release
    for transfer in kv.transfers(engine):
        if release is None or transfer.config.get("kv_connector_module_path"):
            continue
        if transfer.connector not in release.connectors:
            severity = None if _is_sure(transfer, engine, release, context) else Severity.WARNING
            yield Problem(
                transfer.key("kv_connector"), *_connector_words(transfer, release, context), severity
            )


def _is_sure(transfer: KvTransfer, engine: Engine, release: EngineRelease, context: Context) -> bool:
    """Whether no plugin and no newer release brings the connector."""
    in_tree = transfer.connector in context.facts("kv_connectors")
    return (in_tree or is_official_image(engine.container.image)) and not release.newer_than_catalogue


def _connector_words(transfer: KvTransfer, release: EngineRelease, context: Context) -> tuple[str, str]:
    name = transfer.connector
    message = f"vLLM {release.version} has no KV connector {name}"
    if last := last_release(release.version, lambda earlier: name in earlier.connectors):
        instead = context.facts("kv_connectors").get(name, {}).get("renamed") or "NixlConnector"
        return f"{message} any more; {last} was the last release that had it", f"Set {instead}."
    if name in context.facts("kv_connectors"):
        return f"{message} yet", "Run a newer vLLM, or set NixlConnector."
    begun = [other for other in sorted(release.connectors) if other.startswith(name)]
    if near := begun or get_close_matches(name, sorted(release.connectors), 1):
        return f"{message}; did you mean {near[0]}?", f"Write {near[0]}."
    return message, "Set one of vLLM's connectors, or kv_connector_module_path to the module that has it."


@rule(
    "KV002",
    "unknown-kv-field",
    Severity.ERROR,
    scope=Engine,
    versioned=True,
    fix="with --unsafe-fixes, writes the field that it resembles most.",
)
def unknown_kv_field(engine: Engine, context: Context) -> Iterator[Problem]:
    """A field of --kv-transfer-config that the engine's release does not have.

    Why:
        The configuration is checked while the arguments are read and refuses what it does not know:
        `Unexpected keyword argument`, exit code 2, before anything starts.

    Bad:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_both","kv_rank":0}'
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --kv-transfer-config.kv_connector=NixlConnector, --kv-transfer-config.role=kv_both]
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.31.0
        args:
          - Qwen/Qwen3-8B
          - '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_both","kv_rank":0}'
        ```

    References:
        - vllm/config/kv_transfer.py of the releases
    """
    release = engine.release
    for transfer in engine.kv.all() if engine.kv and release else ():
        for name in transfer.config:
            if release and name not in release.kv_transfer_fields:
                message, fix, near = _field_words(name, release)
                repair = _field_respelt(engine, name, near) if near and transfer is engine.kv else None
                yield Problem(transfer.key(name), message, fix, repair=repair)


def _field_respelt(engine: Engine, name: str, near: str) -> Repair | None:
    """A field under the name that it resembles, where it is given."""
    options = engine.arguments.all("kv-transfer-config")
    given = [option for option in options if not option.keys or option.keys == (name,)]
    return repairs.json_key_respelt(given[-1], name, near) if given else None


def _field_words(name: str, release: EngineRelease) -> tuple[str, str, str | None]:
    """Message, remediation and the field that it resembles."""
    message = f"vLLM {release.version} has no field {name} in --kv-transfer-config"
    if last := last_release(release.version, lambda earlier: name in earlier.kv_transfer_fields):
        return f"{message} any more; {last} was the last release that had it", f"Remove {name}.", None
    if near := get_close_matches(name, sorted(release.kv_transfer_fields), 1):
        return f"{message}; did you mean {near[0]}?", f"Write {near[0]}.", near[0]
    fix = f"Remove {name}, or move it into kv_connector_extra_config if the connector reads it."
    return message, fix, None


@rule("KV003", "kv-role-missing", Severity.ERROR, scope=Engine)
def kv_role_missing(engine: Engine, context: Context) -> Iterator[Problem]:
    """A KV connector without kv_role.

    Why:
        vLLM refuses the configuration: `Please specify kv_role when kv_connector is set`.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector"}']
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ```

    References:
        - vllm/config/kv_transfer.py
    """
    for transfer in engine.kv.all() if engine.kv else ():
        if transfer.connector and not transfer.config.get("kv_role"):
            message = f"{transfer.connector} has no kv_role"
            fix = "Set kv_role: kv_producer for prefill, kv_consumer for decode, kv_both for a cache tier."
            yield Problem(transfer.argument, message, fix)


@rule("KV004", "bad-kv-value", Severity.ERROR, scope=Engine, versioned=True)
def bad_kv_value(engine: Engine, context: Context) -> Iterator[Problem]:
    """A value of --kv-transfer-config that its field does not take.

    Why:
        The configuration is checked while the arguments are read; the server does not start.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"prefill"}']
        ```
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - '--kv-transfer-config={"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both","kv_connector_extra_config":"{}"}'
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"$(ROLE)"}']
        ```

    References:
        - vllm/config/kv_transfer.py of the releases
    """
    for transfer in engine.kv.all() if engine.kv and engine.release else ():
        for name, value in transfer.config.items():
            field = engine.release.kv_transfer_fields.get(name) if engine.release else None
            if field and kv.known(value) and (wanted := _wanted(value, field.type)):
                message = f"{name} is {json.dumps(value)}, but must be {wanted}"
                yield Problem(transfer.key(name), message, f"Set {name} to {wanted}.")


def _wanted(value: Any, kind: str) -> str | None:
    """What a field of a type takes, where a value is not that."""
    if kind.startswith("Literal"):
        choices = _LITERAL.findall(kind)
        missing = value is None and kind.endswith("None")
        return None if value in choices or missing else f"one of {', '.join(choices)}"
    if kind.startswith("dict") and not isinstance(value, dict):
        return "an object"
    if kind == "int" and not re.fullmatch(r"-?\d+", str(value).strip()):
        return "a whole number"
    if kind.startswith("str") and isinstance(value, (dict, list)):
        return "a text"
    return None


@rule("KV005", "ignored-kv-field", Severity.WARNING, scope=Engine, versioned=True, fix="leaves them out.")
def ignored_kv_field(engine: Engine, context: Context) -> Iterator[Problem]:
    """A field of --kv-transfer-config that vLLM takes, but nothing reads.

    Why:
        kv_rank, kv_parallel_size and kv_ip were left from an engine that is gone: they wire prefill to decode no
        more, and 0.32.0 refuses them. kv_port is P2pNcclConnector's alone.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.23.0
        args:
          - Qwen/Qwen3-8B
          - '--kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer","kv_rank":0,"kv_parallel_size":2}'
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_both","kv_port":14579}']
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.23.0
        args:
          - Qwen/Qwen3-8B
          - '--kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer","kv_port":"21001"}'
        ```

    References:
        - vllm/config/kv_transfer.py and vllm/distributed/kv_transfer of 0.23.0, 0.31.0 and 0.33.0
    """
    for transfer in kv.transfers(engine):
        if transfer.config.get("kv_connector_module_path") or engine.release is None:
            continue
        dead = [name for name in _DEAD_FIELDS if name in transfer.config]
        dead += ["kv_port"] if "kv_port" in transfer.config and transfer.connector != _P2P else []
        dead = [name for name in dead if name in engine.release.kv_transfer_fields]
        if dead:
            verb = "is" if len(dead) == 1 else "are"
            message = f"{' and '.join(dead)} {verb} read by nothing under {transfer.connector}"
            top = transfer is engine.kv
            repair = repairs.json_without(transfer.argument, dead) if top else None
            yield Problem(transfer.key(dead[0]), message, f"Remove {' and '.join(dead)}.", repair=repair)


@rule(
    "KV007",
    "unread-connector-option",
    Severity.WARNING,
    scope=Engine,
    fix="with --unsafe-fixes, writes the option that it resembles most.",
)
def unread_connector_option(engine: Engine, context: Context) -> Iterator[Problem]:
    """An option in kv_connector_extra_config that the connector does not read.

    Why:
        vLLM takes any key there without a word, so a misspelt one, or one of another release, changes nothing.

    Bad:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_connector_extra_config":{"backend":["LIBFABRIC"]}}'
        ```
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args:
          - Qwen/Qwen3-8B
          - '--kv-transfer-config={"kv_connector":"MooncakeConnector","kv_role":"kv_producer","kv_connector_extra_config":{"mooncake_protocol":"tcp"}}'
        ```

    Good:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_connector_extra_config":{"backends":["LIBFABRIC"]}}'
        ```

    References:
        - vllm/distributed/kv_transfer/kv_connector/v1 of the releases
    """
    for transfer in kv.transfers(engine):
        keys = kv.fact(transfer, context).get("keys") or {}
        for name in transfer.extra:
            if name in keys and kv.within(engine, keys[name].get("since"), keys[name].get("until")) is False:
                window = _window(keys[name])
                message = f"{transfer.connector} of this release does not read {name}, which is {window}"
                yield Problem(transfer.option(name), message, f"Remove {name}, or run such a release.")
            elif name not in keys and (near := get_close_matches(name, sorted(keys), 1, 0.8)):
                message = f"{transfer.connector} does not read {name}; did you mean {near[0]}?"
                repair = _respelt(engine, transfer, name, near[0])
                yield Problem(transfer.option(name), message, f"Write {near[0]}.", repair=repair)


def _respelt(engine: Engine, transfer: KvTransfer, name: str, near: str) -> Repair | None:
    """An option of the outer connector under another name."""
    if transfer is not engine.kv or near in transfer.extra:
        return None
    path = ("kv_connector_extra_config", name)
    return repairs.json_changed(transfer.argument, path, lambda node: RenameKey(node, near), safe=False)


def _window(key: dict[str, str]) -> str:
    since, until = key.get("since"), key.get("until")
    return " and ".join(filter(None, (since and f"from {since} on", until and f"gone in {until}")))


@rule("KV008", "engine-id-inside-multi-connector", Severity.ERROR, scope=Engine)
def engine_id_inside_multi_connector(engine: Engine, context: Context) -> Iterator[Problem]:
    """A connector inside a MultiConnector with an engine_id of its own.

    Why:
        MultiConnector hands its own engine_id to each child beside the child's fields: given twice, it is a
        TypeError and the engine does not start.

    Bad:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - >-
            --kv-transfer-config={"kv_connector":"MultiConnector","kv_role":"kv_both","kv_connector_extra_config":
            {"connectors":[{"kv_connector":"NixlConnector","kv_role":"kv_both","engine_id":"a"}]}}
        ```

    Good:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - >-
            --kv-transfer-config={"kv_connector":"MultiConnector","kv_role":"kv_both","engine_id":"a",
            "kv_connector_extra_config":{"connectors":[{"kv_connector":"NixlConnector","kv_role":"kv_both"}]}}
        ```

    References:
        - vllm/distributed/kv_transfer/kv_connector/v1/multi_connector.py
    """
    for transfer in engine.kv.all() if engine.kv else ():
        for child in transfer.children:
            if "engine_id" in child.config:
                message = (
                    f"{child.connector or 'a connector'} inside MultiConnector has an engine_id of its own"
                )
                yield Problem(
                    child.key("engine_id"), message, "Move engine_id to the MultiConnector, or remove it."
                )


@rule("KV009", "empty-multi-connector", Severity.ERROR, scope=Engine)
def empty_multi_connector(engine: Engine, context: Context) -> Iterator[Problem]:
    """A MultiConnector without connectors.

    Why:
        It reads them from kv_connector_extra_config.connectors and asserts that there are some.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MultiConnector","kv_role":"kv_both"}']
        ```

    Good:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - >-
            --kv-transfer-config={"kv_connector":"MultiConnector","kv_role":"kv_both","kv_connector_extra_config":
            {"connectors":[{"kv_connector":"NixlConnector","kv_role":"kv_both"}]}}
        ```

    References:
        - vllm/distributed/kv_transfer/kv_connector/v1/multi_connector.py
    """
    for transfer in kv.transfers(engine):
        if transfer.connector != "MultiConnector":
            continue
        given = transfer.config.get("kv_connector_extra_config")
        listed = transfer.extra.get("connectors")
        if kv.known(given) and kv.known(listed) and not listed:
            message = "MultiConnector has no connectors in kv_connector_extra_config"
            fix = "List them in kv_connector_extra_config.connectors, each with kv_connector and kv_role."
            yield Problem(transfer.argument, message, fix)


@rule(
    "KV010",
    "expandable-segments-with-connector",
    Severity.ERROR,
    scope=Engine,
    fix="leaves expandable_segments out.",
)
def expandable_segments(engine: Engine, context: Context) -> Iterator[Problem]:
    """PyTorch's expandable segments beside a KV connector.

    Why:
        Memory of such segments cannot be registered for transfers. vLLM refuses the pair at start from 0.21 on,
        unless the cumem allocator is used; before, the registration fails later.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        env: [{name: PYTORCH_CUDA_ALLOC_CONF, value: 'expandable_segments:True'}]
        ```

    Good:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --enable-cumem-allocator
          - --kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}
        env: [{name: PYTORCH_CUDA_ALLOC_CONF, value: 'expandable_segments:True'}]
        ```
        ```yaml
        env: [{name: PYTORCH_CUDA_ALLOC_CONF, value: 'expandable_segments:True'}]
        ```

    References:
        - vllm/config/vllm.py
        - https://github.com/kvcache-ai/Mooncake/issues/351
    """
    given = (engine.variable("PYTORCH_CUDA_ALLOC_CONF") or "").replace(" ", "")
    cured = engine.truth("enable-cumem-allocator") or engine.truth("enable-sleep-mode")
    if not engine.kv or not engine.kv.connector or "expandable_segments:True" not in given:
        return
    if cured or engine.arguments.open:
        return
    refused = kv.has(engine, "expandableSegmentsRefused", context)
    message = f"expandable_segments:True cannot stand beside {engine.kv.connector}"
    fix = "Remove expandable_segments from PYTORCH_CUDA_ALLOC_CONF."
    variable, severity = engine.variables["PYTORCH_CUDA_ALLOC_CONF"], None if refused else Severity.WARNING
    left = ",".join(part for part in given.split(",") if not part.startswith("expandable_segments"))
    repair = repairs.variable_value(variable, left) if left else repairs.without_variable(variable)
    yield Problem(variable, message, fix, severity, repair)


@rule("KV011", "hybrid-cache-forced", Severity.ERROR, scope=Engine, versioned=True)
def hybrid_cache_forced(engine: Engine, context: Context) -> Iterator[Problem]:
    """The hybrid KV cache manager is asked for beside a connector that does not work with it.

    Why:
        vLLM refuses to start: the connector `does not support HMA`.

    Bad:
        ```yaml
        args:
          - openai/gpt-oss-20b
          - --no-disable-hybrid-kv-cache-manager
          - --kv-transfer-config={"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}
        ```

    Good:
        ```yaml
        args:
          - openai/gpt-oss-20b
          - --no-disable-hybrid-kv-cache-manager
          - --kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}
        ```

    References:
        - vllm/config/vllm.py, supports_hma
    """
    flag = engine.arguments.last("disable-hybrid-kv-cache-manager")
    if (
        flag is None
        or not kv.wants_hybrid(flag.written)
        or not kv.has(engine, "hybridCachePerConnector", context)
    ):
        return
    for transfer in kv.transfers(engine):
        if kv.fact(transfer, context).get("hma") is False:
            message = (
                f"{flag.written} cannot stand beside {transfer.connector}, which knows no hybrid KV cache"
            )
            yield Problem(flag, message, "Set --disable-hybrid-kv-cache-manager, or another connector.")


@rule("KV012", "hybrid-cache-lost", Severity.WARNING, scope=Engine, versioned=True)
def hybrid_cache_lost(engine: Engine, context: Context) -> Iterator[Problem]:
    """A model with windows or states beside a connector that turns the hybrid KV cache manager off.

    Why:
        Every layer then keeps the whole context: half the capacity for KV or less, and out of memory where the
        model just fitted. Before 0.22 every connector did it; since then only those without support.

    Bad:
        ```yaml
        args: [openai/gpt-oss-120b, '--kv-transfer-config={"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}']
        ```
        ```yaml
        image: vllm/vllm-openai:v0.19.0
        args: [openai/gpt-oss-120b, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ```

    Good:
        ```yaml
        args: [openai/gpt-oss-120b, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ```
        ```yaml
        image: vllm/vllm-openai:v0.19.0
        args:
          - openai/gpt-oss-120b
          - --no-disable-hybrid-kv-cache-manager
          - --kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/41830
        - https://github.com/vllm-project/vllm/pull/41847
    """
    if "disable-hybrid-kv-cache-manager" in engine.arguments or engine.arguments.open:
        return
    if not kv.is_model(engine, "attentionMixed", context):
        return
    decided = kv.has(engine, "hybridCachePerConnector", context)
    for transfer in kv.transfers(engine):
        supported = kv.fact(transfer, context).get("hma")
        if supported is False or (supported and not decided):
            message = f"{transfer.connector} turns the hybrid KV cache off, so {engine.model} holds far fewer tokens"
            other = "Set --no-disable-hybrid-kv-cache-manager." if supported else "Set another connector."
            yield Problem(transfer.key("kv_connector"), message, other)


@rule("KV013", "connector-not-in-image", Severity.ERROR, scope=Engine)
def connector_not_in_image(engine: Engine, context: Context) -> Iterator[Problem]:
    """A connector that the image's accelerator cannot run.

    Why:
        MoRIIOConnector is ROCm's, P2pNcclConnector needs NCCL, and MooncakeConnector needs an accelerator.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MoRIIOConnector","kv_role":"kv_producer"}']
        ```
        ```yaml
        image: vllm/vllm-openai-cpu:v0.33.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeConnector","kv_role":"kv_producer"}']
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai-rocm:v0.33.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MoRIIOConnector","kv_role":"kv_producer"}']
        ```

    References:
        - vllm/distributed/kv_transfer/kv_connector/factory.py
    """
    image = engine.container.image.name
    for transfer in kv.transfers(engine):
        images = kv.fact(transfer, context).get("images")
        if images and image in context.facts("engine_images") and image not in images:
            message = f"{transfer.connector} does not run in the image {image}"
            yield Problem(
                transfer.key("kv_connector"),
                message,
                f"Use an image of {' or '.join(images)}, or NixlConnector.",
            )


@rule("KV014", "pinned-engine-id", Severity.WARNING, scope=Engine)
def pinned_engine_id(engine: Engine, context: Context) -> Iterator[Problem]:
    """A fixed engine_id, which every replica then has, and which survives restarts.

    Why:
        Peers keep addresses by engine id: two engines of one id are taken for one, and after a restart the old
        address is dialled.

    Bad:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer","engine_id":"p0"}'
        ```

    Good:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer","engine_id":"$(POD_UID)"}'
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/37745
    """
    for transfer in kv.transfers(engine):
        given = transfer.config.get("engine_id")
        if given and kv.known(given) and engine.pod.platform == "kubernetes":
            message = f"engine_id is {given!r} in every pod and after every restart"
            yield Problem(
                transfer.key("engine_id"), message, "Remove engine_id: each process then makes its own."
            )


@rule("KV015", "kv-role-against-label", Severity.ERROR, scope=Engine)
def kv_role_against_label(engine: Engine, context: Context) -> Iterator[Problem]:
    """An engine that its labels call prefill, but whose kv_role is that of decode, or the reverse.

    Why:
        Routers choose by label. A consumer keeps no KV for others and a producer fetches none, so nothing is
        transferred; under MooncakeConnector a consumer does not even start the bootstrap server.

    Bad:
        ```yaml
        metadata: {labels: {llm-d.ai/role: prefill}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ```

    Good:
        ```yaml
        metadata: {labels: {llm-d.ai/role: prefill}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ```

    References:
        - vllm/config/kv_transfer.py, is_kv_producer and is_kv_consumer
    """
    said = next((engine.pod.labels[label] for label in _ROLE_LABELS if label in engine.pod.labels), "")
    wrong = {"prefill": "kv_consumer", "decode": "kv_producer"}.get(said)
    nameless = _ROLE_LABELS[0] not in engine.pod.labels  # which LLMD023 tells of a pool
    pooled = said == "decode" and nameless and relations.pools_of(context.release, engine.pod)
    if engine.kv and wrong and engine.kv.role == wrong and not pooled:
        message = f"the pod is labelled {said}, but its kv_role is {wrong}"
        right = "kv_producer" if said == "prefill" else "kv_consumer"
        yield Problem(engine.kv.key("kv_role"), message, f"Set kv_role to {right}.")


_ROLE_LABELS = ("llm-d.ai/role", "app.kubernetes.io/component", "role")


@rule("KV016", "sleep-mode-with-store", Severity.ERROR, scope=Engine)
def sleep_mode_with_store(engine: Engine, context: Context) -> Iterator[Problem]:
    """Sleep mode beside MooncakeStoreConnector.

    Why:
        The store keeps the KV cache registered, so vLLM refuses to start with both.

    Bad:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --enable-sleep-mode
          - --kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
        ```

    References:
        - vllm/config/vllm.py, supports_sleep_mode
        - docs/features/mooncake_store_connector_usage.md
    """
    store = engine.kv.find("MooncakeStoreConnector") if engine.kv else None
    flag = engine.arguments.last("enable-sleep-mode")
    if store and flag and engine.truth("enable-sleep-mode"):
        yield Problem(
            flag, "MooncakeStoreConnector does not support sleep mode", "Remove --enable-sleep-mode."
        )
