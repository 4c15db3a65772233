"""Kubernetes objects, and what a finding calls them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vllm_phases.sources.document import Document, Node


@dataclass(frozen=True, eq=False, repr=False)
class Object:
    """A Kubernetes object; group is "" for the core API, namespace "" where the object names none."""

    node: Node
    group: str
    version: str
    kind: str
    name: str
    namespace: str

    @property
    def id(self) -> str:
        """Kind and name, such as "Deployment/demo"."""
        return f"{self.kind}/{self.name}"

    @functools.cached_property
    def labels(self) -> dict[str, str]:
        """metadata.labels."""
        return self.node.mapping("metadata", "labels")

    @functools.cached_property
    def annotations(self) -> dict[str, str]:
        """metadata.annotations."""
        return self.node.mapping("metadata", "annotations")


def objects(documents: Iterable[Document]) -> Iterator[Object]:
    """Every object of the Kubernetes documents, those inside a List one by one."""
    for document in documents:
        if document.kind == "kubernetes":
            for node in _unlisted(document.root):
                yield _object(node)


def object_id(node: Node) -> str:
    """What a finding calls the thing that a value stands in: "Deployment/demo", "services/engine" or ""."""
    document = node.document
    while document.inside is not None:
        node, document = document.inside, document.inside.document
    if document.kind == "compose":
        return "/".join(map(str, node.path[:2])) if node.path[:1] == ("services",) else ""
    if document.kind == "command":
        return ""
    root = document.root
    for depth in range(0, len(node.path), 2):
        if node.path[depth] != "items" or not root.text("kind").endswith("List"):
            break
        root = root.at(*node.path[depth : depth + 2])
    return _object(root).id


def same_namespace(one: str, other: str) -> bool:
    """Whether two objects may share a namespace: one that names none goes wherever it is applied."""
    return not one or not other or one == other


def _unlisted(node: Node) -> Iterator[Node]:
    if node.text("kind").endswith("List") and isinstance(node.at("items").value, list):
        for item in node.items("items"):
            yield from _unlisted(item)
    elif isinstance(node.value, dict):
        yield node


def _object(node: Node) -> Object:
    group, _, version = node.text("apiVersion").rpartition("/")
    name, namespace = node.text("metadata", "name"), node.text("metadata", "namespace")
    return Object(node, group, version, node.text("kind"), name, namespace)
