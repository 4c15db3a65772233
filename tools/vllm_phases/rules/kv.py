"""What the rules on KV transfer ask of an engine, a pair or a pod."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from vllm_phases.catalogue.store import sort_key
from vllm_phases.model import mounts
from vllm_phases.objects.spelling import amount

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.model import Engine, KvTransfer, Node, Pod
    from vllm_phases.rules.registry import Context

GIB = 2**30
_PLAIN_KINDS = frozenset(
    ("Pod", "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Job", "CronJob", "LeaderWorkerSet")
)
_HOLE = re.compile(r"\$|\{\{")


def known(value: object) -> bool:
    """Whether a value of a configuration is what the engine gets: a reference or a template hole is not."""
    return not (isinstance(value, str) and _HOLE.search(value))


def transfers(engine: Engine) -> Iterator[KvTransfer]:
    """Every connector of an engine whose name is known and whose class is vLLM's own."""
    for transfer in engine.kv.all() if engine.kv else ():
        if transfer.connector and known(transfer.connector):
            yield transfer


def fact(transfer: KvTransfer, context: Context) -> Mapping[str, Any]:
    """What the catalogue knows of a connector; nothing of one that an own module defines."""
    own = transfer.config.get("kv_connector_module_path")
    return {} if own else context.facts("kv_connectors").get(transfer.connector, {})


def over(engine: Engine, protocol: str, context: Context) -> KvTransfer | None:
    """The connector by which an engine hands KV over in a protocol."""
    found = (each for each in transfers(engine) if fact(each, context).get("protocol") == protocol)
    return next(found, None)


def protocol_of(engine: Engine, context: Context) -> str:
    """The protocol by which an engine hands KV over, "" where it has none or it is not known."""
    protocols = (str(fact(each, context).get("protocol") or "") for each in transfers(engine))
    return next(filter(None, protocols), "")


def option(transfer: KvTransfer, key: str, default: Any = None) -> Any:
    """A value of kv_connector_extra_config; None where it cannot be known."""
    value = transfer.extra.get(key, default)
    return value if known(value) else None


def has(engine: Engine, feature: str, context: Context) -> bool | None:
    """Whether the engine's release does something (catalogue/data/features.yaml); None without a release."""
    entry = context.facts("features")[feature]
    return within(engine, entry.get("since"), entry.get("until"))


def within(engine: Engine, since: str | None, until: str | None = None) -> bool | None:
    """Whether the engine's release lies in a window; None where it is not known."""
    if engine.release is None:
        return None
    here = sort_key(engine.release.version)
    return (since is None or here >= sort_key(since)) and (until is None or here < sort_key(until))


def unset(engine: Engine, name: str) -> bool:
    """Whether a variable is surely not there."""
    return engine.container.complete and name not in engine.variables and as_written(engine.pod)


def as_written(pod: Pod) -> bool:
    """Whether the pod runs as its template says: operators add to what custom resources hold."""
    return pod.owner is None or pod.owner.kind in _PLAIN_KINDS


def listed(name: str, context: Context) -> Any:
    """A list of catalogue/data/kv_settings.yaml."""
    return context.facts("kv_settings")[name]["values"]


def is_model(engine: Engine, name: str, context: Context) -> bool:
    """Whether the engine's model is of a family of catalogue/data/kv_settings.yaml."""
    model = (engine.model or "").lower()
    return any(re.search(pattern, model) for pattern in listed(name, context))


def size(node: Node | None) -> int | None:
    """Bytes of a quantity; None where there is none."""
    number = amount(node.value) if node is not None and node else None
    return None if number is None else int(number)


def memory_limit(engine: Engine) -> int | None:
    """limits.memory of the engine's container, in bytes."""
    return size(engine.container.limits().get("memory"))


def empty_dir(engine: Engine, path: str) -> Node | None:
    """The emptyDir that holds a path of the engine's container; None where something else does."""
    mounts = [
        mount
        for mount in engine.container.mounts
        if path == mount.path or path.startswith(mount.path.rstrip("/") + "/")
    ]
    if not mounts:
        return None
    volume = engine.pod.volumes.get(max(mounts, key=lambda mount: len(mount.path)).volume)
    found = volume.at("emptyDir") if volume is not None else None
    return found if found else None


def one_network(first: Engine, other: Engine) -> bool:
    """Whether two engines surely share a network: one pod, or one machine.

    Commands of one script are meant for one machine when they give different HTTP ports.
    """
    if first.pod is other.pod:
        return True
    if first.pod.platform != other.pod.platform or first.node.document is not other.node.document:
        return False
    if first.pod.platform == "compose":
        return all(engine.node.text("network_mode") == "host" for engine in (first, other))
    return first.pod.platform == "shell" and None not in (first.port, other.port) and first.port != other.port


