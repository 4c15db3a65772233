"""HAMi's scheduler on one node: which cards a pod gets there, or why none.

It follows HAMi v2.10.0, pkg/scheduler/score.go, pkg/scheduler/policy and pkg/device/nvidia/device.go, and is
held against decisions of that scheduler in tests/pack. Two things are left out: resource quotas, and the
order that Go's sort gives to equal cards of a node with more than twelve of them.
"""

from __future__ import annotations

import itertools
import struct
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from vllm_phases.packing import mig
from vllm_phases.packing.cards import Use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from vllm_phases.packing.cards import Card, GpuNode, Span, Uses
    from vllm_phases.packing.wish import Ask, Wish

_WEIGHT = 10.0
_EXCLUSIVE = 100
_SORT_KEYS = ("binpack", "spread", "numa")
_VENDOR = "NVIDIA"

_F32 = struct.Struct("f")


class Grant(NamedTuple):
    """A card that a container gets: its place in the node, MiB and percent of cores, and its MIG instance."""

    card: int
    memory: int
    cores: int
    profile: str = ""
    span: Span | None = None


@dataclass(frozen=True)
class Fit:
    """A pod on a node: the grants of each container, init containers first.

    added  what the pod takes of each card of the node
    score  of the node before the pod came: how full it was
    """

    containers: tuple[tuple[Grant, ...], ...]
    added: Uses
    score: float


def place(node: GpuNode, uses: Uses, wish: Wish) -> Fit | str:
    """Place a pod on a node, or say why it cannot be, in the scheduler's own words."""
    first: list[tuple[Grant, ...]] = []
    for ask in wish.first:
        got = _container(node, list(range(len(node.cards))), list(uses), ask, wish)
        if isinstance(got, str):
            return got
        first.append(got)
    order, taken = list(range(len(node.cards))), list(uses)
    together: list[tuple[Grant, ...]] = []
    for ask in wish.together:
        got = _container(node, order, taken, ask, wish)
        if isinstance(got, str):
            return got
        together.append(got)
    told = [got for got in (*first, *together) if got or writes_empty(node)]
    split = len(wish.first)
    return Fit((*first, *together), taken_by(len(uses), told[:split], told[split:]), _fullness(node, uses))


def writes_empty(node: GpuNode) -> bool:
    """Whether HAMi writes down a container without a GPU; only where a card's type is the bare vendor's name.

    Elsewhere it is forgotten (v2.10.0 keeps it under the card's type, not under the vendor), and the next
    containers move up: the first one with a GPU then counts as the init container without one.
    """
    return any(card.type == _VENDOR for card in node.cards)


def taken_by(cards: int, first: list[tuple[Grant, ...]], together: list[tuple[Grant, ...]]) -> Uses:
    """What a pod takes of each card: the sum of its containers, or the largest init container."""
    added = [Use()] * cards
    for grant in itertools.chain.from_iterable(together):
        added[grant.card] = added[grant.card].plus(1, grant.memory, grant.cores, _spans(grant))
    for grant in itertools.chain.from_iterable(first):
        added[grant.card] = added[grant.card].most(Use(1, grant.memory, grant.cores, _spans(grant)))
    return tuple(added)


def _spans(grant: Grant) -> tuple[Span, ...]:
    return (grant.span,) if grant.span else ()


def _container(
    node: GpuNode, order: list[int], uses: list[Use], ask: Ask | None, wish: Wish
) -> tuple[Grant, ...] | str:
    """The cards of one container. Changes the order and the uses: the next container starts from both."""
    if ask is None:
        return ()
    order.sort(key=_sort_key(node.cards, uses, ask, wish))
    usable = [position for position in order if _VENDOR in node.cards[position].type.upper()]
    if ask.cards > len(usable) and not _wants_mig((node.cards[one] for one in usable), wish):
        return "NodeInsufficientDevice"
    search = _Search(node, uses, ask, wish)
    if (found := search.run(usable)) is None:
        return search.refusal(len(usable))
    return tuple(_take(node.cards[grant.card], uses, grant) for grant in found)


def _wants_mig(cards: Iterable[Card], wish: Wish) -> bool:
    """Whether a card may be cut, so that there may be more instances than cards."""
    return (wish.mode is None or "mig" in wish.mode) and any(card.mode == "mig" for card in cards)


