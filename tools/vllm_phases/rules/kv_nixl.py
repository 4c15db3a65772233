"""KV: engines that hand KV over by NIXL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.rules import kv, repairs
from vllm_phases.rules.registry import Context, Problem, rule
from vllm_phases.sources.changes import Set

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import KvTransfer, Variable
    from vllm_phases.sources.repair import Repair

_HOST = "VLLM_NIXL_SIDE_CHANNEL_HOST"
_PORT = "VLLM_NIXL_SIDE_CHANNEL_PORT"
_LEASE = 30
_BEATS = 6
_PORT_NAME = re.compile(r"nixl|side-?ch")


@rule("KV006", "ucx-without-cuda", Severity.ERROR, scope=Engine)
def ucx_without_cuda(engine: Engine, context: Context) -> Iterator[Problem]:
    """UCX_TLS allows no transport that reaches GPU memory, where the KV cache lies.

    Why:
        UCX_TLS is an allow-list: without cuda or cuda_copy NIXL cannot register the cache. Old NIXL fails at the
        first transfer, new NIXL at start.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        env: [{name: UCX_TLS, value: 'rc,tcp,sm,self'}]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        env: [{name: UCX_TLS, value: 'rc,tcp,sm,self,cuda_copy'}]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        env: [{name: UCX_TLS, value: '^sm'}]
        ```
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_buffer_device":"cpu"}
        env: [{name: UCX_TLS, value: tcp}]
        ```
        ```yaml
        image: vllm/vllm-openai-cpu:v0.33.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        env: [{name: UCX_TLS, value: tcp}]
        ```
        ```yaml
        image: registry.example.net/gaudi/vllm:1.22
        command: [vllm, serve]
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        env: [{name: UCX_TLS, value: tcp}]
        resources: {limits: {nvidia.com/gpu: 1}}
        ```

    References:
        - https://github.com/ai-dynamo/nixl/pull/1617
    """
    listed = engine.variable("UCX_TLS")
    nixl = kv.over(engine, "nixl", context)
    if not listed or nixl is None or listed.startswith("^") or not kv.known(listed):
        return
    if nixl.config.get("kv_buffer_device") not in (None, "cuda") or not _on_gpu(engine, context):
        return
    backends = kv.option(nixl, "backends", ["UCX"])
    allowed = {part.strip() for part in listed.split(",")}
    if isinstance(backends, list) and "UCX" in backends and not allowed & set(kv.listed("ucxCuda", context)):
        message = (
            f"UCX_TLS is {listed!r}, which allows no CUDA transport, but the KV cache lies in GPU memory"
        )
        yield Problem(engine.variables["UCX_TLS"], message, "Add cuda to UCX_TLS, or leave it unset.")


def _on_gpu(engine: Engine, context: Context) -> bool:
    """Whether the engine surely runs on a GPU of NVIDIA or AMD."""
    image = engine.container.image
    others = kv.listed("otherAccelerators", context)
    asked = engine.gpu.kind not in ("none", "unknown") and not any(part in image.path for part in others)
    return image.name in ("vllm-openai", "vllm-openai-rocm") or asked


@rule(
    "KV040",
    "side-channel-host",
    Severity.ERROR,
    scope=Engine,
    fix="sets it from fieldRef status.podIP, in Kubernetes.",
)
def side_channel_host(engine: Engine, context: Context) -> Iterator[Problem]:
    """NIXL's side channel on an address that a peer in another pod cannot dial.

    Why:
        VLLM_NIXL_SIDE_CHANNEL_HOST is where prefill listens and what it tells decode to dial: localhost unless it
        is set, so that decode dials itself: `Remote NIXL agent engine ID mismatch`, and the request fails.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        env: [{name: VLLM_NIXL_SIDE_CHANNEL_HOST, value: 0.0.0.0}]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        env: [{name: VLLM_NIXL_SIDE_CHANNEL_HOST, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]
        ```
        ```yaml
        metadata: {labels: {model.aibrix.ai/name: demo, model.aibrix.ai/kv-connector-type: nixl}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
              env: [{name: VLLM_NIXL_SIDE_CHANNEL_HOST, value: 0.0.0.0}]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        env: [{name: VLLM_NIXL_SIDE_CHANNEL_HOST, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        envFrom: [{configMapRef: {name: elsewhere}}]
        ```
        ```yaml
        metadata: {labels: {model.aibrix.ai/name: demo}}  # AIBrix tells decode the pod's address itself
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
              env: [{name: VLLM_NIXL_SIDE_CHANNEL_HOST, value: 0.0.0.0}]
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/27083
        - https://github.com/volcano-sh/kthena/issues/503
    """
    nixl = kv.over(engine, "nixl", context)
    if nixl is None or not _is_dialled(engine, nixl.connector, kv.option(nixl, "bidirectional_kv_xfer")):
        return
    fix = f"Set {_HOST} from fieldRef status.podIP."
    repair = repairs.variable_from_field(engine, _HOST, "status.podIP")
    host = engine.variables.get(_HOST)
    if host is None and kv.unset(engine, _HOST) and engine.pod.platform != "shell":
        severity = None if kv.address_of_its_own(engine.pod) else Severity.WARNING
        message = f"{_HOST} is not set, so peers are told to dial localhost"
        yield Problem(nixl.argument, message, fix, severity, repair)
    elif host is not None and (why := _undialable(host, engine)) and not _dialled_by_router(engine, context):
        severity = None if kv.address_of_its_own(engine.pod) else Severity.WARNING
        yield Problem(host, f"{_HOST} is {why}", fix, severity, repair)


def _is_dialled(engine: Engine, connector: str, bidirectional: object) -> bool:
    """Whether peers open connections to an engine: decode only answers when it pushes or hands KV back."""
    return engine.role != "decode" or connector == "NixlPushConnector" or bidirectional is True


def _dialled_by_router(engine: Engine, context: Context) -> bool:
    """Whether a router tells decode the pod's own address, whatever prefill says, and all of it listens."""
    labels = engine.pod.labels
    router = any(
        label in labels and labels.get(chosen, "shfs") == "shfs"
        for label, chosen in kv.listed("routersThatDial", context).items()
    )
    return router and engine.variable(_HOST) in ("0.0.0.0", "::", "[::]")


def _undialable(host: Variable, engine: Engine) -> str | None:
    if host.source == "field status.hostIP" and kv.address_of_its_own(engine.pod):
        return "the node's address, at which nobody listens in a pod with a network of its own"
    value = (host.value or "").strip()
    if host.value is not None and (value in ("", "0.0.0.0", "::", "[::]")):
        return f"{value!r}, which a peer takes for itself"
    if value in ("localhost", "::1") or value.startswith("127."):
        return f"{value!r}, which is each peer's own address"
    return None


@rule("KV041", "nixl-kv-both", Severity.WARNING, scope=Engine, versioned=True)
def nixl_kv_both(engine: Engine, context: Context) -> Iterator[Problem]:
    """NIXL with kv_role kv_both, which newer releases only still take.

    Why:
        vLLM logs a deprecation warning and will refuse it; prefill is kv_producer and decode kv_consumer.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_both"}']
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.20.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_both"}']
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ```

    References:
        - https://github.com/vllm-project/vllm/pull/33702
    """
    nixl = kv.over(engine, "nixl", context)
    if nixl and nixl.role == "kv_both" and kv.has(engine, "nixlKvBothDeprecated", context):
        message = "kv_role kv_both is deprecated for NIXL"
        yield Problem(nixl.key("kv_role"), message, "Set kv_producer for prefill and kv_consumer for decode.")


@rule("KV042", "nixl-pipeline-parallel", Severity.ERROR, scope=Engine)
def nixl_pipeline_parallel(engine: Engine, context: Context) -> Iterator[Problem]:
    """Pipeline parallelism where NIXL does not know it.

    Why:
        A consumer with pipeline stages ends with NotImplementedError at start, and so does a producer that is
        pulled from and uses the hybrid KV cache.

    Bad:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --pipeline-parallel-size=2
          - --kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}
        ```

    Good:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --pipeline-parallel-size=2
          - --kv-transfer-config={"kv_connector":"NixlPushConnector","kv_role":"kv_producer"}
        ```

    References:
        - docs/features/nixl_connector_compatibility.md
        - https://github.com/vllm-project/vllm/issues/40674
    """
    nixl = kv.over(engine, "nixl", context)
    stages = engine.number("pipeline-parallel-size")
    flag = engine.arguments.last("pipeline-parallel-size")
    if nixl is None or stages is None or stages < 2 or flag is None:
        return
    if nixl.role == "kv_consumer":
        message = f"{nixl.connector} cannot receive with {stages} pipeline stages"
        yield Problem(flag, message, "Set --pipeline-parallel-size=1 on decode.")
    elif nixl.connector != "NixlPushConnector":
        message = (
            f"{nixl.connector} with {stages} pipeline stages does not start where the hybrid KV cache is on"
        )
        fix = "Set --pipeline-parallel-size=1, or --disable-hybrid-kv-cache-manager on both roles."
        yield Problem(flag, message, fix, Severity.WARNING)


@rule("KV043", "efa-without-libfabric", Severity.WARNING, scope=Engine)
def efa_without_libfabric(engine: Engine, context: Context) -> Iterator[Problem]:
    """A pod with EFA devices whose NIXL does not use the backend for them.

    Why:
        NIXL takes UCX unless kv_connector_extra_config.backends names another; no variable chooses it. UCX over
        EFA is TCP, so the devices stay unused.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        resources: {limits: {nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 32}}
        ```

    Good:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_connector_extra_config":{"backends":["LIBFABRIC"]}}
        resources: {limits: {nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 32}}
        ```

    References:
        - https://github.com/ai-dynamo/nixl/blob/main/src/plugins/libfabric/README.md
    """
    nixl = kv.over(engine, "nixl", context)
    devices = "vpc.amazonaws.com/efa" in {**engine.container.limits(), **engine.container.requests()}
    if nixl is None or not devices:
        return
    backends = kv.option(nixl, "backends", ["UCX"])
    if isinstance(backends, list) and "LIBFABRIC" not in backends:
        message = (
            f"the pod has EFA devices, but {nixl.connector} uses {', '.join(map(str, backends)) or 'none'}"
        )
        fix = 'Set kv_connector_extra_config to {"backends": ["LIBFABRIC"]}, on both roles.'
        yield Problem(nixl.argument, message, fix)


@rule("KV044", "prefill-stops-before-lease", Severity.WARNING, scope=Engine)
def prefill_stops_before_lease(engine: Engine, context: Context) -> Iterator[Problem]:
    """A prefill pod that may stop while decode still fetches KV from it.

    Why:
        Nothing waits for KV that was promised: after SIGTERM the engine ends when its own requests have. A
        preStop sleep of the lease (kv_lease_duration, 30 s) lets decode finish.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        lifecycle: {preStop: {sleep: {seconds: 5}}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        lifecycle: {preStop: {sleep: {seconds: 30}}}
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ```

    References:
        - https://github.com/vllm-project/vllm/pull/34730
    """
    nixl = kv.over(engine, "nixl", context)
    if nixl is None or engine.role != "prefill" or engine.pod.platform != "kubernetes":
        return
    lease = kv.option(nixl, "kv_lease_duration", _LEASE)
    hook = engine.container.pre_stop
    if not isinstance(lease, (int, float)) or (hook is not None and hook.seconds is None):
        return
    seconds = hook.seconds if hook is not None and hook.seconds else 0
    if seconds < lease:
        message = f"prefill stops {seconds} s after it is told to, but leases its KV for {lease:g} s"
        fix = f"Let preStop sleep for {lease:g} s, and terminationGracePeriodSeconds for that and the drain."
        yield Problem(hook if hook is not None else nixl.argument, message, fix)


@rule("KV034", "lease-too-short", Severity.WARNING, scope=Engine)
def lease_too_short(engine: Engine, context: Context) -> Iterator[Problem]:
    """A lease of NIXL that runs out before decode has fetched the KV.

    Why:
        Decode renews it every sixth part of kv_lease_duration, in whole seconds, so under 6 s never in time. When
        decode's queue is longer than the lease, prefill frees the blocks and decode reads what came after them:
        wrong answers with status 200.

    Bad:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_connector_extra_config":{"kv_lease_duration":5}}
        ```

    Good:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_connector_extra_config":{"kv_lease_duration":60}}
        ```

    References:
        - vllm/distributed/kv_transfer/kv_connector/v1/nixl
        - https://github.com/vllm-project/aibrix/issues/1772
    """
    nixl = kv.over(engine, "nixl", context)
    lease = kv.option(nixl, "kv_lease_duration") if nixl else None
    if (
        nixl
        and isinstance(lease, (int, float))
        and lease < _BEATS
        and kv.has(engine, "kvLease", context) is not False
    ):
        message = f"kv_lease_duration is {lease:g} s, which decode cannot renew in time"
        yield Problem(
            nixl.argument, message, f"Set it above the time that requests wait at decode, {_LEASE} at least."
        )


@rule("KV045", "nixl-buffer-device", Severity.ERROR, scope=Engine, fix="sets the only device that there is.")
def nixl_buffer_device(engine: Engine, context: Context) -> Iterator[Problem]:
    """A kv_buffer_device that NIXL does not have on the image's platform.

    Why:
        vLLM refuses it when the engine starts: cuda or cpu on NVIDIA and AMD, xpu or cpu on Intel, cpu on a
        processor.

    Bad:
        ```yaml
        image: vllm/vllm-openai-cpu:v0.33.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_buffer_device":"cuda"}']
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai-cpu:v0.33.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_buffer_device":"cpu"}']
        ```

    References:
        - vllm/distributed/kv_transfer/kv_connector/v1/nixl
    """
    nixl = kv.over(engine, "nixl", context)
    devices = kv.listed("deviceOfImage", context).get(engine.container.image.name)
    device = nixl.config.get("kv_buffer_device") if nixl else None
    if nixl and devices and device and kv.known(device) and device not in devices:
        image = engine.container.image.name
        message = f"kv_buffer_device is {device!r}, but in {image} it can be {' or '.join(devices)}"
        fix = f"Set kv_buffer_device to {devices[0]}, or remove it."
        repair = _device_set(nixl, devices[0]) if len(devices) == 1 and nixl is engine.kv else None
        yield Problem(nixl.key("kv_buffer_device"), message, fix, repair=repair)


def _device_set(nixl: KvTransfer, device: str) -> Repair | None:
    return repairs.json_changed(nixl.argument, ("kv_buffer_device",), lambda node: Set(node, device))


@rule("KV046", "state-layout-unset", Severity.WARNING, scope=Engine, fix="sets DS.")
def state_layout_unset(engine: Engine, context: Context) -> Iterator[Problem]:
    """A model with Mamba layers under NIXL without the layout of their state that transfers need.

    Why:
        NIXL asserts VLLM_SSM_CONV_STATE_LAYOUT=DS for such models; SD is the default.

    Bad:
        ```yaml
        args: [ibm-granite/granite-4.0-h-small, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ```

    Good:
        ```yaml
        args: [ibm-granite/granite-4.0-h-small, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        env: [{name: VLLM_SSM_CONV_STATE_LAYOUT, value: DS}]
        ```

    References:
        - docs/features/nixl_connector_compatibility.md
    """
    name = "VLLM_SSM_CONV_STATE_LAYOUT"
    nixl = kv.over(engine, "nixl", context)
    if nixl is None or not kv.is_model(engine, "stateModels", context):
        return
    if kv.unset(engine, name) or engine.variable(name) == "SD":
        message = f"{engine.model} has Mamba layers, whose state NIXL moves in the layout DS only"
        where, fix = engine.variables.get(name) or nixl.argument, f"Set {name}=DS on both roles."
        yield Problem(where, message, fix, repair=repairs.variable_set(engine, name, "DS"))


@rule("KV047", "rdma-transport-without-device", Severity.WARNING, scope=Engine)
def rdma_transport_without_device(engine: Engine, context: Context) -> Iterator[Problem]:
    """UCX_TLS leaves only transports of RDMA devices between pods, and the pod asks for no such device.

    Why:
        Without a device there is then no way between the pods at all, and every transfer fails.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        env: [{name: UCX_TLS, value: 'rc,cuda,sm,self'}]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        env: [{name: UCX_TLS, value: 'rc,cuda,sm,self'}]
        resources: {limits: {nvidia.com/gpu: 1, rdma/ib: 1}}
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        env: [{name: UCX_TLS, value: 'rc,tcp,cuda,sm,self'}]
        ```

    References:
        - https://openucx.readthedocs.io/en/master/faq.html
    """
    given = engine.variable("UCX_TLS") or ""
    if kv.over(engine, "nixl", context) is None or given.startswith("^"):
        return
    allowed = {part.strip() for part in given.split(",")}
    needs = allowed & set(kv.listed("ucxNetwork", context))
    if (
        needs
        and not allowed & set(kv.listed("ucxOther", context))
        and kv.rdma_device(engine, context) is False
    ):
        message = f"UCX_TLS is {given!r}: between pods only RDMA, but the pod asks for no RDMA device"
        fix = "Ask for a device such as rdma/ib in resources.limits, or add tcp to UCX_TLS."
        yield Problem(engine.variables["UCX_TLS"], message, fix)


@rule("KV048", "side-channel-port-declared", Severity.WARNING, scope=Engine)
def side_channel_port_declared(engine: Engine, context: Context) -> Iterator[Problem]:
    """A container port that is named for NIXL, but not the one its side channel listens on.

    Why:
        The listener takes VLLM_NIXL_SIDE_CHANNEL_PORT: 5600 unless it is set, 5557 before 0.11.1. A policy or
        a Service that names the declared port then opens the wrong one.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ports: [{name: nixl, containerPort: 5557}]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ports: [{name: nixl, containerPort: 5557}]
        env: [{name: VLLM_NIXL_SIDE_CHANNEL_PORT, value: "5557"}]
        ```
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --data-parallel-size=2
          - --kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}
        ports: [{name: nixl-0, containerPort: 5600}, {name: nixl-1, containerPort: 5601}]
        ```

    References:
        - https://github.com/vllm-project/vllm/pull/25056
    """
    base, ranks = kv.side_channel_port(engine, context), kv.local_ranks(engine)
    if kv.over(engine, "nixl", context) is None or base is None or ranks is None:
        return
    first, count = base + ranks[0], ranks[1]
    for port in engine.container.ports:
        if _PORT_NAME.search(port.name) and port.number and not first <= port.number < first + count:
            message = f"the port {port.name} is {port.number}, but NIXL's side channel listens on {first}"
            yield Problem(port, message, f"Declare {first}, or set {_PORT} to match.")


@rule("KV049", "nixl-known-fault", Severity.WARNING, scope=Engine, versioned=True)
def nixl_known_fault(engine: Engine, context: Context) -> Iterator[Problem]:
    """A release in which NIXL is known to fail.

    Why:
        In 0.26 decode crashes in loadRemoteMD when a prefill engine that it knew comes back.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.26.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/49238
    """
    nixl = kv.over(engine, "nixl", context)
    for fault in kv.listed("nixlFaults", context) if nixl and nixl.role != "kv_producer" else ():
        if nixl and kv.within(engine, fault["since"], fault["until"]):
            message = f"with NIXL in this release {fault['what']} ({fault['report']})"
            yield Problem(
                engine.container.image, message, f"Run {fault['until']} or newer, or an older release."
            )
