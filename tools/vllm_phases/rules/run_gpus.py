"""RUN: engines and the GPUs that they get."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vllm_phases.catalogue.store import sort_key
from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.model.card import choices
from vllm_phases.model.ranks import needed
from vllm_phases.model.relations import engines_in
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Argument

_SIZES = ("tensor-parallel-size", "data-parallel-size-local", "data-parallel-size", "pipeline-parallel-size")
_OTHER_DEVICES = re.compile(r"gpu|cuda|mig|npu|tpu|xpu|accelerator|neuron|hami|vcore")
_FRACTIONS = re.compile(r"gpu[-_.]?(fraction|memory|share|slice)")
_ARCHITECTURE_LABEL = "kubernetes.io/arch"
_TAGS = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@rule("RUN001", "more-gpus-than-asked", Severity.ERROR, scope=Engine)
def more_gpus_than_asked(engine: Engine, context: Context) -> Iterator[Problem]:
    """An engine that needs more GPUs than its container asks for, with nothing that joins several nodes.

    Why:
        "World size is larger than the number of available GPUs": the engine does not start. Over several pods
        it takes --nnodes with --node-rank and --master-addr, or Ray.

    Bad:
        ```yaml
        args: [deepseek-ai/DeepSeek-V3.1, --tensor-parallel-size=16]
        resources: {limits: {nvidia.com/gpu: 8}}
        ```
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-32B, --tensor-parallel-size=4]
            deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]}}}
        ```

    Good:
        ```yaml
        args:
          - deepseek-ai/DeepSeek-V3.1
          - --tensor-parallel-size=16
          - --nnodes=2
          - --node-rank=$(LWS_WORKER_INDEX)
          - --master-addr=$(LWS_LEADER_ADDRESS)
        resources: {limits: {nvidia.com/gpu: 8}}
        ```
        ```yaml
        args: [deepseek-ai/DeepSeek-V3.1, --tensor-parallel-size=16, --distributed-executor-backend=ray]
        resources: {limits: {nvidia.com/gpu: 8}}
        ```
        ```yaml
        args: [deepseek-ai/DeepSeek-V3.1, --data-parallel-size=16, --data-parallel-size-local=8]
        resources: {limits: {nvidia.com/gpu: 8}}
        ```

    References:
        - vllm 0.32.0, vllm/config/parallel.py
        - https://github.com/ai-dynamo/dynamo/issues/4934
    """
    wanted, count = needed(engine), engine.gpu.count
    if wanted is None or not count or wanted <= count:
        return
    where = _size(engine) or engine.gpu.node
    nodes = engine.number("nnodes") or 1
    why = f"on each of {nodes} nodes" if nodes > 1 else "and neither --nnodes nor Ray joins other pods"
    message = f"{_spelled(engine)} needs {wanted} GPUs, but the container has {count} {why}"
    fix = (
        f"Ask for {wanted} GPUs, lower the size, or join nodes with --nnodes, --node-rank and --master-addr."
    )
    yield Problem(where, message, fix)


@rule("RUN002", "idle-gpus", Severity.WARNING, scope=Engine)
def idle_gpus(engine: Engine, context: Context) -> Iterator[Problem]:
    """A container with more GPUs than its engines use.

    Why:
        Without --tensor-parallel-size an engine uses one GPU, whatever the container has; the others are paid
        for and idle, and a model that needs them runs out of memory.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-32B]
        resources: {limits: {nvidia.com/gpu: 4}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-32B, --tensor-parallel-size=2, --data-parallel-size=2]
        resources: {limits: {nvidia.com/gpu: 4}}
        ```
        ```yaml
        args: [Qwen/Qwen3-32B, --tensor-parallel-size=$(TP)]
        resources: {limits: {nvidia.com/gpu: 4}}
        ```
        ```yaml
        image: vllm/vllm-omni:v0.20.0
        command: [vllm, serve]
        args: [Qwen/Qwen2.5-Omni-7B, --omni]
        resources: {limits: {nvidia.com/gpu: 2}}
        ```

    References:
        - https://github.com/Project-HAMi/HAMi/issues/722
        - https://github.com/llm-d-incubation/llm-d-modelservice/issues/176
    """
    beside = engines_in(context.release, engine.pod)
    group = [one for one in beside if one.container is engine.container]
    used = [needed(one) for one in group]
    total = sum(wanted for wanted in used if wanted is not None)
    count = engine.gpu.count
    if engine is group[0] and None not in used and count is not None and 0 < total < count:
        message = f"the container has {count} GPUs, but {_spelled(engine)} uses {total}"
        fix = f"Ask for {total}, or raise --tensor-parallel-size or --data-parallel-size."
        yield Problem(engine.gpu.node, message, fix)


@rule("RUN003", "image-without-gpu", Severity.ERROR, scope=Engine)
def image_without_gpu(engine: Engine, context: Context) -> Iterator[Problem]:
    """An image that is built for a GPU, in a container that asks for none.

    Why:
        vLLM finds no platform and exits. A node with time slices does not hand them out by itself either: a
        slice is asked for like a card.

    Bad:
        ```yaml
        nodeSelector: {nvidia.com/gpu.sharing-strategy: time-slicing}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.26.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {cpu: 8, memory: 48Gi}}
        ```

    Good:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1}}
        ```
        ```yaml
        image: vllm/vllm-openai-cpu:v0.33.0
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --data-parallel-size=8, --data-parallel-size-local=0]
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/23661
    """
    built = _accelerator(engine, context)
    if built in ("", "cpu") or engine.gpu.kind != "none" or engine.number("data-parallel-size-local") == 0:
        return
    if engine.pod.merged:
        return
    limits = {**engine.container.requests(), **engine.container.limits()}
    marks = {**engine.pod.labels, **engine.pod.annotations}
    if any("/" in name and _OTHER_DEVICES.search(name) for name in limits) or any(
        _FRACTIONS.search(name) for name in marks
    ):
        return
    message = (
        f"image {engine.container.image.name} is built for {built} GPUs, but the container asks for none"
    )
    resource = context.facts("images")[built]["gpuResource"]
    fix = f"Set resources.limits: {{{resource}: 1}}."
    weight = Severity.WARNING if _may_get_one(engine) else None
    yield Problem(engine.container.node.at("resources", "limits"), message, fix, weight)


@rule("RUN004", "gpu-of-another-maker", Severity.ERROR, scope=Engine)
def gpu_of_another_maker(engine: Engine, context: Context) -> Iterator[Problem]:
    """An image built for other GPUs than those that the container asks for.

    Why:
        Its kernels do not run there; an image for CPUs leaves the card idle.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.33.0
        resources: {limits: {amd.com/gpu: 1}}
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai-rocm:v0.33.0
        resources: {limits: {amd.com/gpu: 1}}
        ```

    References:
        - catalogue/data/images.yaml, catalogue/data/gpu_resources.yaml
    """
    built, vendor = _accelerator(engine, context), engine.gpu.vendor
    if built and vendor in context.facts("images") and built != vendor:
        message = f"image {engine.container.image.name} is built for {built}, but the container asks for "
        message += engine.gpu.resource
        right = context.facts("images")[vendor]["repository"]
        weight = Severity.WARNING if built == "cpu" else None
        yield Problem(engine.container.image, message, f"Use {right}, or another resource.", weight)


@rule("RUN005", "card-too-old", Severity.ERROR, scope=Engine, versioned=True)
def card_too_old(engine: Engine, context: Context) -> Iterator[Problem]:
    """A pod bound to cards that its image has no code for.

    Why:
        CUDA 13, of which vLLM's default images are from 0.20 on, begins with compute capability 7.5: on a V100
        the engine dies with "no kernel image is available for execution on the device".

    Bad:
        ```yaml
        nodeSelector: {nvidia.com/gpu.product: Tesla-V100-SXM2-32GB}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.25.1
            args: [Qwen/Qwen3-8B, --dtype=half]
            resources: {limits: {nvidia.com/gpu: 1}}
        ```

    Good:
        ```yaml
        nodeSelector: {nvidia.com/gpu.product: Tesla-V100-SXM2-32GB}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.25.1-cu129
            args: [Qwen/Qwen3-8B, --dtype=half]
            resources: {limits: {nvidia.com/gpu: 1}}
        ```
        ```yaml
        nodeSelector: {nvidia.com/gpu.product: Tesla-T4}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.25.1
            args: [Qwen/Qwen3-8B, --dtype=half]
            resources: {limits: {nvidia.com/gpu: 1}}
        ```

    References:
        - https://github.com/vllm-project/vllm/pull/39878
        - https://github.com/vllm-project/production-stack/issues/973
    """
    least = _oldest(engine, context)
    for choice in choices(engine.pod) if least else ():
        if choice.cards and all(card.capability < least for card in choice.cards):
            here = ".".join(map(str, max(card.capability for card in choice.cards)))
            wanted = ".".join(map(str, least))
            message = f"{' or '.join(choice.names)} has compute capability {here}, but image "
            message += f"{engine.container.image.name}:{engine.container.image.tag} begins with {wanted}"
            yield Problem(choice.node, message, "Use a newer card, or an older image of another CUDA build.")


@rule("RUN006", "bfloat16-on-old-card", Severity.ERROR, scope=Engine)
def bfloat16_on_old_card(engine: Engine, context: Context) -> Iterator[Problem]:
    """--dtype bfloat16 for cards that have none.

    Why:
        vLLM refuses it at the start below compute capability 8.0.

    Bad:
        ```yaml
        nodeSelector: {nvidia.com/gpu.product: Tesla-T4}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-0.6B, --dtype=bfloat16]
            resources: {limits: {nvidia.com/gpu: 1}}
        ```

    Good:
        ```yaml
        nodeSelector: {nvidia.com/gpu.product: Tesla-T4}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-0.6B, --dtype=half]
            resources: {limits: {nvidia.com/gpu: 1}}
        ```

    References:
        - vllm 0.32.0, vllm/platforms/cuda.py, check_if_supports_dtype
    """
    where = engine.arguments.last("dtype")
    if where is None or where.value != "bfloat16":
        return
    for choice in choices(engine.pod):
        if choice.cards and all(card.capability < (8, 0) for card in choice.cards):
            message = f"--dtype is bfloat16, which {' or '.join(choice.names)} does not have"
            yield Problem(where, message, "Set --dtype=half.")


@rule("RUN007", "image-of-another-architecture", Severity.ERROR, scope=Engine)
def image_of_another_architecture(engine: Engine, context: Context) -> Iterator[Problem]:
    """An image for another processor architecture than the nodes that the pod is bound to.

    Why:
        There is no such image for the node, or it dies with "exec format error".

    Bad:
        ```yaml
        nodeSelector: {kubernetes.io/arch: arm64}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0-x86_64
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/gpu: 1}}
        ```

    Good:
        ```yaml
        nodeSelector: {kubernetes.io/arch: arm64}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/gpu: 1}}
        ```

    References:
        - catalogue/data/images.yaml, architectures
    """
    node = engine.pod.spec.at("nodeSelector", _ARCHITECTURE_LABEL)
    built, tag = _accelerator(engine, context), engine.container.image.tag
    if not node.text() or built not in context.facts("images"):
        return
    suffix = next((_TAGS[name] for name in _TAGS if tag.endswith(f"-{name}")), "")
    there = [suffix] if suffix else context.facts("images")[built]["architectures"]
    if node.text() in _TAGS.values() and node.text() not in there:
        message = f"image {engine.container.image.name}:{tag} is for {' and '.join(there)}, "
        message += f"but the pod for {node.text()}"
        yield Problem(engine.container.image, message, f"Use an image for {node.text()}.")


@rule("RUN008", "device-not-there", Severity.ERROR, scope=Engine)
def device_not_there(engine: Engine, context: Context) -> Iterator[Problem]:
    """CUDA_VISIBLE_DEVICES that names a card which the container does not have, or too few.

    Why:
        The device plugin gives a container its cards only, numbered from 0. CUDA stops counting at the first
        number that does not exist.

    Bad:
        ```yaml
        env: [{name: CUDA_VISIBLE_DEVICES, value: '1'}]
        resources: {limits: {nvidia.com/gpu: 1}}
        ```
        ```yaml
        args: [Qwen/Qwen3-32B, --tensor-parallel-size=2]
        env: [{name: CUDA_VISIBLE_DEVICES, value: '0'}]
        resources: {limits: {nvidia.com/gpu: 2}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-32B, --tensor-parallel-size=2]
        env: [{name: CUDA_VISIBLE_DEVICES, value: '0,1'}]
        resources: {limits: {nvidia.com/gpu: 2}}
        ```

    References:
        - https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables
    """
    text = engine.variable("CUDA_VISIBLE_DEVICES") or ""
    names = [part.strip() for part in text.split(",")]
    if not all(name.isdecimal() for name in names):
        return
    count, wanted = engine.gpu.count, needed(engine)
    missing = [name for name in names if count and engine.pod.platform == "kubernetes" and int(name) >= count]
    where = engine.variables["CUDA_VISIBLE_DEVICES"]
    if missing:
        message = f"CUDA_VISIBLE_DEVICES is {text}, but the container has {count} GPUs, numbered from 0"
        yield Problem(where, message, "Remove it, or write 0 and so on.")
    elif wanted is not None and wanted > len(names):
        message = f"CUDA_VISIBLE_DEVICES shows {len(names)} GPUs, but {_spelled(engine)} needs {wanted}"
        yield Problem(where, message, "Name as many as the engine needs, or remove it.")


def _accelerator(engine: Engine, context: Context) -> str:
    """What the engine's image is built for, as a key of images.yaml; "" where it is not known."""
    image = engine.container.image
    if "cpu" in image.tag:
        return ""
    official = (
        name
        for name, facts in context.facts("images").items()
        if facts["repository"].rpartition("/")[2] == image.name
    )
    return next(official, "") or context.facts("image_builds").get(image.name, {}).get("accelerator", "")


def _oldest(engine: Engine, context: Context) -> tuple[int, ...]:
    """The oldest compute capability that an official CUDA image runs on; empty where it is not known."""
    image = engine.container.image
    if context.facts("images")["nvidia"]["repository"].rpartition("/")[2] != image.name or not engine.release:
        return ()
    builds = context.facts("cuda_builds").values()
    tagged = [build for build in builds if build["tag"] in image.tag]
    here = sort_key(engine.release.version)
    since = [build for build in builds if here >= sort_key(build["since"])]
    return tuple(map(int, (tagged or since)[0]["capability"].split(".")))


def _may_get_one(engine: Engine) -> bool:
    """Whether a GPU may come another way: the runtime's default, a privileged container, a controller."""
    pod = engine.pod
    chosen = {"NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"} & engine.variables.keys()
    runtime = pod.spec.text("runtimeClassName") or chosen
    privileged = pod.security("privileged", engine.container).value is True
    return (
        bool(runtime) or privileged or not pod.as_written or pod.spec.at("resourceClaims").value is not None
    )


def _size(engine: Engine) -> Argument | None:
    """The option that asks for the most GPUs."""
    given = [found for flag in _SIZES if (found := engine.arguments.last(flag)) is not None]
    return max(given, key=lambda option: engine.number(option.name) or 0, default=None)


def _spelled(engine: Engine) -> str:
    """The sizes of an engine in words."""
    given = [f"{flag} {engine.number(flag)}" for flag in _SIZES if flag in engine.arguments]
    return " with ".join(given) or "tensor-parallel-size 1"