def _take(card: Card, uses: list[Use], grant: Grant) -> Grant:
    """Take what is granted; of a card in MIG mode that is a whole instance."""
    if card.mode == "mig":
        cut = mig.cut(card.profiles, uses[grant.card].spans, grant.memory)
        assert cut is not None, "the search has found a place for it"
        profile, span = cut
        grant = Grant(grant.card, profile.memory, profile.cores, profile.name, span)
    uses[grant.card] = uses[grant.card].plus(1, grant.memory, grant.cores, _spans(grant))
    return grant


class _Search:
    """The search for the cards of one container, from the end of the order."""

    def __init__(self, node: GpuNode, uses: Sequence[Use], ask: Ask, wish: Wish) -> None:
        self.node, self.uses, self.ask, self.wish = node, uses, ask, wish
        self.reasons: Counter[str] = Counter()
        self.taken: list[Grant] = []
        self.mutex = wish.has_policy("mutex")
        self.topology = wish.has_policy("topology-aware")

    def run(self, order: Sequence[int]) -> list[Grant] | None:
        """The cards, or None; reasons then says why each card was passed over."""
        group = -1  # NUMA node of what is taken, of a pod that wants all its cards on one
        position = len(order) - 1
        while position >= 0:
            card = self.node.cards[order[position]]
            if reason := self._barred(card):
                self.reasons[reason] += 1
                position -= 1
                continue
            if self.wish.numa_bind and group != card.numa:
                if self.taken and not self.topology:
                    self.reasons["NumaNotFit"] += len(self.taken)
                group, self.taken = card.numa, []
            if reason := self._unfit(order[position]):
                self.reasons[reason] += 1
                position -= 1
                continue
            self.taken.append(Grant(order[position], self.ask.memory_of(card.memory), self.ask.cores))
            if len(self.taken) == self.ask.cards and not self.topology:
                return self.taken
            position -= card.mode != "mig"  # of such a card several instances may be taken
        return self._best()

    def refusal(self, cards: int) -> str:
        """The reasons as HAMi writes them: how many of the cards each one held for."""
        if self.taken:
            self.reasons["AllocatedCardsInsufficientRequest"] = len(self.taken)
        return ", ".join(sorted(f"{count}/{cards} {reason}" for reason, count in self.reasons.items()))

    def _best(self) -> list[Grant] | None:
        """Of all cards that fit, the best connected ones; for a single card, the worst connected one."""
        if not self.topology or len(self.taken) < self.ask.cards:
            return None
        if len(self.taken) == self.ask.cards:
            return self.taken
        if self.ask.cards == 1:
            return [min(self.taken, key=lambda one: sum(self._link(one, other) for other in self.taken))]
        groups = itertools.combinations(self.taken, self.ask.cards)
        return list(max(groups, key=self._links))

    def _links(self, group: Iterable[Grant]) -> int:
        return sum(self._link(one, other) for one, other in itertools.combinations(group, 2))

    def _link(self, one: Grant, other: Grant) -> int:
        ids = self.node.cards[one.card].id, self.node.cards[other.card].id
        return 0 if ids[0] == ids[1] else self.node.links.get(ids[0], {}).get(ids[1], 0)

    def _barred(self, card: Card) -> str:
        """Why a card is never looked at, "" where it is."""
        wish = self.wish
        if not card.healthy:
            return "CardNotHealth"
        if card.id in self.node.cordoned:
            return "CardCordoned"
        upper = card.type.upper()
        wrong_type = not _listed(wish.types, lambda part: part.upper() in upper, empty=True)
        if wrong_type or _listed(wish.not_types, lambda part: part.upper() in upper, empty=False):
            return "CardTypeMismatch"
        return "CardTypeMismatch" if wish.mode is not None and card.mode not in wish.mode else ""

    def _unfit(self, position: int) -> str:
        """Why a card has no room for the container, "" where it has."""
        card, use, wish, ask = self.node.cards[position], self.uses[position], self.wish, self.ask
        memory = ask.memory_of(card.memory)
        wrong = not _listed(wish.ids, card.id.__eq__, empty=True)
        tests = (
            ("CardUuidMismatch", wrong or _listed(wish.not_ids, card.id.__eq__, empty=False)),
            ("CardTimeSlicingExhausted", card.slots <= use.slots),
            ("ExclusiveDeviceAllocateConflict", self.mutex and use.slots > 0),
            ("CardInsufficientMemory", card.memory - use.memory < memory),
            ("CardInsufficientCore", card.cores - use.cores < ask.cores),
            ("ExclusiveDeviceAllocateConflict", card.cores == ask.cores == _EXCLUSIVE and use.slots > 0),
            ("CardComputeUnitsExhausted", card.cores != 0 and use.cores == card.cores and ask.cores == 0),
            ("CardMigTopologyInfeasible", card.mode == "mig" and not self._cuttable(position, memory)),
        )
        return next((reason for reason, holds in tests if holds), "")

    def _cuttable(self, position: int, memory: int) -> bool:
        """Whether a card in MIG mode has a place beside what this container has taken of it."""
        card, spans = self.node.cards[position], list(self.uses[position].spans)
        for grant in (*(one for one in self.taken if one.card == position), Grant(position, memory, 0)):
            if (cut := mig.cut(card.profiles, spans, grant.memory)) is None:
                return False
            spans.append(cut[1])
        return True


