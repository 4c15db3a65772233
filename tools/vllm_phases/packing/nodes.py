"""Nodes from a file: shapes under the key `nodes`, or the Node objects of a cluster."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from vllm_phases import catalogue
from vllm_phases.finding import UsageError
from vllm_phases.packing import shapes
from vllm_phases.packing.cards import Card, GpuNode, MigProfile, Span
from vllm_phases.packing.wish import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vllm_phases.packing.cluster import Placed
    from vllm_phases.sources.document import Document, Node


def read(path: str, stdin: Any = None, hami: bool = True) -> tuple[tuple[GpuNode, ...], tuple[Placed, ...]]:
    """The nodes in a file, and the pods on them: shapes under the key `nodes`, or Node and Pod objects.

    UsageError for what is neither.
    """
    from vllm_phases import sources

    contents: dict[str, bytes] = {}
    given = sources.read((path,), stdin, contents=contents)
    if len(contents) != 1:
        raise UsageError(f"--nodes {path}: a folder; name one file")
    name, content = next(iter(contents.items()))
    if (root := _shape_list(name, content)) is not None:
        return _distinct(tuple(shapes.listed(root, hami)), name), ()
    if broken := next((found for found in given.findings if found.severity.value == "error"), None):
        raise UsageError(f"{broken.location}: {broken.message}")
    found = tuple(from_object(node) for node in _objects(given.documents, "Node"))
    if not found:
        raise UsageError(
            f"{name}: no nodes here; give Node objects (kubectl get nodes -o yaml) or shapes under "
            "`nodes:`, such as {nodes: [{count: 4, gpu: h100-80, cards: 8}]}"
        )
    from vllm_phases.packing import running

    return _distinct(found, name), running.read(_objects(given.documents, "Pod"), found)


def _shape_list(name: str, content: bytes) -> Node | None:
    """The document of a file of shapes; None where it is another file."""
    from vllm_phases.sources import yaml_reader
    from vllm_phases.sources.document import Document

    try:
        text = content.decode("utf-8-sig")
        trees, _ = yaml_reader.documents(text)
    except (UnicodeDecodeError, yaml_reader.Unreadable):
        return None
    if len(trees) == 1 and isinstance(trees[0], dict) and "nodes" in trees[0]:
        return Document(name, "kubernetes", trees[0], text).root
    return None


def _objects(documents: Iterable[Document], kind: str) -> Iterator[Node]:
    from vllm_phases.model.objects import objects

    return (found.node for found in objects(documents) if found.kind == kind)


def _distinct(nodes: tuple[GpuNode, ...], file: str) -> tuple[GpuNode, ...]:
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            raise UsageError(f"{file}: two nodes are called {node.name}; give each a name of its own")
        seen.add(node.name)
    if len(nodes) > shapes.MOST:
        raise UsageError(f"{file}: {len(nodes)} nodes; {shapes.MOST} are the most")
    return nodes


def from_object(node: Node) -> GpuNode:
    """A Node object: what HAMi registered in its annotations, and what the default scheduler counts."""
    names = catalogue.facts("hami_scheduling")["nodeAnnotations"]["names"]
    annotations = node.at("metadata", "annotations")
    cards = _registered(annotations.at(names["cards"]), names["cards"])
    cordoned = (part.strip() for part in annotations.text(names["cordoned"]).split(","))
    patterns = [entry["pattern"] for entry in catalogue.facts("gpu_resources").values()]
    countable = {
        resource: quantity(amount.text()) or 0
        for resource, amount in node.entries("status", "allocatable")
        if any(re.fullmatch(pattern, resource) for pattern in patterns)
    }
    return GpuNode(
        node.text("metadata", "name"),
        cards,
        _links(annotations.at(names["links"]), names["links"]),
        frozenset(filter(None, cordoned)),
        {} if cards else countable,
        node.mapping("metadata", "labels"),
        node.at("spec", "unschedulable").value is not True,
    )


def _registered(annotation: Node, name: str) -> tuple[Card, ...]:
    """The cards in HAMi's annotation; UsageError where it is not what HAMi 2.8 and newer writes."""
    entries = _json(annotation, name)
    try:
        return tuple(_card(entry) for entry in entries)
    except (TypeError, ValueError, AttributeError, KeyError):
        raise UsageError(
            f"{annotation.location}: {name}: not the list of cards that HAMi writes since 2.8"
        ) from None


def _card(entry: Mapping[str, Any]) -> Card:
    """A card; what is absent is nothing, as Go reads it, so that a card without health is not healthy."""
    profiles = tuple(_profile(profile) for profile in entry.get("migProfiles") or ())
    index, slots, memory, cores = (int(entry.get(key, 0)) for key in ("index", "count", "devmem", "devcore"))
    kind, mode = str(entry.get("type", "")), str(entry.get("mode", ""))
    numa, healthy = int(entry.get("numa", 0)), entry.get("health") is True
    return Card(str(entry.get("id", "")), index, slots, memory, cores, kind, numa, mode, healthy, profiles)


def _profile(entry: Mapping[str, Any]) -> MigProfile:
    spans = tuple(Span(int(place.get("start", 0)), int(place["size"])) for place in entry["placements"])
    memory, cores, slices = (int(entry.get(key, 0)) for key in ("memoryMB", "core", "sliceCount"))
    return MigProfile(str(entry["name"]), memory, cores, slices, spans)


def _links(annotation: Node, name: str) -> dict[str, dict[str, int]]:
    try:
        return {
            str(entry["uuid"]): {str(key): int(value) for key, value in (entry.get("score") or {}).items()}
            for entry in _json(annotation, name)
        }
    except (TypeError, ValueError, AttributeError, KeyError):
        raise UsageError(f"{annotation.location}: {name}: not the scores that HAMi writes") from None


def _json(annotation: Node, name: str) -> list[Any]:
    if not annotation.text():
        return []
    try:
        value = json.loads(annotation.text())
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list):
        raise UsageError(
            f"{annotation.location}: {name}: not JSON; HAMi writes a JSON list since 2.8, and older ones are "
            "not read"
        )
    return value
