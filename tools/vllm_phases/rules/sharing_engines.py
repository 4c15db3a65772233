"""SHR: engines on a slice of a GPU that HAMi keeps to its share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine, Pod
from vllm_phases.model.gpu import gpu_request
from vllm_phases.model.sharing import is_mig, is_slice, memory_share
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Node

_POLICY = "GPU_CORE_UTILIZATION_POLICY"
_SMALL = 0.6
_FULL = 100
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _several(engine: Engine, flag: str) -> int:
    """The known value of a size, 1 where it is not known."""
    return engine.number(flag) or 1


@rule("SHR011", "whole-card-by-default", Severity.NOTE, scope=Engine)
def whole_card_by_default(engine: Engine, context: Context) -> Iterator[Problem]:
    """An engine of HAMi's scheduler that asks for cards, but says neither how much of them nor all.

    Why:
        Without gpumem the pod takes all memory of the card, whatever policy packs pods. Exclusive use comes
        by gpucores 100, which only the webhook adds, and that is ignored when it does not answer.

    Bad:
        ```yaml
        metadata: {annotations: {hami.io/gpu-scheduler-policy: binpack}}
        spec:
          schedulerName: hami-scheduler
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B]
              resources: {limits: {nvidia.com/gpu: 1}}
        ```

    Good:
        ```yaml
        schedulerName: hami-scheduler
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpucores: 100}}
        ```

    References:
        - https://github.com/Project-HAMi/HAMi/issues/1173
        - HAMi v2.10.0, pkg/scheduler/webhook.go
    """
    scheduler = context.facts("hami")["scheduler"]["name"]
    if engine.pod.spec.text("schedulerName") != scheduler or engine.gpu.resource != "nvidia.com/gpu":
        return
    if not engine.gpu.shares:
        packs = engine.pod.annotations.get("hami.io/gpu-scheduler-policy", "").startswith("binpack")
        aim = ", so binpack has nothing to pack" if packs else ""
        message = f"without nvidia.com/gpumem the engine takes the whole card{aim}"
        fix = "Set nvidia.com/gpucores: 100 for the whole card, or nvidia.com/gpumem for a slice."
        yield Problem(engine.gpu.node, message, fix, Severity.WARNING if packs else None)


@rule("SHR012", "spread-slices", Severity.WARNING, scope=Engine)
def spread_slices(engine: Engine, context: Context) -> Iterator[Problem]:
    """Slices without a policy, which HAMi gives to one card each as long as there are idle ones.

    Why:
        HAMi's policy for cards is spread by default: slices pack onto one card only when no other is left,
        and then prefill finds no idle card.

    Bad:
        ```yaml
        schedulerName: hami-scheduler
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    Good:
        ```yaml
        metadata: {annotations: {hami.io/gpu-scheduler-policy: binpack}}
        spec:
          schedulerName: hami-scheduler
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B]
              resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    References:
        - https://github.com/Project-HAMi/HAMi/issues/882
        - HAMi v2.10.0, charts/hami/values.yaml, gpuSchedulerPolicy
    """
    exclusive = engine.gpu.shares.get("gpucores")
    if not is_slice(engine.gpu) or (exclusive is not None and exclusive.number() == _FULL):
        return
    if engine.pod.owner and "hami.io/gpu-scheduler-policy" not in engine.pod.annotations:
        message = "no hami.io/gpu-scheduler-policy is set, and HAMi spreads slices over the cards by default"
        fix = "Annotate the pod template with hami.io/gpu-scheduler-policy: binpack (or spread, if meant)."
        yield Problem(engine.pod.metadata.at("annotations"), message, fix)


@rule("SHR013", "throttled-cores", Severity.WARNING, scope=Engine)
def throttled_cores(engine: Engine, context: Context) -> Iterator[Problem]:
    """A limit on the compute of a slice.

    Why:
        HAMi's limiter delays kernels but not CUDA graphs: it costs latency in prefill and hardly binds decode.
        With several ranks and --enforce-eager, where every kernel is delayed, engines hang.

    Bad:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000, nvidia.com/gpucores: 50}}
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --tensor-parallel-size=2, --enforce-eager]
        resources: {limits: {nvidia.com/gpu: 2, nvidia.com/gpumem: 40000, nvidia.com/gpucores: 50}}
        ```

    Good:
        ```yaml
        env: [{name: GPU_CORE_UTILIZATION_POLICY, value: disable}]  # counted by the scheduler, not enforced
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000, nvidia.com/gpucores: 50}}
        ```

    References:
        - https://github.com/Project-HAMi/HAMi/issues/1445
        - https://github.com/Project-HAMi/HAMi-core/issues/142
    """
    node = engine.gpu.shares.get("gpucores")
    cores = node.number() if node is not None else None
    policy = (engine.variable(_POLICY) or "").lower()
    if node is None or cores is None or not 0 < cores < _FULL or policy == "disable":
        return
    hangs = _several(engine, "tensor-parallel-size") > 1 and engine.truth("enforce-eager") is True
    what = (
        "with several ranks and --enforce-eager hangs the engine" if hangs else "delays kernels of the engine"
    )
    message = f"nvidia.com/gpucores is {cores}, which {what}"
    fix = f"Remove nvidia.com/gpucores, or set {_POLICY} to disable so that only the scheduler counts it."
    yield Problem(node, message, fix, Severity.ERROR if hangs else None)


@rule("SHR014", "unknown-core-policy", Severity.WARNING, scope=Engine)
def unknown_core_policy(engine: Engine, context: Context) -> Iterator[Problem]:
    """A policy for HAMi's limit on compute that HAMi-core does not know.

    Why:
        HAMi-core compares the text, all in lower or all in upper case. Any other is taken for the default:
        the limit holds whenever several tasks are active.

    Bad:
        ```yaml
        env: [{name: GPU_CORE_UTILIZATION_POLICY, value: disabled}]
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000, nvidia.com/gpucores: 50}}
        ```

    Good:
        ```yaml
        env: [{name: GPU_CORE_UTILIZATION_POLICY, value: FORCE}]
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000, nvidia.com/gpucores: 50}}
        ```

    References:
        - HAMi-core 8f3a89c, src/multiprocess
    """
    given = engine.variable(_POLICY)
    known = context.facts("hami")["corePolicies"]["names"]
    if given and given not in known:
        message = f"{_POLICY} is {given!r}, which HAMi-core takes for the default"
        yield Problem(engine.variables[_POLICY], message, "Set default, force or disable.")


@rule("SHR015", "isolation-switched-off", Severity.ERROR, scope=Engine)
def isolation_switched_off(engine: Engine, context: Context) -> Iterator[Problem]:
    """CUDA_DISABLE_CONTROL on a slice.

    Why:
        HAMi's device plugin then does not load its library into the container: the engine sees the whole card,
        takes its share of that, and the neighbours run out of memory.

    Bad:
        ```yaml
        env: [{name: CUDA_DISABLE_CONTROL, value: 'true'}]
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    Good:
        ```yaml
        env: [{name: CUDA_DISABLE_CONTROL, value: 'true'}]
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpucores: 100}}
        ```

    References:
        - HAMi v2.10.0, pkg/device-plugin
        - https://github.com/Project-HAMi/HAMi/issues/2641
    """
    if engine.variable("CUDA_DISABLE_CONTROL") == "true" and is_slice(engine.gpu):
        message = "CUDA_DISABLE_CONTROL is true, so nothing keeps the engine to its slice"
        yield Problem(engine.variables["CUDA_DISABLE_CONTROL"], message, "Remove it, or take a whole card.")


@rule("SHR016", "hook-hidden", Severity.WARNING, scope=Pod)
def hook_hidden(pod: Pod, context: Context) -> Iterator[Problem]:
    """A volume where HAMi's device plugin mounts its library.

    Why:
        Whichever mount comes last hides the other: without libvgpu.so nothing keeps a slice to its share.

    Bad:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        volumeMounts: [{name: preload, mountPath: /etc/ld.so.preload, subPath: ld.so.preload}]
        ```

    Good:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        volumeMounts: [{name: cache, mountPath: /usr/local/share/cache}]
        ```

    References:
        - HAMi v2.10.0, pkg/device-plugin
    """
    paths = context.facts("hami")["hookPaths"]["names"]
    for container in pod.containers:
        if pod.platform == "kubernetes" and gpu_request(pod, container).shares:
            for mount in container.mounts:
                if mount.path.rstrip("/") in paths:
                    message = (
                        f"a volume is mounted at {mount.path}, where HAMi mounts what keeps slices apart"
                    )
                    yield Problem(mount, message, "Mount it somewhere else.")


@rule("SHR017", "tensor-parallel-slices", Severity.WARNING, scope=Engine)
def tensor_parallel_slices(engine: Engine, context: Context) -> Iterator[Problem]:
    """Tensor parallelism over slices of several cards.

    Why:
        NCCL and CUDA IPC under HAMi's library are where engines crash or hang: vLLM above 0.18 needs HAMi 2.9,
        vLLM 0.25 and later HAMi 2.10, and custom all-reduce does not work.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-32B, --tensor-parallel-size=2]
        resources: {limits: {nvidia.com/gpu: 2, nvidia.com/gpumem: 40000}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-32B, --tensor-parallel-size=2]
        resources: {limits: {nvidia.com/gpu: 2, nvidia.com/gpucores: 100}}
        ```

    References:
        - https://github.com/Project-HAMi/HAMi/issues/1764
        - https://github.com/Project-HAMi/HAMi/issues/2641
        - https://github.com/Project-HAMi/HAMi/pull/1947
    """
    size = _several(engine, "tensor-parallel-size")
    if size < 2 or not is_slice(engine.gpu):
        return
    lacking = [
        word
        for word, there in (
            ("--disable-custom-all-reduce", engine.truth("disable-custom-all-reduce")),
            ("NCCL_CUMEM_HOST_ENABLE=0", engine.variable("NCCL_CUMEM_HOST_ENABLE") == "0"),
        )
        if not there
    ]
    message = f"tensor-parallel-size is {size} over HAMi slices, which hang or crash by the versions of both"
    fix = (
        f"Prefer one slice an engine; else set {' and '.join(lacking)} and"
        if lacking
        else "Prefer one slice, or"
    )
    where = engine.arguments.last("tensor-parallel-size") or engine.gpu.node
    yield Problem(where, message, f"{fix} run HAMi 2.10 or later.")


@rule("SHR018", "data-parallel-slices", Severity.WARNING, scope=Engine)
def data_parallel_slices(engine: Engine, context: Context) -> Iterator[Problem]:
    """Several data parallel ranks in a container with a slice.

    Why:
        The second process in a container of HAMi's sees all memory as free, so ranks take more than the slice
        has.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --data-parallel-size=2]
        resources: {limits: {nvidia.com/gpu: 2, nvidia.com/gpumem: 40000}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B]
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    References:
        - https://github.com/Project-HAMi/HAMi-core/issues/191
    """
    local = (
        engine.number("data-parallel-size-local") if "data-parallel-size-local" in engine.arguments else None
    )
    size = local if local is not None else engine.number("data-parallel-size")
    where = engine.arguments.last("data-parallel-size-local") or engine.arguments.last("data-parallel-size")
    if where is not None and is_slice(engine.gpu) and size is not None and size > 1:
        message = f"{size} data parallel ranks share a container, where HAMi shows each all memory as free"
        yield Problem(where, message, "Run one rank a pod, as replicas.")


@rule("SHR019", "transfer-on-slice", Severity.NOTE, scope=Engine)
def transfer_on_slice(engine: Engine, context: Context) -> Iterator[Problem]:
    """KV transfer to or from a HAMi slice, which nobody has published a test of.

    Why:
        CUDA IPC is reported to fail inside slices. A transfer may then take a slower way, or none. (KV068 is
        about P2pNcclConnector, with which engines crash.)

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpucores: 100}}
        ```

    References:
        - https://github.com/Project-HAMi/HAMi/issues/1423
        - https://github.com/Project-HAMi/HAMi/pull/1947
    """
    if engine.kv is not None and is_slice(engine.gpu):
        for found in filter(None, map(engine.kv.find, ("NixlConnector", "MooncakeConnector"))):
            message = f"{found.connector} on a HAMi slice: no public test of it is known"
            yield Problem(
                found.key("kv_connector"), message, "Try it on your hardware before you rely on it."
            )


@rule("SHR020", "low-priority-engine", Severity.WARNING, scope=Engine)
def low_priority_engine(engine: Engine, context: Context) -> Iterator[Problem]:
    """An engine with HAMi's low priority.

    Why:
        While any task of high priority is active on its card, kernels of a low one wait, a second at a time:
        tokens stop coming.

    Bad:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000, nvidia.com/priority: 1}}
        ```

    Good:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000, nvidia.com/priority: 0}}
        ```

    References:
        - HAMi v2.10.0, pkg/device/nvidia/device.go (CUDA_TASK_PRIORITY)
    """
    node = engine.gpu.shares.get("priority")
    if node is not None and node.number() == 1:
        message = "nvidia.com/priority is 1, so the engine stands still while a neighbour of priority 0 works"
        yield Problem(node, message, "Give all engines of a card the same priority.")


@rule("SHR021", "preference-ignored", Severity.NOTE, scope=Pod)
def preference_ignored(pod: Pod, context: Context) -> Iterator[Problem]:
    """A preference for some node in a pod with a share of HAMi's.

    Why:
        HAMi's scheduler leaves one node of all that fit, so what is only preferred changes nothing.

    Bad:
        ```yaml
        affinity:
          podAntiAffinity:
            preferredDuringSchedulingIgnoredDuringExecution:
              - {weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname}}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    Good:
        ```yaml
        topologySpreadConstraints:
          - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    References:
        - HAMi v2.10.0, pkg/scheduler/scheduler.go (Filter returns one node)
    """
    if pod.platform != "kubernetes" or not any(gpu_request(pod, one).shares for one in pod.containers):
        return
    for node in _preferences(pod):
        message = "a preference is not followed: HAMi's scheduler leaves one node only"
        yield Problem(node, message, "Write it as a requirement, or leave it out.")


@rule("SHR022", "share-of-a-slice", Severity.WARNING, scope=Engine)
def share_of_a_slice(engine: Engine, context: Context) -> Iterator[Problem]:
    """A small --gpu-memory-utilization on a slice that already is a part of the card.

    Why:
        Under HAMi and MIG an engine sees its slice as the whole card: 0.45 of half a card leaves the rest idle.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --gpu-memory-utilization=0.45]
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --gpu-memory-utilization=0.45]
        resources: {limits: {nvidia.com/mig-3g.40gb: 1}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --gpu-memory-utilization=0.9]
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --gpu-memory-utilization=0.45]
        resources: {limits: {nvidia.com/gpu.shared: 1}}
        ```

    References:
        - HAMi-core 8f3a89c, src/cuda/memory.c (cuMemGetInfo)
        - vllm 0.33.0, vllm/v1/worker/utils.py, request_memory
    """
    where = engine.arguments.last("gpu-memory-utilization")
    share = memory_share(engine)
    if where is None or share is None or share > _SMALL:
        return
    if is_slice(engine.gpu) or is_mig(engine.pod, engine.gpu):
        message = f"--gpu-memory-utilization is {share:g} of the slice, not of the card: the rest stays idle"
        yield Problem(where, message, "Set about 0.9.")


def _preferences(pod: Pod) -> Iterator[Node]:
    for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
        node = pod.spec.at("affinity", kind, _PREFERRED)
        if node.value:
            yield node
    for constraint in pod.spec.items("topologySpreadConstraints"):
        if constraint.text("whenUnsatisfiable") == "ScheduleAnyway":
            yield constraint.at("whenUnsatisfiable")
