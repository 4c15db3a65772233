"""KV: where an engine keeps KV beside its GPU: host memory, disks and shared stores."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Severity
from vllm_phases.model import Engine, Release
from vllm_phases.rules import kv
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Node, Variable
    from vllm_phases.rules.registry import Placed

_SHM = "/dev/shm"  # the path inside the container
_SHM_DEFAULT = 64 * 2**20
_HYBRID_FACTOR = 1.92
_SEED = "PYTHONHASHSEED"
_FILES = ("LMCACHE_CONFIG_FILE", "MOONCAKE_CONFIG_PATH")
_GB = 10**9
_SPECS = ("CPUOffloadingSpec", "TieringOffloadingSpec")


@rule("KV070", "offloading-without-size", Severity.ERROR, scope=Engine, since="0.14.0")
def offloading_without_size(engine: Engine, context: Context) -> Iterator[Problem]:
    """OffloadingConnector without cpu_bytes_to_use.

    Why:
        It must be told how much host memory to take, in bytes and for all workers together; before 0.14 it was
        num_cpu_blocks. Without it the engine does not start.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"OffloadingConnector","kv_role":"kv_both"}']
        ```

    Good:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --kv-transfer-config={"kv_connector":"OffloadingConnector","kv_role":"kv_both","kv_connector_extra_config":{"cpu_bytes_to_use":1073741824}}
        ```
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --kv-offloading-size=8
          - --kv-transfer-config={"kv_connector":"OffloadingConnector","kv_role":"kv_both"}
        ```

    References:
        - docs/features/kv_offloading_usage.md
    """
    offloading = engine.kv.find("OffloadingConnector") if engine.kv else None
    if offloading is None or "kv-offloading-size" in engine.arguments or engine.arguments.open:
        return
    if kv.option(offloading, "spec_name", _SPECS[0]) not in _SPECS:
        return  # a specification of the user's own
    given = offloading.config.get("kv_connector_extra_config")
    if kv.known(given) and not offloading.extra.get("cpu_bytes_to_use"):
        message = "OffloadingConnector has no cpu_bytes_to_use"
        fix = "Set cpu_bytes_to_use in kv_connector_extra_config, in bytes for all GPUs together."
        yield Problem(offloading.argument, message, fix)


@rule("KV071", "offloading-exceeds-shm", Severity.ERROR, scope=Engine, since="0.33.0")
def offloading_exceeds_shm(engine: Engine, context: Context) -> Iterator[Problem]:
    """More KV to offload than /dev/shm holds.

    Why:
        The memory is one file in /dev/shm: 64 MiB unless a volume is mounted there. `Insufficient space in
        /dev/shm for CPU KV offload shared region`, and the engine does not start.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --kv-offloading-size=16]
        ```
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --kv-offloading-size=16]
            volumeMounts: [{name: shm, mountPath: /dev/shm}]
        volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 8Gi}}]
        ```

    Good:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --kv-offloading-size=16]
            volumeMounts: [{name: shm, mountPath: /dev/shm}]
        volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 20Gi}}]
        ```
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --kv-offloading-size=16]
            volumeMounts: [{name: shm, mountPath: /dev/shm}]
        volumes: [{name: shm, emptyDir: {medium: Memory}}]
        ```

    References:
        - vllm/v1/kv_offload, SharedOffloadRegion
    """
    offloaded = _offloaded(engine)
    pod = engine.pod
    shared = pod.spec.at("hostIPC").value is True
    if offloaded is None or pod.platform != "kubernetes" or shared or not kv.as_written(pod):
        return
    mounted = any(mount.path.rstrip("/") == _SHM for mount in engine.container.mounts)
    volume = kv.empty_dir(engine, _SHM) if mounted else None
    limit = kv.size(volume.at("sizeLimit")) if volume else None if mounted else _SHM_DEFAULT
    if limit is not None and offloaded[0] > limit:
        taken = f"{offloaded[0] / kv.GIB:g} GiB"
        message = f"{taken} of KV are offloaded to /dev/shm, which holds {limit / kv.GIB:g} GiB"
        fix = f"Mount an emptyDir of medium Memory with a sizeLimit above {taken} at /dev/shm."
        yield Problem(volume if volume else offloaded[1], message, fix)


def _offloaded(engine: Engine) -> tuple[int, Placed] | None:
    """Bytes that vLLM's own offloading takes, and what sets them; None where they are not known."""
    flag = engine.arguments.last("kv-offloading-size")
    if flag and (engine.arguments.text("kv-offloading-backend") or "native") == "native":
        try:
            return int(float(flag.value or "") * kv.GIB), flag.word
        except (ValueError, OverflowError):
            return None
    offloading = engine.kv.find("OffloadingConnector") if engine.kv else None
    given = offloading.extra.get("cpu_bytes_to_use") if offloading else None
    number = str(given) if given is not None else ""
    return (int(number), offloading.argument.word) if offloading and number.isdecimal() else None


@rule("KV072", "offloading-exceeds-memory", Severity.ERROR, scope=Engine)
def offloading_exceeds_memory(engine: Engine, context: Context) -> Iterator[Problem]:
    """More KV to offload than the container may use of memory.

    Why:
        Offloaded KV counts against the container's limit. It is killed when the cache fills.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --kv-offloading-size=32]
        resources: {limits: {memory: 32Gi}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --kv-offloading-size=16]
        resources: {limits: {memory: 32Gi}}
        ```

    References:
        - docs/features/kv_offloading_usage.md
    """
    offloaded, limit = _offloaded(engine), kv.memory_limit(engine)
    if offloaded is None or limit is None:
        return
    taken, where = offloaded
    if taken >= limit:
        message = f"{taken / kv.GIB:g} GiB of KV are offloaded, of {limit / kv.GIB:g} GiB memory"
        yield Problem(where, message, "Offload less, or raise limits.memory above it.")
    elif kv.is_model(engine, "attentionMixed", context) and taken * _HYBRID_FACTOR >= limit:
        message = (
            f"{engine.model} is reported to take {_HYBRID_FACTOR} times the {taken / kv.GIB:g} GiB to offload"
        )
        fix = "Offload about half of what fits, or raise limits.memory (vllm issue 53042)."
        yield Problem(where, message, fix, Severity.WARNING)


@rule("KV073", "lmcache-exceeds-disk", Severity.ERROR, scope=Engine)
def lmcache_exceeds_disk(engine: Engine, context: Context) -> Iterator[Problem]:
    """LMCache may write more than its volume holds.

    Why:
        LMCACHE_MAX_LOCAL_DISK_SIZE (GB) is that of each tensor-parallel rank. When the ranks together pass the
        sizeLimit of an emptyDir, or the container's ephemeral storage, the pod is evicted.

    Bad:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args:
              - Qwen/Qwen3-8B
              - --tensor-parallel-size=4
              - --kv-transfer-config={"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}
            env:
              - {name: LMCACHE_LOCAL_DISK, value: 'file:///spill/'}
              - {name: LMCACHE_MAX_LOCAL_DISK_SIZE, value: '100'}
            volumeMounts: [{name: spill, mountPath: /spill}]
        volumes: [{name: spill, emptyDir: {sizeLimit: 200Gi}}]
        ```

    Good:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args:
              - Qwen/Qwen3-8B
              - --tensor-parallel-size=4
              - --kv-transfer-config={"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}
            env:
              - {name: LMCACHE_LOCAL_DISK, value: 'file:///spill/'}
              - {name: LMCACHE_MAX_LOCAL_DISK_SIZE, value: '40'}
            volumeMounts: [{name: spill, mountPath: /spill}]
        volumes: [{name: spill, emptyDir: {sizeLimit: 200Gi}}]
        ```

    References:
        - https://github.com/LMCache/LMCache/issues/1399
    """
    path = (engine.variable("LMCACHE_LOCAL_DISK") or "").removeprefix("file://").rstrip("/")
    each, ranks = _lmcache(engine, "LMCACHE_MAX_LOCAL_DISK_SIZE"), _lmcache_ranks(engine, context)
    volume = kv.empty_dir(engine, path) if path else None
    if each is None or ranks is None or volume is None or volume.text("medium") == "Memory":
        return
    limits = {
        "the emptyDir": kv.size(volume.at("sizeLimit")),
        "limits.ephemeral-storage": kv.size(engine.container.limits().get("ephemeral-storage")),
    }
    for name, limit in limits.items():
        if limit is not None and each * ranks * _GB > limit:
            message = f"LMCache may write {each:g} GB for each of {ranks} ranks: more than {name} of "
            fix = f"Set LMCACHE_MAX_LOCAL_DISK_SIZE below {limit // _GB // ranks}, or a larger volume."
            where = engine.variables["LMCACHE_MAX_LOCAL_DISK_SIZE"]
            yield Problem(where, f"{message}{limit / _GB:.0f} GB", fix)
            return


def _lmcache(engine: Engine, name: str) -> float | None:
    """A size of LMCache in the engine's process; None where it has none, or it is not known."""
    try:
        return float(engine.variable(name) or "") if kv.mentions(engine, "LMCacheConnector") else None
    except ValueError:
        return None


def _lmcache_ranks(engine: Engine, context: Context) -> int | None:
    """How many ranks keep KV of their own: with latent attention one may keep it for all."""
    return None if kv.is_model(engine, "latentAttention", context) else engine.number("tensor-parallel-size")


@rule("KV074", "lmcache-exceeds-memory", Severity.ERROR, scope=Engine)
def lmcache_exceeds_memory(engine: Engine, context: Context) -> Iterator[Problem]:
    """LMCache's host memory does not fit into the container's limit.

    Why:
        LMCACHE_MAX_LOCAL_CPU_SIZE (GB) is that of each tensor-parallel rank, and pinned at start.

    Bad:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --tensor-parallel-size=4
          - --kv-transfer-config={"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}
        env: [{name: LMCACHE_MAX_LOCAL_CPU_SIZE, value: '40'}]
        resources: {limits: {nvidia.com/gpu: 4, memory: 128Gi}}
        ```

    Good:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --tensor-parallel-size=4
          - --kv-transfer-config={"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}
        env: [{name: LMCACHE_MAX_LOCAL_CPU_SIZE, value: '20'}]
        resources: {limits: {nvidia.com/gpu: 4, memory: 128Gi}}
        ```

    References:
        - https://docs.lmcache.ai/api_reference/configurations.html
    """
    each, ranks = _lmcache(engine, "LMCACHE_MAX_LOCAL_CPU_SIZE"), _lmcache_ranks(engine, context)
    limit = kv.memory_limit(engine)
    off = (engine.variable("LMCACHE_LOCAL_CPU") or "True").lower() in ("false", "0")
    if each is None or ranks is None or limit is None or off:
        return
    if each * ranks * _GB >= limit:
        message = f"LMCache takes {each:g} GB for each of {ranks} ranks, of {limit / _GB:.0f} GB memory"
        fix = "Lower LMCACHE_MAX_LOCAL_CPU_SIZE, or raise limits.memory."
        yield Problem(engine.variables["LMCACHE_MAX_LOCAL_CPU_SIZE"], message, fix)


@rule("KV075", "kv-configuration-file-missing", Severity.ERROR, scope=Engine)
def kv_configuration_file_missing(engine: Engine, context: Context) -> Iterator[Problem]:
    """A configuration file of LMCache or Mooncake that the ConfigMap mounted there does not have.

    Why:
        Each key of a ConfigMap is a file of that name. LMCache does not find another one and the Mooncake store
        does not start. (PKG012 is about paths at which nothing is mounted.)

    Bad:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}']
            env: [{name: LMCACHE_CONFIG_FILE, value: /etc/lmcache/config.yaml}]
            volumeMounts: [{name: config, mountPath: /etc/lmcache}]
        volumes: [{name: config, configMap: {name: lmcache}}]
        ---
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: lmcache}
        data: {lmcache.yaml: 'chunk_size: 256'}
        ```

    Good:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}']
            env: [{name: LMCACHE_CONFIG_FILE, value: /etc/lmcache/config.yaml}]
            volumeMounts: [{name: config, mountPath: /etc/lmcache}]
        volumes: [{name: config, configMap: {name: lmcache, items: [{key: lmcache.yaml, path: config.yaml}]}}]
        ---
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: lmcache}
        data: {lmcache.yaml: 'chunk_size: 256'}
        ```

    References:
        - https://kubernetes.io/docs/concepts/storage/volumes/#configmap
    """
    for name in _FILES:
        path = (engine.variable(name) or "").strip("\"'")
        holder = _config_map(engine, path) if path.startswith("/") and kv.known(path) else ""
        data = context.release.config_data(engine.pod.namespace)(holder) if holder else None
        if data is not None and kv.mounted(engine, path, context) is None:
            message = f"{name} is {path}, but the ConfigMap {holder} has no such file"
            fix = f"Name a file that it has: {', '.join(sorted(data)) or 'there is none yet'}."
            yield Problem(engine.variables[name], message, fix)


def _config_map(engine: Engine, path: str) -> str:
    """The ConfigMap that is mounted where a path leads; "" where another volume is too, or none."""
    above = [
        mount
        for mount in engine.container.mounts
        if path == mount.path or path.startswith(mount.path.rstrip("/") + "/")
    ]
    volume = engine.pod.volumes.get(above[0].volume) if len(above) == 1 else None
    return volume.text("configMap", "name") if volume is not None else ""


@rule("KV076", "hash-seed-unset", Severity.ERROR, scope=Engine)
def hash_seed_unset(engine: Engine, context: Context) -> Iterator[Problem]:
    """A store that engines share, while each of them hashes in its own way.

    Why:
        Blocks are found by their hash. Before 0.29, and with the xxhash algorithms still, it starts from a random
        number in every process unless PYTHONHASHSEED is set: no engine finds what another one stored.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.28.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
        ```
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --prefix-caching-hash-algo=xxhash
          - --kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}
        env: [{name: PYTHONHASHSEED, value: random}]
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.28.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
        env: [{name: PYTHONHASHSEED, value: '0'}]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
        ```

    References:
        - https://github.com/vllm-project/vllm/pull/51875
        - https://github.com/LMCache/LMCache/issues/1095
    """
    seed = engine.variables.get(_SEED)
    random = engine.variable(_SEED) in ("", "random") or kv.unset(engine, _SEED)
    fixed = kv.has(engine, "prefixHashSeedFixed", context)
    xxhash = (engine.arguments.text("prefix-caching-hash-algo") or "").startswith("xxhash")
    fix = f"Set {_SEED} to one number, such as 0, on every engine of the store."
    for transfer in kv.transfers(engine) if random else ():
        name = transfer.connector
        if kv.fact(transfer, context).get("shared") and (fixed is False or xxhash):
            message = f"{name} finds blocks by hash, and without {_SEED} each process has its own"
            yield Problem(seed or transfer.argument, message, fix)
        elif name == "LMCacheConnectorV1" and engine.variable("LMCACHE_REMOTE_URL") and not fixed:
            message = f"LMCache shares blocks by hash, and without {_SEED} each process may have its own"
            yield Problem(seed or transfer.argument, message, fix, Severity.WARNING)


@rule("KV077", "hashes-differ", Severity.ERROR, scope=Release)
def hashes_differ(release: Release, context: Context) -> Iterator[Problem]:
    """Engines of one model that share a store, but hash differently.

    Why:
        With another PYTHONHASHSEED, hash algorithm or cache_prefix the same tokens have another key, so what one
        engine stores the other never finds.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
        env: [{name: PYTHONHASHSEED, value: '0'}]
        ---
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
        env: [{name: PYTHONHASHSEED, value: '1'}]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
        env: [{name: PYTHONHASHSEED, value: '0'}]
        ---
        args: [Qwen/Qwen3-32B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
        env: [{name: PYTHONHASHSEED, value: '1'}]
        ```

    References:
        - docs/features/mooncake_store_connector_usage.md
    """
    sharing: dict[tuple[str, ...], list[Engine]] = {}
    for engine in release.engines:
        for transfer in kv.transfers(engine):
            if kv.fact(transfer, context).get("shared") and engine.model:
                found = kv.configuration(engine, "MOONCAKE_CONFIG_PATH", context)
                store = str(found[1].get("master_server_address")) if found else ""
                key = (engine.pod.namespace, engine.model, transfer.connector, store)
                sharing.setdefault(key, []).append(engine)
    for (*_, store), engines in sharing.items():
        severity = None if store else Severity.WARNING
        for one, other in pairwise(engines):
            for name, given, wanted, where in _hashing(one, other):
                message = f"{name} is {given} on one engine of the store and {wanted} on the other"
                fix = f"Set the same {name} on every engine of the store."
                yield Problem(where, message, fix, severity)


def _hashing(one: Engine, other: Engine) -> Iterator[tuple[str, Any, Any, Variable | Node]]:
    """What decides the key of a block, where two engines surely differ in it."""
    given, wanted = one.variable(_SEED), other.variable(_SEED)
    if given and wanted and given != wanted:
        yield _SEED, given, wanted, other.variables[_SEED]
    flag = "prefix-caching-hash-algo"
    algorithms = one.text(flag), other.text(flag)
    if None not in algorithms and algorithms[0] != algorithms[1]:
        yield f"--{flag}", algorithms[0], algorithms[1], other.node
    stores = [engine.kv.find("MooncakeStoreConnector") if engine.kv else None for engine in (one, other)]
    prefixes = [kv.option(store, "cache_prefix", "") if store else None for store in stores]
    if None not in prefixes and prefixes[0] != prefixes[1]:
        yield "cache_prefix", repr(prefixes[0]), repr(prefixes[1]), other.node


@rule("KV078", "store-clients-differ", Severity.ERROR, scope=Release)
def store_clients_differ(release: Release, context: Context) -> Iterator[Problem]:
    """Engines of one Mooncake store that find each other in different ways.

    Why:
        Each client registers its memory with its metadata_server, and speaks its protocol: with another one it
        cannot reach what the others stored.

    Bad:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: store}
        data:
          a.json: '{"master_server_address": "master:50051", "metadata_server": "P2PHANDSHAKE", "protocol": "tcp"}'
          b.json: '{"master_server_address": "master:50051", "metadata_server": "P2PHANDSHAKE", "protocol": "rdma"}'
        ---
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
            env: [{name: MOONCAKE_CONFIG_PATH, value: /etc/mooncake/a.json}]
            volumeMounts: [{name: store, mountPath: /etc/mooncake}]
        volumes: [{name: store, configMap: {name: store}}]
        ---
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
            env: [{name: MOONCAKE_CONFIG_PATH, value: /etc/mooncake/b.json}]
            volumeMounts: [{name: store, mountPath: /etc/mooncake}]
        volumes: [{name: store, configMap: {name: store}}]
        ```

    Good:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: store}
        data:
          a.json: '{"master_server_address": "master:50051", "protocol": "tcp", "global_segment_size": "8GB"}'
          b.json: '{"master_server_address": "master:50051", "protocol": "tcp", "global_segment_size": "4GB"}'
        ---
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
            env: [{name: MOONCAKE_CONFIG_PATH, value: /etc/mooncake/a.json}]
            volumeMounts: [{name: store, mountPath: /etc/mooncake}]
        volumes: [{name: store, configMap: {name: store}}]
        ---
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
            env: [{name: MOONCAKE_CONFIG_PATH, value: /etc/mooncake/b.json}]
            volumeMounts: [{name: store, mountPath: /etc/mooncake}]
        volumes: [{name: store, configMap: {name: store}}]
        ```

    References:
        - docs/features/mooncake_store_connector_usage.md
    """
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for engine in release.engines:
        found = kv.configuration(engine, "MOONCAKE_CONFIG_PATH", context)
        if found is None or not kv.mentions(engine, "MooncakeStore"):
            continue
        node, config = found
        before = first.setdefault((engine.pod.namespace, str(config.get("master_server_address"))), config)
        for name in ("metadata_server", "protocol"):
            given, other = before.get(name), config.get(name)
            if given and other and given != other:
                message = f"{name} is {other}, but {given} on another engine of the store"
                yield Problem(node, message, f"Set the same {name} for every engine of the store.")
