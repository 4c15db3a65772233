"""How an engine shares its GPU with others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from vllm_phases.model.engine import Engine
    from vllm_phases.model.gpu import GpuRequest
    from vllm_phases.model.pod import Pod
    from vllm_phases.sources.document import Node

_STRATEGY = "nvidia.com/gpu.sharing-strategy"
_MPS = "nvidia.com/mps.capable"
_PRODUCT = "nvidia.com/gpu.product"
_GKE = "cloud.google.com/gke-gpu-sharing-strategy"
_WHOLE = 100


def is_slice(gpu: GpuRequest) -> bool:
    """Whether a container has a HAMi slice: a share of the memory, which it then takes for the whole."""
    percentage = gpu.shares.get("gpumem-percentage")
    return bool("gpumem" in gpu.shares and gpu.shares["gpumem"].text() != "0") or (
        percentage is not None and percentage.number() not in (0, _WHOLE)
    )


def time_shared(pod: Pod, gpu: GpuRequest) -> tuple[Literal["time-slicing", "MPS"], Node] | None:
    """Whether the device plugin shares the card without dividing its memory, and what says so."""
    selector = pod.spec.at("nodeSelector")
    strategy = selector.at(_STRATEGY)
    if strategy.text() == "mps" or selector.text(_MPS) == "true":
        return "MPS", strategy if strategy else selector.at(_MPS)
    if strategy.text() == "time-slicing":
        return "time-slicing", strategy
    if selector.text(_GKE):
        return "MPS" if selector.text(_GKE) == "mps" else "time-slicing", selector.at(_GKE)
    if selector.text(_PRODUCT).endswith("-SHARED"):
        return "time-slicing", selector.at(_PRODUCT)
    return ("time-slicing", gpu.node) if gpu.resource == "nvidia.com/gpu.shared" else None


def is_mig(pod: Pod, gpu: GpuRequest) -> bool:
    """Whether the GPU is a MIG instance, of NVIDIA's plugin or of HAMi."""
    of_hami = pod.annotations.get("nvidia.com/vgpu-mode") == "mig" and bool(gpu.shares)
    alone = "-MIG-" in pod.spec.text("nodeSelector", _PRODUCT)
    return of_hami or alone or gpu.resource.startswith("nvidia.com/mig-")


def memory_share(engine: Engine) -> float | None:
    """The part of the memory it sees that an engine takes, by default too; None where it is not known.

    None also with --kv-cache-memory-bytes, which counts instead.
    """
    if engine.arguments.open or "kv-cache-memory-bytes" in engine.arguments:
        return None
    try:
        return float(engine.text("gpu-memory-utilization") or "")
    except ValueError:
        return None