def host_network(pod: Pod) -> bool:
    """Whether a pod has the network of its machine."""
    return (
        pod.spec.at("hostNetwork").value is True
        or pod.spec.text("network_mode") == "host"
        or pod.platform == "shell"
    )


def address_of_its_own(pod: Pod) -> bool:
    """Whether a pod surely has an address of its own, by which others must reach it."""
    return pod.platform in ("kubernetes", "compose") and not host_network(pod)


def rdma_device(engine: Engine, context: Context) -> bool | None:
    """Whether the container asks for an RDMA device; None where it may have one in another way."""
    resources = {**engine.container.limits(), **engine.container.requests()}
    patterns = listed("rdmaDevices", context)
    if any(re.fullmatch(pattern, name) for pattern in patterns for name in resources):
        return True
    pod = engine.pod
    volumes = " ".join(volume.text("hostPath", "path") for volume in pod.volumes.values())
    otherwise = (
        pod.platform != "kubernetes"
        or host_network(pod)
        or engine.container.node.at("securityContext", "privileged").value is True
        or any("networks" in key for key in pod.annotations)
        or pod.spec.at("resourceClaims")
        or "/dev" in volumes
    )
    return None if otherwise else False


def names(first: Engine, other: Engine) -> tuple[str, str]:
    """What a message calls two engines."""
    if first.pod.name and other.pod.name and first.pod.name != other.pod.name:
        return first.pod.name, other.pod.name
    return first.role or "one", other.role or "the other"


def local_ranks(engine: Engine) -> tuple[int, int] | None:
    """The first data parallel rank of an engine's pod and how many it has; None where they are not known."""
    flags = ("data-parallel-rank", "data-parallel-start-rank")
    given = [engine.arguments.number(flag) for flag in flags if flag in engine.arguments]
    local = "data-parallel-size-local"
    count = engine.number(local if local in engine.arguments else "data-parallel-size")
    if None in given or count is None:
        return None
    first = next((number for number in given if number is not None), 0)
    return first, 1 if "data-parallel-rank" in engine.arguments else count


def side_channel_port(engine: Engine, context: Context) -> int | None:
    """The first port of NIXL's side channel; None where it is not known."""
    return _port(engine, "VLLM_NIXL_SIDE_CHANNEL_PORT") or (
        _default_side_channel(engine, context) if unset(engine, "VLLM_NIXL_SIDE_CHANNEL_PORT") else None
    )


def bootstrap_port(engine: Engine) -> int | None:
    """The first port of Mooncake's bootstrap server; None where it is not known."""
    name = "VLLM_MOONCAKE_BOOTSTRAP_PORT"
    return _port(engine, name) or (8998 if unset(engine, name) else None)


def _port(engine: Engine, name: str) -> int | None:
    value = engine.variable(name) or ""
    return int(value) if value.isdecimal() else None


def _default_side_channel(engine: Engine, context: Context) -> int | None:
    new = has(engine, "nixlSideChannelPort5600", context)
    return None if new is None else 5600 if new else 5557


def mentions(engine: Engine, part: str) -> bool:
    """Whether a connector of the engine has a part in its name."""
    return any(part in transfer.connector for transfer in transfers(engine))


def configuration(engine: Engine, variable: str, context: Context) -> tuple[Node, dict[str, Any]] | None:
    """The file that a variable names, where a ConfigMap among the documents holds it, as plain data."""
    import yaml

    node = mounted(engine, engine.variable(variable) or "", context)
    try:
        found = yaml.safe_load(str(node.value)) if node else None
    except yaml.YAMLError:
        return None
    return (node, found) if node and isinstance(found, dict) else None


def mounted(engine: Engine, path: str, context: Context) -> Node | None:
    """The entry of a ConfigMap that is mounted at a path, or what a compose file has there."""
    config = context.release.config_data(engine.pod.namespace)
    return mounts.mounted(engine.pod, engine.container, path, config)


def present(transfer: KvTransfer, engine: Engine) -> bool:
    """Whether the engine's release has a connector, as far as that is known."""
    return engine.release is None or transfer.connector in engine.release.connectors


def events_port(engine: Engine) -> int | None:
    """The first port on which an engine publishes KV events; None where it binds none, or it is not known."""
    config = engine.arguments.object("kv-events-config") or {}
    if config.get("enable_kv_cache_events") is not True or config.get("publisher") == "null":
        return None
    match = re.fullmatch(r"tcp://\*:(\d+)", str(config.get("endpoint", "tcp://*:5557")))
    return int(match[1]) if match else None


def wants_hybrid(written: str) -> bool:
    """Whether an option, as written, asks for the hybrid KV cache manager."""
    return written.replace("_", "-").startswith(("--no-disable-hybrid", "--enable-hybrid"))
