"""A document as the user gave it, and values in it that know where they stand."""

from __future__ import annotations

import functools
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from vllm_phases.finding import Location
from vllm_phases.sources import positions, yaml_reader
from vllm_phases.sources.yaml_reader import KeyPath, Places, Spot, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["kubernetes", "compose", "command"]


@dataclass(frozen=True, eq=False)
class Document:
    """One YAML document, or one file of commands.

    tree    plain data; of a "command" document the text
    line    of the file, counted from 1, where the text starts; column: how far the file indents the text
    offset  where the text starts in the file, in characters
    repeated  paths of keys that are given twice, of which the last one counts
    inside  the value that holds this document, such as an entry of a ConfigMap
    """

    file: str
    kind: Kind
    tree: Any
    text: str = field(default="", repr=False)
    line: int = 1
    column: int = 0
    offset: int = 0
    repeated: tuple[KeyPath, ...] = ()
    inside: Node | None = field(default=None, repr=False)

    @functools.cached_property
    def places(self) -> Places:
        """The place of every key and list item, read again only when somebody asks."""
        places: Places = {}
        if self.kind != "command" and self.text:
            try:
                yaml_reader.documents(self.text, places)
            except Unreadable:  # JSON that is no YAML, such as one with tabs
                places.clear()
        return places

    @property
    def root(self) -> Node:
        """The whole document."""
        return Node(self, (), self.tree)

    def location(self, path: KeyPath) -> Location:
        """The place of a path, or of its nearest parent that the document writes."""
        spot = self.spot(path)
        return Location(self.file, self.line + spot.line, 1 + spot.column + self.column)

    def location_in(self, path: KeyPath, line: int, column: int) -> Location:
        """The place of a character in the text of a scalar; line and column count from 0."""
        spot = self.spot(path) if path in self.places or not path else None
        if self.kind == "command":
            return Location(self.file, self.line + line, 1 + column)
        if spot is None or not spot.literal:
            return self.location(path)
        first = spot.text_line + 1 + line
        lines = self.text.splitlines()
        indent = self._block_indent(lines, spot.text_line + 1)
        return Location(self.file, self.line + first, 1 + indent + column + self.column)

    def location_of(self, path: KeyPath, offset: int) -> Location | None:
        """The place of the character at an offset of a scalar's text; None where it cannot be known."""
        value = scalar_text(_below(self.tree, path))
        if self.kind == "command":
            return self.location_at(offset)
        spot = self.places.get(path)
        if spot is None or offset >= len(value):
            return None
        starts = positions.line_starts(self.text)
        start = starts[spot.text_line] + spot.text_column
        if self.text[start : start + 1] in ("|", ">"):
            first = spot.text_line + 1
            indent = self._block_indent(self.text.split("\n"), first)
            found = positions.of_block(self.text, starts[first] + indent, indent, value)
        else:
            found = positions.of_scalar(self.text, start, value)
        return self.location_at(found[offset]) if found else None

    def location_at(self, offset: int) -> Location:
        """The place of a character of this document's own text."""
        starts = positions.line_starts(self.text)
        line = bisect_right(starts, offset) - 1
        return Location(self.file, self.line + line, 1 + offset - starts[line] + self.column)

    def spot(self, path: KeyPath) -> Spot:
        """As location, counted from 0 in this document's own text."""
        return yaml_reader.nearest(self.places, path) or Spot(0, 0, 0, 0)

    @staticmethod
    def _block_indent(lines: list[str], first: int) -> int:
        """The indentation of a block scalar: that of its first line with text."""
        for line in lines[first:]:
            if line.strip():
                return len(line) - len(line.lstrip(" "))
        return 0


@dataclass(eq=False, slots=True)  # not frozen: millions are made, and that would double their cost
class Node:
    """A value of a document with the way to it. Nothing raises: what is not there is a node of None."""

    document: Document = field(repr=False)
    path: KeyPath
    value: Any

    def __bool__(self) -> bool:
        return self.value is not None

    @property
    def location(self) -> Location:
        """Where the value stands, or else its nearest parent."""
        return self.document.location(self.path)

    def at(self, *steps: str | int) -> Node:
        """The node below, by keys and list indices."""
        return Node(self.document, (*self.path, *steps), _below(self.value, steps))

    def entries(self, *steps: str | int) -> Iterator[tuple[str, Node]]:
        """Key and node of each entry of the mapping below; none where there is no mapping."""
        below = self.at(*steps)
        if isinstance(below.value, dict):
            for key, value in below.value.items():
                yield str(key), Node(self.document, (*below.path, key), value)

    def items(self, *steps: str | int) -> Iterator[Node]:
        """Each item of the list below; none where there is no list."""
        below = self.at(*steps)
        if isinstance(below.value, list):
            for index, value in enumerate(below.value):
                yield Node(self.document, (*below.path, index), value)

    def text(self, *steps: str | int) -> str:
        """The scalar below as text, "" where there is none; true is "true", as in JSON."""
        return scalar_text(_below(self.value, steps))

    def number(self, *steps: str | int) -> int | None:
        """The whole number below, also where it stands in quotes; None where there is none."""
        try:
            return int(self.text(*steps))
        except ValueError:
            return None

    def mapping(self, *steps: str | int) -> dict[str, str]:
        """The mapping below with its scalars as text, such as labels."""
        below = _below(self.value, steps)
        entries = below.items() if isinstance(below, dict) else ()
        return {str(key): scalar_text(value) for key, value in entries}


def embedded(node: Node) -> Node | None:
    """The YAML document that a text of another document holds; None where it holds none."""
    whole = node.document.kind == "command" or node.document.spot(node.path).literal
    return yaml_in(str(node.value), node, node.document.location_in(node.path, 0, 0), whole)


def yaml_in(text: str, inside: Node, place: Location, whole: bool) -> Node | None:
    """The YAML document of a text that starts at a place; None where it is none.

    whole  whether the lines of the text stand in the file as they are, so that its values know their places
    """
    try:
        trees, repeated = yaml_reader.documents(text)
    except Unreadable:
        return None
    if not trees:
        return None
    shown = text if whole else ""
    column = place.column - 1
    again = tuple(repeated)
    return Document(
        place.file, "kubernetes", trees[0], shown, place.line, column, repeated=again, inside=inside
    ).root


def _below(value: Any, steps: tuple[str | int, ...]) -> Any:
    """What stands below a value, without the node that would know its place."""
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def scalar_text(value: Any) -> str:
    """A scalar as text; "" for null, a mapping or a list."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""
