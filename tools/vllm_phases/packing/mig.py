"""How HAMi cuts a MIG instance out of a card (v2.10.0: pkg/device/nvidia/mig_topology.go and device.go)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vllm_phases.packing.cards import MigProfile, Span


def cut(profiles: Iterable[MigProfile], taken: Sequence[Span], memory: int) -> tuple[MigProfile, Span] | None:
    """The smallest profile with so many MiB that has a free place, and that place; None without one."""
    for profile in sorted(profiles, key=lambda one: (one.memory, one.slices)):
        if profile.memory >= memory and (span := _free(profile, taken)):
            return profile, span
    return None


def _free(profile: MigProfile, taken: Sequence[Span]) -> Span | None:
    """The first free place: small and half profiles from the end of the card, others from its beginning."""
    from_end = profile.name.startswith(("1g.", "3g."))
    ordered = sorted(profile.spans, key=lambda span: -span.start if from_end else span.start)
    return next((span for span in ordered if not any(_overlap(span, other) for other in taken)), None)


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.start + other.size and other.start < one.start + one.size
