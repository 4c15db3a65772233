"""SHR: engines that share the cards of a container or a machine by themselves."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine, Release
from vllm_phases.model.sharing import memory_share
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule("SHR035", "engines-fill-one-card", Severity.ERROR, scope=Release)
def engines_fill_one_card(release: Release, context: Context) -> Iterator[Problem]:
    """Two engines on the same card that together take more than its memory.

    Why:
        Each takes its --gpu-memory-utilization of the whole card, 0.92 by default. The second one does not start:
        "Free memory on device is less than desired GPU memory utilization". It is a warning for commands of which
        the first is not put into the background: they may be meant for several machines.

    Bad:
        ```sh
        CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-8B --port 8100 &
        CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-8B --port 8200 &
        ```
        ```compose
        services:
          prefill:
            image: vllm/vllm-openai:v0.33.0
            command: Qwen/Qwen3-8B
            deploy: {resources: {reservations: {devices: [{driver: nvidia, device_ids: ['0'], capabilities: [gpu]}]}}}
          decode:
            image: vllm/vllm-openai:v0.33.0
            command: Qwen/Qwen3-8B
            deploy: {resources: {reservations: {devices: [{driver: nvidia, device_ids: ['0'], capabilities: [gpu]}]}}}
        ```

    Good:
        ```sh
        CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-8B --port 8100 &
        CUDA_VISIBLE_DEVICES=1 vllm serve Qwen/Qwen3-8B --port 8200 &
        CUDA_VISIBLE_DEVICES=$CARD vllm serve Qwen/Qwen3-8B --port 8300 &
        ```
        ```sh
        vllm serve Qwen/Qwen3-8B --port 8100 --gpu-memory-utilization 0.45 --kv-cache-memory-bytes 8G &
        vllm serve Qwen/Qwen3-8B --port 8200 --gpu-memory-utilization 0.45 --kv-cache-memory-bytes 8G &
        ```

    References:
        - vllm 0.33.0, vllm/v1/worker/utils.py, request_memory
        - https://github.com/vllm-project/vllm/issues/10643
    """
    for one, other, shares in _together(release):
        if sum(shares) > 1:
            where = other.arguments.last("gpu-memory-utilization") or other.start or other.node
            message = f"two engines take {shares[0]:g} and {shares[1]:g} of the same card"
            fix = "Give each its own card, or less than 0.5 to each."
            surely = one.pod.platform == "compose" or one.background
            yield Problem(where, message, fix, None if surely else Severity.WARNING)


@rule("SHR036", "engines-start-together", Severity.WARNING, scope=Release)
def engines_start_together(release: Release, context: Context) -> Iterator[Problem]:
    """Two engines on the same card that measure its memory at the same time.

    Why:
        An engine takes whatever the card loses while it starts for its own use. Two at once leave each other
        too small a cache, or "No available memory for the cache blocks". A given size is not measured.

    Bad:
        ```sh
        CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-8B --port 8100 --gpu-memory-utilization 0.45 &
        CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-8B --port 8200 --gpu-memory-utilization 0.45 &
        ```

    Good:
        ```sh
        CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-8B --port 8100 --kv-cache-memory-bytes 8G &
        CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-8B --port 8200 --kv-cache-memory-bytes 8G &
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/55827
    """
    for one, other, shares in _together(release):
        waits = one.pod.platform == "compose" and (one.node.at("depends_on") or other.node.at("depends_on"))
        if sum(shares) <= 1 and not waits:
            where = other.arguments.last("gpu-memory-utilization") or other.start or other.node
            message = "two engines of the same card start together, and each measures the other's memory"
            yield Problem(where, message, "Set --kv-cache-memory-bytes, or start one after the other.")


def _together(release: Release) -> Iterator[tuple[Engine, Engine, tuple[float, float]]]:
    """Each two engines that run on the same card at the same time, and the share that each takes."""
    groups: dict[object, list[Engine]] = {}
    for engine in release.engines:
        if (place := _place(engine)) is not None:
            groups.setdefault(place, []).append(engine)
    for group in groups.values():
        for one, other in pairwise(group):
            shares = memory_share(one), memory_share(other)
            if shares[0] is not None and shares[1] is not None and _apart(one, other):
                yield one, other, (shares[0], shares[1])


def _apart(one: Engine, other: Engine) -> bool:
    """Whether two engines can run at once: on different ports, unless each has a network of its own."""
    return one.pod.platform == "compose" or (None not in (one.port, other.port) and one.port != other.port)


def _place(engine: Engine) -> object:
    """What engines on the same cards have in common; None where that is not known."""
    platform = engine.pod.platform
    visible = engine.variables.get("CUDA_VISIBLE_DEVICES")
    if (visible is not None and visible.value is None) or "device-ids" in engine.arguments:
        return None
    cards = visible.value if visible is not None else ""
    if platform == "kubernetes":
        return id(engine.container), cards
    if platform == "compose" and not engine.node.at("profiles"):
        listed = ",".join(item.text() for item in engine.gpu.node.items("device_ids"))
        return (engine.node.document.file, listed, cards) if listed or cards else None
    return (engine.node.document.file, cards) if platform == "shell" else None
