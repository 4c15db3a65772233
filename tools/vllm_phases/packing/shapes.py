"""Nodes as shapes: a number of usual ones, or a list of a user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm_phases import catalogue
from vllm_phases.finding import UsageError
from vllm_phases.packing.cards import Card, GpuNode
from vllm_phases.packing.wish import quantity, resource_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.sources.document import Node

MOST = 100_000
_SHAPE_KEYS = frozenset(
    ("name", "count", "gpu", "cards", "memory", "slots", "numa", "type", "scheduler", "labels",
     "resources", "memoryScaling", "coreScaling")
)  # fmt: skip


def usual(count: int, gpu: str | None, hami: bool) -> tuple[GpuNode, ...]:
    """So many nodes of the usual shape (catalogue/data/node_shapes.yaml), of the default card without one."""
    if not 1 <= count <= MOST:
        raise UsageError(f"--nodes {count}: give a number from 1 to {MOST}, or a file with nodes")
    name = gpu or default_gpu()
    entry = _shape_entry(name, "--gpu")
    numa = _spread(entry["cards"], entry["numa"])
    cards = _cards(entry["type"], _defaults()["slots"], _memory(name), 100, numa)
    whole = {resource_names()["cards"]: len(cards)}
    width = len(str(count - 1))
    names = (f"node-{number:0{width}}" for number in range(count))
    return tuple(GpuNode(one, cards) if hami else GpuNode(one, countable=whole) for one in names)


def default_gpu() -> str:
    """The card of nodes of which nothing is said."""
    return next(name for name, entry in catalogue.facts("node_shapes").items() if entry.get("default"))


def listed(root: Node, hami: bool) -> Iterator[GpuNode]:
    """The nodes of the shapes under the key `nodes`; UsageError for what is none."""
    shapes = list(root.items("nodes"))
    if not shapes:
        raise UsageError(
            f"{root.location}: nodes: must be a list of shapes, such as [{{count: 4, gpu: h200}}]"
        )
    for index, shape in enumerate(shapes):
        if not isinstance(shape.value, dict):
            raise UsageError(f"{shape.location}: a shape is a mapping, such as {{count: 4, gpu: h100-80}}")
        if unknown := sorted(map(str, set(shape.value) - _SHAPE_KEYS)):
            raise UsageError(
                f"{shape.at(unknown[0]).location}: {unknown[0]}: no key of a shape; known are "
                f"{', '.join(sorted(_SHAPE_KEYS))}"
            )
        yield from _shape(shape, index, hami)


def _shape(shape: Node, index: int, hami: bool) -> Iterator[GpuNode]:
    """The nodes of one shape; as many as `count` says, with numbers behind the name."""
    count = _number(shape, "count", 1, 1, MOST)
    scheduler = shape.text("scheduler") or ("hami" if hami else "default")
    if scheduler not in ("hami", "default"):
        raise UsageError(f"{shape.at('scheduler').location}: scheduler: {scheduler}: write hami or default")
    cards = _shape_cards(shape)
    countable = {str(name): _amount(node, str(name)) for name, node in shape.entries("resources")}
    labels = shape.mapping("labels") if shape.at("labels") else None
    if scheduler == "default":
        countable.setdefault(resource_names()["cards"], len(cards))
        cards = ()
    name = shape.text("name") or f"node-{index}"
    for number in range(count):
        own = name if count == 1 and shape.at("name") else f"{name}-{number:0{len(str(count - 1))}}"
        yield GpuNode(own, cards, countable=countable, labels=labels)


def _shape_cards(shape: Node) -> tuple[Card, ...]:
    name = shape.text("gpu") or default_gpu()
    entry = _shape_entry(name, f"{shape.at('gpu').location}: gpu")
    count = _number(shape, "cards", entry["cards"], 0, 64)
    memory = _number(shape, "memory", _memory(name), 1, 2**31 - 1)
    slots = _number(shape, "slots", _defaults()["slots"], 1, 1000)
    scaled = int(memory * _factor(shape, "memoryScaling"))
    cores = int(100 * _factor(shape, "coreScaling"))
    numa = _numa(shape, count, entry["numa"])
    return _cards(shape.text("type") or entry["type"], slots, scaled, cores, numa)


def _numa(shape: Node, cards: int, usual_count: int) -> list[int]:
    """The NUMA node of each card: a list, or over how many they are spread."""
    given = shape.at("numa")
    if isinstance(given.value, list):
        numbers = [item.number() for item in given.items()]
        if len(numbers) != cards or None in numbers:
            raise UsageError(
                f"{given.location}: numa: give {cards} numbers, one for each card, or their count"
            )
        return [number or 0 for number in numbers]
    return _spread(cards, _number(shape, "numa", usual_count, 1, 64))


def _spread(cards: int, groups: int) -> list[int]:
    return [index * groups // max(cards, 1) for index in range(cards)]


def _number(shape: Node, key: str, usual_value: int, least: int, most: int) -> int:
    node = shape.at(key)
    if not node:
        return usual_value
    number = node.number()
    if number is None or isinstance(node.value, bool) or not least <= number <= most:
        raise UsageError(f"{node.location}: {key}: {node.value}: give a whole number from {least} to {most}")
    return number


def _factor(shape: Node, key: str) -> float:
    node = shape.at(key)
    if not node:
        return 1.0
    try:
        factor = float(node.text())
    except ValueError:
        factor = 0.0
    if not 0 < factor <= 100:
        raise UsageError(f"{node.location}: {key}: {node.value}: give a number above 0, at most 100")
    return factor


def _amount(node: Node, name: str) -> int:
    number = quantity(node.text())
    if number is None:
        raise UsageError(f"{node.location}: {name}: {node.value}: give a whole number")
    return number


def _shape_entry(name: str, where: str) -> dict[str, Any]:
    shapes = catalogue.facts("node_shapes")
    if name not in shapes:
        raise UsageError(f"{where} {name}: no such card; known are {', '.join(sorted(shapes))}")
    return shapes[name]


def _memory(name: str) -> int:
    memory: int = catalogue.facts("gpu_cards")[name]["memory"]
    return memory


def _defaults() -> dict[str, Any]:
    return catalogue.facts("hami_scheduling")["defaults"]


def _cards(kind: str, slots: int, memory: int, cores: int, numa: list[int]) -> tuple[Card, ...]:
    return tuple(
        Card(f"GPU-{index}", index, slots, memory, cores, kind, group) for index, group in enumerate(numa)
    )
