"""How large a model is, by its name, and how much GPU memory an engine sees."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vllm_phases import catalogue
from vllm_phases.model.card import choices

if TYPE_CHECKING:
    from vllm_phases.model.engine import Engine

_BILLIONS = re.compile(r"(?:(\d+)x)?(\d+(?:\.\d+)?)b(?![a-z0-9])")
_MIG = re.compile(r"nvidia\.com/mig-\d+g\.(\d+)gb(\..+)?")
_SHARED_EXPERTS = 0.8  # Mixtral-8x7B has 46.7 billion parameters
_MIB = 2**20
_GIB = 2**30


def billions(model: str) -> float:
    """Billions of parameters by a model's name, 0 where it does not tell: "Mixtral-8x7B" has 44.8."""
    match = _BILLIONS.search(model.lower())
    if match is None:
        return 0
    return float(match[2]) * (int(match[1]) * _SHARED_EXPERTS if match[1] else 1)


def parameter_bytes(engine: Engine) -> float:
    """Bytes of a parameter by the model's name, or by --quantization at least."""
    name = (engine.model or "").lower()
    entries = catalogue.facts("model_sizes").values()
    given = next(entry["bytes"] for entry in entries if re.search(entry["names"], name))
    smallest = min(entry["bytes"] for entry in entries)
    return float(smallest if "quantization" in engine.arguments else given)


def gpu_memory(engine: Engine) -> int | None:
    """Bytes of one GPU, or of its slice, as the engine sees it, at the most; None where that is not known."""
    slice_memory = engine.gpu.shares.get("gpumem")
    if slice_memory is not None:
        number = slice_memory.number()
        return number * _MIB if number else None
    if match := _MIG.fullmatch(engine.gpu.resource):
        return int(match[1]) * _GIB
    for choice in choices(engine.pod):
        sizes = [card.memory for card in choice.cards]
        if sizes and None not in sizes:
            return max(size for size in sizes if size) * _MIB
    return None
