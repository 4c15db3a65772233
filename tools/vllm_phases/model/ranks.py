"""How many GPUs an engine uses in its pod."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vllm_phases.model.engine import Engine

_RAY = re.compile(r"\bray(\b|_)|multi-node-serving")
_WORLD = ("tensor-parallel-size", "pipeline-parallel-size", "prefill-context-parallel-size")


def joined(engine: Engine) -> bool:
    """Whether Ray, or a launcher that is not here, brings in the GPUs of other pods."""
    backends = (
        engine.arguments.text(f"{kind}-backend") for kind in ("distributed-executor", "data-parallel")
    )
    given = {"ray", "external_launcher"} & set(backends) or "RAY_ADDRESS" in engine.variables
    return bool(given) or any(_RAY.search(word.text) for word in engine.container.words)


def world(engine: Engine) -> int | None:
    """Ranks of one replica, over all its nodes; None where they cannot be known."""
    given = (*_WORLD[:2], *(flag for flag in _WORLD[2:] if flag in engine.arguments))
    return _product(*(engine.number(flag) for flag in given))


def local_replicas(engine: Engine) -> int | None:
    """Data parallel ranks in this pod, also of a part of them; None where they cannot be known."""
    arguments = engine.arguments
    if "data-parallel-rank" in arguments or arguments.truth("data-parallel-external-lb"):
        return 1
    if "data-parallel-size-local" in arguments:
        return engine.number("data-parallel-size-local")
    spread = "data-parallel-start-rank" in arguments or "data-parallel-hybrid-lb" in arguments
    total, count = engine.number("data-parallel-size"), nodes(engine)
    if spread or total is None or not count:
        return None
    return max(total // count, 1)


def nodes(engine: Engine) -> int | None:
    """--nnodes, 1 without it; None where it cannot be known."""
    if "nnodes" in engine.arguments:
        return engine.number("nnodes")
    return None if engine.arguments.open else 1


def needed(engine: Engine) -> int | None:
    """GPUs that the engine's processes in this pod take; None where that cannot be known.

    The stages of vLLM-Omni (--omni) choose their cards in a file of their own.
    """
    if "omni" in engine.arguments:
        return None
    ranks, replicas, count = world(engine), local_replicas(engine), nodes(engine)
    total = engine.number("data-parallel-size")
    if joined(engine) or ranks is None or replicas is None or not total or not count:
        return None
    spanned = max(count * replicas // total, 1)  # nodes of one data parallel rank
    return math.ceil(ranks / spanned) * replicas


def _product(*numbers: int | None) -> int | None:
    result = 1
    for number in numbers:
        if number is None:
            return None
        result *= number
    return result
