"""RUN and SHR: models and the GPU memory that they are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.model.card import choices
from vllm_phases.model.ranks import world
from vllm_phases.model.sharing import is_slice
from vllm_phases.model.weights import billions, gpu_memory, parameter_bytes
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

_GIB = 2**30
_LEAST = 0.25  # bytes of a parameter in two bits
_LARGE_CARD = 70 * _GIB
_SPARE = 8192  # MiB that are worth a word


@rule("RUN035", "model-larger-than-gpu", Severity.WARNING, scope=Engine)
def model_larger_than_gpu(engine: Engine, context: Context) -> Iterator[Problem]:
    """A model whose weights do not fit into the memory of its GPUs.

    Why:
        The engine dies out of memory while it loads. Sizes are estimated by the model's name; it is an error
        when not even two bits for each parameter fit.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-32B]
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```
        ```yaml
        args: [meta-llama/Llama-3.1-405B-Instruct-AWQ-INT4, --tensor-parallel-size=2]
        resources: {limits: {nvidia.com/gpu: 2, nvidia.com/gpumem: 40000}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-32B, --tensor-parallel-size=2]
        resources: {limits: {nvidia.com/gpu: 2, nvidia.com/gpumem: 40000}}
        ```
        ```yaml
        args: [Qwen/Qwen3-32B-AWQ]
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```
        ```yaml
        args: [Qwen/Qwen3-32B, --cpu-offload-gb=40]
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    References:
        - vllm 0.33.0, vllm/v1/worker/gpu_worker.py
        - catalogue/data/model_sizes.yaml, catalogue/data/gpu_cards.yaml
    """
    memory, ranks, size = gpu_memory(engine), world(engine), billions(engine.model or "")
    offloads = {"cpu-offload-gb", "offload-backend", "load-format"} & {
        one.name for one in engine.arguments.options
    }
    if memory is None or ranks is None or not size or offloads or engine.arguments.open:
        return
    needed, given = size * 1e9 * parameter_bytes(engine), memory * ranks
    if needed >= given:
        message = f"{size:g} billion parameters take about {needed / _GIB:.0f} GiB, but "
        message += f"{ranks} GPU{'s' if ranks > 1 else ''} of {memory / _GIB:.0f} GiB hold {given / _GIB:.0f}"
        fix = "Raise --tensor-parallel-size, take larger cards or slices, or a quantized model."
        never = size * 1e9 * _LEAST >= given
        yield Problem(engine.gpu.node, message, fix, Severity.ERROR if never else None)


@rule("SHR038", "one-slice-a-card", Severity.NOTE, scope=Engine)
def one_slice_a_card(engine: Engine, context: Context) -> Iterator[Problem]:
    """A slice of more than half of the card that the pod asks for.

    Why:
        No second one of the same size fits beside it, so the rest of the card stays idle unless something
        smaller takes it.

    Bad:
        ```yaml
        metadata: {annotations: {nvidia.com/use-gputype: H100-80GB}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B]
              resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 45000}}
        ```

    Good:
        ```yaml
        metadata: {annotations: {nvidia.com/use-gputype: H100-80GB}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B]
              resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    References:
        - catalogue/data/gpu_cards.yaml
    """
    node, cores = engine.gpu.shares.get("gpumem"), engine.gpu.shares.get("gpucores")
    size = node.number() if node is not None else None
    if node is None or not size or (cores is not None and cores.text() == "100"):
        return
    for choice in choices(engine.pod):
        sizes = [card.memory or 0 for card in choice.cards]
        if sizes and all(size < card < 2 * size and card - size > _SPARE for card in sizes):
            message = f"a slice of {size} MiB fits once into {' or '.join(choice.names)} of {max(sizes)} MiB"
            yield Problem(node, message, f"Ask for {min(sizes) // 2} or less, or for the whole card.")


@rule("SHR037", "small-batches-by-default", Severity.NOTE, scope=Engine)
def small_batches_by_default(engine: Engine, context: Context) -> Iterator[Problem]:
    """Decode on a slice of a large card, with the batch size of a small one.

    Why:
        vLLM's default for --max-num-seqs goes by the memory it sees: 1024 from 70 GiB on, 256 below. A slice
        of an H100 or H200 falls below it without anybody's doing.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    Good:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --max-num-seqs=512
          - '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    References:
        - vllm 0.33.0, vllm/engine/arg_utils.py (get_batch_defaults)
    """
    memory = gpu_memory(engine)
    given = "max-num-seqs" in engine.arguments or engine.arguments.open
    if engine.role == "decode" and is_slice(engine.gpu) and memory and memory < _LARGE_CARD and not given:
        message = "--max-num-seqs is not set, and for a slice below 70 GiB it is 256 instead of 1024"
        yield Problem(engine.gpu.node, message, "Set --max-num-seqs to what the cache of the slice holds.")
