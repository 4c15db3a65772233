"""KV: engines that hand KV over, or keep it, by Mooncake."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.model.command import invocations
from vllm_phases.rules import kv, repairs
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

_STORE = "MooncakeStoreConnector"
_CONFIG = "MOONCAKE_CONFIG_PATH"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(GB|MB|KB|B)?", re.IGNORECASE)
_UNITS = {"GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1, "": 1}  # at least: Mooncake counts by 1024
_WHEEL = re.compile(r"mooncake-transfer-engine(?P<cuda13>-cuda13)?(?![\w-])")
_CUDA12_TAG = re.compile(r"cu12\d")


@rule("KV050", "mooncake-rdma-without-device", Severity.WARNING, scope=Engine)
def mooncake_rdma_without_device(engine: Engine, context: Context) -> Iterator[Problem]:
    """MooncakeConnector over RDMA, its default, in a pod that asks for no RDMA device.

    Why:
        mooncake_protocol is rdma unless it is set. Without a device the transfer engine does not start, or falls
        back to something slower without a word.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeConnector","kv_role":"kv_producer"}']
        ```

    Good:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --kv-transfer-config={"kv_connector":"MooncakeConnector","kv_role":"kv_producer","kv_connector_extra_config":{"mooncake_protocol":"tcp"}}
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeConnector","kv_role":"kv_producer"}']
        resources: {limits: {nvidia.com/gpu: 1, rdma/ib: 1}}
        ```

    References:
        - docs/features/mooncake_connector_usage.md
    """
    mooncake = kv.over(engine, "mooncake", context)
    if mooncake is None or kv.option(mooncake, "mooncake_protocol", "rdma") != "rdma":
        return
    if kv.rdma_device(engine, context) is False:
        message = "MooncakeConnector speaks rdma, but the pod asks for no RDMA device"
        fix = "Ask for a device such as rdma/ib in resources.limits, or set mooncake_protocol to tcp."
        yield Problem(mooncake.argument, message, fix)


@rule("KV051", "rdma-without-ipc-lock", Severity.WARNING, scope=Engine)
def rdma_without_ipc_lock(engine: Engine, context: Context) -> Iterator[Problem]:
    """A pod that moves KV over an RDMA device, but may not lock memory.

    Why:
        Registering memory for RDMA pins it. Where the runtime's memlock limit is low, which is usual, that fails
        unless the container has the capability IPC_LOCK.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        resources: {limits: {nvidia.com/gpu: 1, rdma/ib: 1}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        resources: {limits: {nvidia.com/gpu: 1, rdma/ib: 1}}
        securityContext: {capabilities: {add: [IPC_LOCK]}}
        ```

    References:
        - https://github.com/kvcache-ai/Mooncake/issues/1382
        - https://github.com/kvcache-ai/Mooncake/issues/281
    """
    transfer = kv.over(engine, "nixl", context) or kv.over(engine, "mooncake", context)
    if transfer is None or engine.pod.platform != "kubernetes" or not kv.rdma_device(engine, context):
        return
    security = engine.container.node.at("securityContext")
    added = {item.text().upper().removeprefix("CAP_") for item in security.items("capabilities", "add")}
    if not added & {"IPC_LOCK", "ALL", "SYS_ADMIN"} and security.at("privileged").value is not True:
        message = "the pod has an RDMA device, but the container may not lock memory for it"
        fix = "Add IPC_LOCK to securityContext.capabilities.add, or raise the runtime's memlock limit."
        yield Problem(security if security else engine.node, message, fix)


@rule(
    "KV052",
    "host-address-guessed",
    Severity.WARNING,
    scope=Engine,
    fix="sets VLLM_HOST_IP from fieldRef status.hostIP, in Kubernetes.",
)
def host_address_guessed(engine: Engine, context: Context) -> Iterator[Problem]:
    """An engine on its machine's network that guesses the address which it tells its peers.

    Why:
        MooncakeConnector and P2pNcclConnector announce VLLM_HOST_IP, and without it the address of the default
        route: on a machine with several networks often the wrong one. HOST_IP alone is not read.

    Bad:
        ```yaml
        spec:
          hostNetwork: true
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeConnector","kv_role":"kv_producer"}']
        ```

    Good:
        ```yaml
        spec:
          hostNetwork: true
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeConnector","kv_role":"kv_producer"}']
              env: [{name: VLLM_HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]
        ```

    References:
        - vllm/utils/network_utils.py, get_ip
        - https://github.com/ray-project/ray/issues/60817
    """
    transfer = kv.over(engine, "mooncake", context) or kv.over(engine, "p2pNccl", context)
    if transfer and kv.host_network(engine.pod) and kv.unset(engine, "VLLM_HOST_IP"):
        message = f"VLLM_HOST_IP is not set, so {transfer.connector} announces whichever address it guesses"
        fix = "Set VLLM_HOST_IP, in a pod from fieldRef status.hostIP."
        repair = repairs.variable_from_field(engine, "VLLM_HOST_IP", "status.hostIP")
        yield Problem(transfer.argument, message, fix, repair=repair)


@rule("KV053", "store-without-configuration", Severity.ERROR, scope=Engine)
def store_without_configuration(engine: Engine, context: Context) -> Iterator[Problem]:
    """MooncakeStoreConnector without MOONCAKE_CONFIG_PATH.

    Why:
        The file that this variable names says where the store is. Without the variable the engine ends with a
        ValueError at start.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
        env: [{name: MOONCAKE_CONFIG_PATH, value: /etc/mooncake/store.json}]
        ```

    References:
        - docs/features/mooncake_store_connector_usage.md
    """
    store = engine.kv.find(_STORE) if engine.kv else None
    if store and engine.pod.platform != "shell" and kv.unset(engine, _CONFIG):
        fix = f"Mount a configuration of the store, and set {_CONFIG} to its path."
        yield Problem(store.argument, f"{_STORE} has no {_CONFIG}", fix)


@rule("KV054", "store-configuration", Severity.ERROR, scope=Engine)
def store_configuration(engine: Engine, context: Context) -> Iterator[Problem]:
    """A configuration of the Mooncake store that the connector refuses.

    Why:
        Embedded mode needs a global_segment_size above 0 and standalone-store mode one of 0; local_buffer_size
        must be above 0; sizes are written with GB, MB, KB or B, not Gi.

    Bad:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: store}
        data: {store.json: '{"mode": "standalone-store", "global_segment_size": "80GB", "local_buffer_size": "4GB"}'}
        ---
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
            env: [{name: MOONCAKE_CONFIG_PATH, value: /etc/mooncake/store.json}]
            volumeMounts: [{name: store, mountPath: /etc/mooncake}]
        volumes: [{name: store, configMap: {name: store}}]
        ```
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: store}
        data: {store.json: '{"mode": "embedded", "global_segment_size": "80Gi", "local_buffer_size": "4GB"}'}
        ---
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
            env: [{name: MOONCAKE_CONFIG_PATH, value: /etc/mooncake/store.json}]
            volumeMounts: [{name: store, mountPath: /etc/mooncake}]
        volumes: [{name: store, configMap: {name: store}}]
        ```

    Good:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: store}
        data: {store.json: '{"mode": "embedded", "global_segment_size": "80GB", "local_buffer_size": "4GB"}'}
        ---
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
            env: [{name: MOONCAKE_CONFIG_PATH, value: /etc/mooncake/store.json}]
            volumeMounts: [{name: store, mountPath: /etc/mooncake}]
        volumes: [{name: store, configMap: {name: store}}]
        ```

    References:
        - docs/features/mooncake_store_connector_usage.md
    """
    found = kv.configuration(engine, _CONFIG, context)
    if found is None or not engine.kv or not engine.kv.find(_STORE):
        return
    node, config = found
    for message, fix in _store_faults(config):
        yield Problem(node, message, fix)


def _store_faults(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    mode, sizes = config.get("mode", "embedded"), ("global_segment_size", "local_buffer_size")
    if kv.known(mode) and mode not in ("embedded", "standalone-store"):
        yield f"mode is {mode!r}, but can be embedded or standalone-store", "Set mode to one of them."
    for name in (name for name in sizes if name in config and kv.known(config[name])):
        if store_bytes(config[name]) is None:
            yield f"{name} is {config[name]!r}, which is no size to Mooncake", "Write it like 80GB."
    segment = store_bytes(config.get("global_segment_size"))
    if mode == "embedded" and segment == 0:
        yield "global_segment_size is 0 in embedded mode", "Set a size, or mode to standalone-store."
    if mode == "standalone-store" and segment:
        yield "global_segment_size is above 0 in standalone-store mode", "Set it to 0, or mode to embedded."
    if store_bytes(config.get("local_buffer_size")) == 0:
        yield "local_buffer_size is 0", "Set a size such as 4GB."


def store_bytes(size: object) -> int | None:
    """Bytes of a size as Mooncake writes it: 80GB, or a number; None for anything else."""
    match = _SIZE.fullmatch(str(size).strip())
    return int(float(match[1]) * _UNITS[(match[2] or "").upper()]) if match else None


@rule("KV055", "store-exceeds-memory", Severity.ERROR, scope=Engine)
def store_exceeds_memory(engine: Engine, context: Context) -> Iterator[Problem]:
    """Segments of the Mooncake store that do not fit into the container's memory.

    Why:
        global_segment_size and local_buffer_size are host memory of each GPU's worker, taken at start: the
        container is killed.

    Bad:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: store}
        data: {store.json: '{"mode": "embedded", "global_segment_size": "80GB", "local_buffer_size": "4GB"}'}
        ---
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args:
              - Qwen/Qwen3-8B
              - --tensor-parallel-size=2
              - --kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}
            env: [{name: MOONCAKE_CONFIG_PATH, value: /etc/mooncake/store.json}]
            resources: {limits: {memory: 128Gi}}
            volumeMounts: [{name: store, mountPath: /etc/mooncake}]
        volumes: [{name: store, configMap: {name: store}}]
        ```

    Good:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: store}
        data: {store.json: '{"mode": "embedded", "global_segment_size": "80GB", "local_buffer_size": "4GB"}'}
        ---
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}']
            env: [{name: MOONCAKE_CONFIG_PATH, value: /etc/mooncake/store.json}]
            resources: {limits: {memory: 128Gi}}
            volumeMounts: [{name: store, mountPath: /etc/mooncake}]
        volumes: [{name: store, configMap: {name: store}}]
        ```

    References:
        - docs/features/mooncake_store_connector_usage.md
    """
    found, limit, ranks = (
        kv.configuration(engine, _CONFIG, context),
        kv.memory_limit(engine),
        engine.gpus_needed,
    )
    if found is None or limit is None or ranks is None or not engine.kv or not engine.kv.find(_STORE):
        return
    sizes = [store_bytes(found[1].get(name)) or 0 for name in ("global_segment_size", "local_buffer_size")]
    taken = ranks * sum(sizes)
    if taken >= limit:
        message = (
            f"the store takes {taken / kv.GIB:.0f} GiB for {ranks} GPUs, of {limit / kv.GIB:.0f} GiB memory"
        )
        fix = "Raise limits.memory, or lower global_segment_size, which each GPU's worker takes."
        yield Problem(engine.container.limits()["memory"], message, fix)


@rule("KV056", "mooncake-wheel-of-other-cuda", Severity.ERROR, scope=Engine, since="0.20.0")
def mooncake_wheel_of_other_cuda(engine: Engine, context: Context) -> Iterator[Problem]:
    """Mooncake installed for CUDA 12 into an image of CUDA 13.

    Why:
        mooncake-transfer-engine is built for CUDA 12; the images are of CUDA 13 and bring
        mooncake-transfer-engine-cuda13. The import ends with `libcudart.so.12: cannot open shared object file`.

    Bad:
        ```yaml
        command: [bash, -c]
        args:
          - pip install mooncake-transfer-engine &&
            vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"MooncakeConnector","kv_role":"kv_both"}'
        ```

    Good:
        ```yaml
        command: [bash, -c]
        args:
          - pip install mooncake-transfer-engine-cuda13 &&
            vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"MooncakeConnector","kv_role":"kv_both"}'
        ```

    References:
        - docs/features/mooncake_connector_usage.md
    """
    image = engine.container.image
    if not kv.mentions(engine, "Mooncake") or image.name != "vllm-openai" or _CUDA12_TAG.search(image.tag):
        return
    for invocation in invocations(engine.container.words, {}):
        texts = [word.text for word in invocation.words]
        for word in invocation.words if "install" in texts[:5] else ():
            match = _WHEEL.match(word.text)
            if match and not match["cuda13"]:
                fix = "Remove it: the image brings Mooncake. Else install mooncake-transfer-engine-cuda13."
                yield Problem(word, f"{word.text} is built for CUDA 12, the image has CUDA 13", fix)
