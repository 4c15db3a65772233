"""Pods that run already, and what they take of their nodes."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from vllm_phases.finding import UsageError
from vllm_phases.packing import hami, pods
from vllm_phases.packing.cards import Span, Use
from vllm_phases.packing.cluster import Placed
from vllm_phases.packing.pods import Arrival, Workload
from vllm_phases.packing.wish import annotation_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vllm_phases.packing.cards import GpuNode, Uses
    from vllm_phases.packing.hami import Grant
    from vllm_phases.sources.document import Node

_DONE = ("Succeeded", "Failed")
_WORKLOAD = Workload("Pods", "running already", "", None, {}, {})


def read(found: Iterable[Node], nodes: Iterable[GpuNode]) -> tuple[Placed, ...]:
    """The Pod objects that have something of a GPU on one of the nodes."""
    by_name = {node.name: node for node in nodes}
    return tuple(placed for node in found if (placed := _placed(node, by_name)))


def _placed(pod: Node, nodes: dict[str, GpuNode]) -> Placed | None:
    if pod.text("status", "phase") in _DONE:
        return None
    names = annotation_names()
    annotations = pod.at("metadata", "annotations")
    by_hami = annotations.text(names["allocated"])
    node = nodes.get(annotations.text(names["node"]) if by_hami else pod.text("spec", "nodeName"))
    if node is None:
        return None
    arrival = Arrival(pod.text("metadata", "name"), _WORKLOAD)
    if by_hami:
        containers = tuple(_containers(annotations.at(names["allocated"]), node))
        return Placed(arrival, node.name, containers, _taken(pod, containers, node))
    counts = {name: count for name, count in pods.counts(pod).items() if node.countable.get(name)}
    return Placed(arrival, node.name, counts=counts) if counts else None


def _containers(annotation: Node, node: GpuNode) -> Iterator[tuple[Grant, ...]]:
    """The cards of each container: "ID,NVIDIA,MiB,cores:" for a card, ";" after a container."""
    place = {card.id: index for index, card in enumerate(node.cards)}
    for container in annotation.text().split(";")[:-1]:
        cards = [card.split(",") for card in container.split(":") if card]
        try:
            known = [card for card in cards if card[0] in place]
            yield tuple(hami.Grant(place[card[0]], int(card[2]), int(card[3])) for card in known)
        except (ValueError, IndexError):
            raise UsageError(
                f"{annotation.location}: {annotation.path[-1]}: not what HAMi writes: {annotation.text()}"
            ) from None


def _taken(pod: Node, containers: tuple[tuple[Grant, ...], ...], node: GpuNode) -> Uses:
    """What HAMi counts: init containers by their largest, and no longer once all of them are done."""
    split = len(list(pod.items("spec", "initContainers")))
    statuses = list(pod.items("status", "initContainerStatuses"))
    done = statuses and all(one.number("state", "terminated", "exitCode") == 0 for one in statuses)
    first = [] if done else list(containers[:split])
    taken = list(hami.taken_by(len(node.cards), first, list(containers[split:])))
    for card, spans in _instances(pod, node).items():
        taken[card] = Use(*taken[card][:3], tuple(spans))
    return tuple(taken)


def _instances(pod: Node, node: GpuNode) -> dict[int, list[Span]]:
    """The places of MIG instances, by card."""
    annotation = pod.at("metadata", "annotations", annotation_names()["instances"])
    place = {card.id: index for index, card in enumerate(node.cards)}
    found: dict[int, list[Span]] = defaultdict(list)
    try:
        for entry in json.loads(annotation.text() or "[]"):
            span = Span(int(entry["placement"].get("start", 0)), int(entry["placement"]["size"]))
            if entry["gpuUUID"] in place:
                found[place[entry["gpuUUID"]]].append(span)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"{annotation.location}: {annotation.path[-1]}: not what HAMi writes") from None
    return found
