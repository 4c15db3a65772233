"""Cards, what is taken of them, and the nodes that hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Span(NamedTuple):
    """Memory slices of a card that a MIG instance takes: the first one, and how many."""

    start: int
    size: int


@dataclass(frozen=True)
class MigProfile:
    """A MIG profile that a card offers; memory in MiB, cores in percent of the card."""

    name: str
    memory: int
    cores: int
    slices: int
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Card:
    """A card as HAMi's device plugin registers it on its node.

    slots   how many pods may share it (deviceSplitCount)
    memory  MiB, with deviceMemoryScaling in it; cores: percent, 100 without deviceCoreScaling
    mode    "hami-core" or "mig"
    """

    id: str
    index: int
    slots: int
    memory: int
    cores: int
    type: str
    numa: int = 0
    mode: str = "hami-core"
    healthy: bool = True
    profiles: tuple[MigProfile, ...] = ()


class Use(NamedTuple):
    """What is taken of a card: slots, MiB, percent of its cores, and the places of MIG instances."""

    slots: int = 0
    memory: int = 0
    cores: int = 0
    spans: tuple[Span, ...] = ()

    def plus(self, slots: int, memory: int, cores: int, spans: tuple[Span, ...] = ()) -> Use:
        """With more taken."""
        return Use(self.slots + slots, self.memory + memory, self.cores + cores, self.spans + spans)

    def most(self, other: Use) -> Use:
        """The larger of each count; the MIG instances of both."""
        return Use(
            max(self.slots, other.slots),
            max(self.memory, other.memory),
            max(self.cores, other.cores),
            (*self.spans, *(span for span in other.spans if span not in self.spans)),
        )


Uses = tuple[Use, ...]
"""What is taken of each card of a node, in the order of its cards."""


@dataclass(frozen=True)
class GpuNode:
    """A node.

    cards        as HAMi registered them, none where HAMi does not know the node
    links        how well a card is connected to others, by their ids (hami.io/node-nvidia-score)
    cordoned     ids of cards that take no more pods (hami.io/device-cordon)
    countable    extended resources of GPUs that the default scheduler counts, such as {"nvidia.com/gpu": 8}
    labels       of the node; None where they are not known, and then every nodeSelector matches
    schedulable  False where `kubectl cordon` closed the node
    """

    name: str
    cards: tuple[Card, ...] = ()
    links: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    cordoned: frozenset[str] = frozenset()
    countable: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] | None = None
    schedulable: bool = True

    def selected(self, selector: Mapping[str, str]) -> bool:
        """Whether a nodeSelector matches."""
        return self.labels is None or selector.items() <= self.labels.items()

    @property
    def unused(self) -> Uses:
        """Nothing taken of any card."""
        return (Use(),) * len(self.cards)