def _listed(text: str, matches: Callable[[str], bool], *, empty: bool) -> bool:
    """Whether an entry of a comma-separated list matches; `empty` is the answer of a list without text."""
    if not text.strip():
        return empty
    return any(matches(part.strip()) for part in text.split(",") if part.strip())


def _sort_key(
    cards: Sequence[Card], uses: Sequence[Use], ask: Ask, wish: Wish
) -> Callable[[int], tuple[float, ...]]:
    """The order of cards; the last ones are tried first."""
    scores = [_score(card, use, ask, wish.weights) for card, use in zip(cards, uses, strict=True)]
    policy, binpack = wish.gpu_policy, wish.gpu_policy == "binpack"
    if "," in policy or policy == "numa":
        chain = _chain(policy, wish.numa_bind)
        return lambda at: (*(_part(key, cards[at], scores[at]) for key in chain), cards[at].index)
    if policy == "mutex":
        return lambda at: (-uses[at].slots, cards[at].numa)
    if wish.numa_bind:  # one NUMA node after the other
        sign = -1 if binpack else 1
        return lambda at: (sign * cards[at].numa, -sign * scores[at])
    return lambda at: (scores[at] if binpack else -scores[at], cards[at].numa)


def _chain(policy: str, numa_bind: bool) -> list[str]:
    """The sort keys of a comma-separated policy, in its order; mutex and topology-aware are no sort keys."""
    named = dict.fromkeys(part.strip() for part in policy.split(","))
    chain = [part for part in named if part in _SORT_KEYS] or ["spread"]
    if numa_bind and chain[0] != "numa":
        return ["numa", *(part for part in chain if part != "numa")]
    return chain


def _part(key: str, card: Card, score: float) -> float:
    if key == "numa":
        return card.numa
    return score if key == "binpack" else -score


def _f32(value: float) -> float:
    """Rounded to 32 bits, as HAMi computes: what is equal there must be equal here."""
    rounded: float = _F32.unpack(_F32.pack(value))[0]
    return rounded


def _score(card: Card, use: Use, ask: Ask, weights: tuple[int, int, int]) -> float:
    """How full a card is. The request itself counts only on a card whose type is the bare vendor's name."""
    if not (card.slots and card.cores and card.memory):
        return 0.0
    if card.type == _VENDOR:
        memory = card.memory * ask.percentage // 100 if ask.percentage else ask.memory
        use = use.plus(1, memory, ask.cores)
    shares = (use.slots / card.slots, use.cores / card.cores, use.memory / card.memory)
    slots, cores, filled = (_f32(weight * _f32(share)) for weight, share in zip(weights, shares, strict=True))
    return _f32(_WEIGHT * _f32(_f32(slots + cores) + filled))


def _fullness(node: GpuNode, uses: Uses) -> float:
    """How full a node is, by slots, cores and memory of all its cards."""
    slots, cores, memory = (
        sum(getattr(card, name) for card in node.cards) for name in ("slots", "cores", "memory")
    )
    if not (slots and cores and memory):
        return 0.0
    shares = (
        _f32(sum(use.slots for use in uses) / slots),
        _f32(sum(use.cores for use in uses) / cores),
        _f32(sum(use.memory for use in uses) / memory),
    )
    return _f32(_WEIGHT * _f32(_f32(shares[0] + shares[1]) + shares[2]))
