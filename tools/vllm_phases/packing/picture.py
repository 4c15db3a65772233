"""What there is to draw of a packing: nodes that look the same once, their cards, and who is on them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vllm_phases.packing.cards import Card, GpuNode
    from vllm_phases.packing.cluster import Packing, Placed
    from vllm_phases.packing.pods import Workload

_WHOLE = 1.0


@dataclass(frozen=True)
class Share:
    """A pod's part of a card: which workload it is of, MiB, and the part of the card as a number up to 1."""

    workload: int
    memory: int
    part: float


@dataclass(frozen=True)
class Tile:
    """A card, or what else is counted, and the pods on it.

    label   its number, or the resource's name and number
    memory  MiB of the card, 0 where the default scheduler counts whole cards
    slots   how many pods may share it
    note    why it takes no more pods although there is room, "" where it does: "exclusive", "cordoned", …
    """

    label: str
    memory: int
    slots: int
    shares: tuple[Share, ...]
    note: str = ""

    @property
    def taken(self) -> int:
        """MiB that are taken."""
        return sum(share.memory for share in self.shares)


@dataclass(frozen=True)
class Panel:
    """Nodes that look the same: their names, what their cards are, and the cards."""

    names: tuple[str, ...]
    title: str
    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class Row:
    """A workload of the legend: pods that came, and how many of them are placed."""

    workload: Workload
    came: int
    placed: int
    size: str


@dataclass(frozen=True)
class Picture:
    """Everything to draw: the workload of a share is a place in rows; pods that came, and those placed."""

    panels: tuple[Panel, ...]
    rows: tuple[Row, ...]
    came: int
    placed: int


def picture(packing: Packing) -> Picture:
    """The picture of a packing; nodes with pods first."""
    arrivals = (*packing.arrivals, *(one.pod for one in packing.running))
    workloads = list(dict.fromkeys(pod.workload.id for pod in arrivals))
    number = {name: place for place, name in enumerate(workloads)}
    guests: dict[str, list[Placed]] = defaultdict(list)
    for one in (*packing.running, *packing.placed):
        guests[one.node].append(one)
    alike: dict[tuple[str, tuple[Tile, ...]], list[str]] = defaultdict(list)
    for node in packing.nodes:
        tiles = tuple(_tiles(node, guests[node.name], number))
        alike[_title(node), tiles].append(node.name)
    panels = [Panel(tuple(names), title, tiles) for (title, tiles), names in alike.items()]
    panels.sort(key=lambda panel: not any(tile.shares for tile in panel.tiles))
    rows = tuple(_rows(packing))
    return Picture(tuple(panels), rows, len(packing.arrivals), len(packing.placed))


def _rows(packing: Packing) -> Iterator[Row]:
    came: dict[str, list[Workload]] = defaultdict(list)
    for pod in packing.arrivals:
        came[pod.workload.id].append(pod.workload)
    placed: dict[str, int] = defaultdict(int)
    for one in packing.placed:
        placed[one.pod.workload.id] += 1
    for name, found in came.items():
        yield Row(found[0], len(found), placed[name], size(found[0]))
    if count := len(packing.running):
        yield Row(packing.running[0].pod.workload, count, count, "as they are")


def size(workload: Workload) -> str:
    """What one pod asks for, in words."""
    if workload.wish is None:
        return ", ".join(f"{name}: {count}" for name, count in workload.counts.items())
    parts = []
    for ask in filter(None, (*workload.wish.first, *workload.wish.together)):
        memory = f"{ask.memory} MiB" if ask.memory else f"{ask.percentage} % of a card"
        cores = f", {ask.cores} % of its cores" if ask.cores else ""
        parts.append(f"{ask.cards} x {memory}{cores}" if ask.shares else f"{ask.cards} x whole card")
    return " + ".join(parts)


def _title(node: GpuNode) -> str:
    if not node.cards:
        return ", ".join(f"{count} x {name}" for name, count in node.countable.items() if count) or "no GPU"
    kinds = dict.fromkeys((card.type, card.memory) for card in node.cards)
    counted = ((sum((card.type, card.memory) == kind for card in node.cards), *kind) for kind in kinds)
    return ", ".join(f"{count} x {name}, {memory} MiB" for count, name, memory in counted)


def _tiles(node: GpuNode, guests: Iterable[Placed], number: dict[str, int]) -> Iterator[Tile]:
    for position, card in enumerate(node.cards):
        shares = [
            Share(number[one.pod.workload.id], use.memory, use.memory / max(card.memory, 1))
            for one in guests
            for use in one.added[position : position + 1]
            if use.slots
        ]
        slots = sum(one.added[position].slots for one in guests if one.added)
        cores = sum(one.added[position].cores for one in guests if one.added)
        yield Tile(str(card.index), card.memory, card.slots, tuple(shares), _note(node, card, slots, cores))
    for name, count in node.countable.items():
        yield from _counted(name, count, guests, number)


def _note(node: GpuNode, card: Card, slots: int, cores: int) -> str:
    if not card.healthy:
        return "unhealthy"
    if card.id in node.cordoned:
        return "cordoned"
    if slots and cores >= card.cores:
        return "exclusive" if slots == 1 else "no cores left"
    return "no slot left" if slots >= card.slots else ""


def _counted(name: str, count: int, guests: Iterable[Placed], number: dict[str, int]) -> Iterator[Tile]:
    """What the default scheduler counts: one tile a unit, given out from the first on."""
    owners = [number[one.pod.workload.id] for one in guests for _ in range(one.counts.get(name, 0))]
    short = name.rpartition("/")[2]
    for index in range(count):
        shares = (Share(owners[index], 0, _WHOLE),) if index < len(owners) else ()
        yield Tile(str(index) if short == "gpu" else f"{short} {index}", 0, 1, shares)
