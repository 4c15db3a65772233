"""Changes of values, as a repair asks for them: to which characters they come down, and what they leave.

splices  the characters of the text that give way to others; Unclear where their place is not certain
applied  the plain data after the change, with which the edited text must agree
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from vllm_phases.sources import spelling
from vllm_phases.sources.layout import Unclear

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from vllm_phases.sources.document import Node
    from vllm_phases.sources.layout import Entry, Layout
    from vllm_phases.sources.yaml_reader import KeyPath

_BEFORE_ITEM = re.compile(r"[ ]*-[ ]+")
_BETWEEN_ITEMS = re.compile(r"\s*,\s*")
_COMMENT = re.compile(r"(?:^|\s)#")
_BLANKS_BEFORE = re.compile(r"(?:[ \t]|\\\r?\n)+\Z")
_WORD_END = re.compile(r"[\s;&|)]|\Z")


class Splice(NamedTuple):
    """Characters of a text that give way to others."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Set:
    """Another value in place of one: a scalar, or a mapping or list that stands on one line afterwards."""

    node: Node
    value: Any

    def splices(self, layout: Layout) -> list[Splice]:
        """A scalar anew, in the quotes that it has; anything else in brackets."""
        if isinstance(self.value, (dict, list)):
            return [_in_brackets(layout, self.node.path, self.value)]
        entry = _scalar(layout, self.node.path)
        raw = layout.text[entry.value : entry.end]
        return [Splice(entry.value, entry.end, spelling.like(raw, self.node.value, self.value))]

    def applied(self, tree: Any) -> Any:
        """The tree with the value."""
        return _with(tree, self.node.path, lambda _: self.value)


@dataclass(frozen=True)
class Quote:
    """Quotes around a scalar, so that it is the text that is written there."""

    node: Node

    def splices(self, layout: Layout) -> list[Splice]:
        """A quotation mark on each side."""
        entry = _scalar(layout, self.node.path)
        if entry.style:
            raise Unclear
        return [Splice(entry.value, entry.value, '"'), Splice(entry.end, entry.end, '"')]

    def applied(self, tree: Any) -> Any:
        """The tree with the text; how it is written is not known to the data, so any will do."""
        return _with(tree, self.node.path, lambda _: _AnyText())


class _AnyText:
    """Equal to every text."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str)

    __hash__ = None  # type: ignore[assignment]  # it stands for many


@dataclass(frozen=True)
class RenameKey:
    """Another name for the key of a value."""

    node: Node
    key: str

    def splices(self, layout: Layout) -> list[Splice]:
        """The key anew, in the quotes that it has."""
        entry = layout.entry(self.node.path)
        if (*self.node.path[:-1], self.key) in layout.entries:
            raise Unclear
        old = layout.text[entry.start : entry.key_end]
        return [Splice(entry.start, entry.key_end, spelling.like(old, self.node.path[-1], self.key))]

    def applied(self, tree: Any) -> Any:
        """The tree with the key, in its old place."""
        *parent, old = self.node.path
        return _with(
            tree,
            tuple(parent),
            lambda entries: {self.key if key == old else key: value for key, value in entries.items()},
        )


@dataclass(frozen=True)
class Remove:
    """An entry taken out; where it is the only one of a list, the list goes."""

    node: Node

    def splices(self, layout: Layout) -> list[Splice]:
        """Its lines, or in brackets the entry with one comma."""
        path = self.node.path
        while path and len(layout.siblings(path)) == 1 and isinstance(path[-1], int):
            path = path[:-1]
        if not path or len(layout.siblings(path)) == 1:
            raise Unclear
        return [_out(layout, path, layout.entry(path))]

    def applied(self, tree: Any) -> Any:
        """The tree without it."""
        return _removed(tree, self.node.path)


@dataclass(frozen=True)
class RemoveFirst:
    """The first of two entries with one key taken out; the last one counts, so no value changes."""

    node: Node

    def splices(self, layout: Layout) -> list[Splice]:
        """The lines of the first entry."""
        first = layout.repeated.get(self.node.path)
        last = layout.entry(self.node.path)
        if first is None or layout.entry(self.node.path[:-1]).flows:
            raise Unclear
        if layout.text[first.start : first.end] != layout.text[last.start : last.end]:
            raise Unclear
        return [_lines_out(layout, first, item=False)]

    def applied(self, tree: Any) -> Any:
        """The tree itself."""
        return tree


@dataclass(frozen=True)
class Add:
    """A new entry in a mapping, or with the key None in a list."""

    node: Node
    key: str | None
    value: Any

    def splices(self, layout: Layout) -> list[Splice]:
        """A line of its own, or in brackets an entry before the first one."""
        entry = layout.entry(self.node.path)
        if entry.marked or entry.style == "alias":
            raise Unclear
        children = layout.children(self.node.path)
        as_json = _is_json(layout)
        name = "" if self.key is None else f"{spelling.flow(self.key, as_json)}: "
        text = name + spelling.flow(self.value, as_json)
        if not children and entry.flows:
            return [Splice(entry.value + 1, entry.value + 1, text)]
        if not children:
            raise Unclear
        return [
            _in_front(layout, children, text)
            if entry.flows
            else _line(layout, children, text, self.key is None)
        ]

    def applied(self, tree: Any) -> Any:
        """The tree with the entry, in a list the first one."""
        if self.key is None:
            return _with(tree, self.node.path, lambda items: [self.value, *items])
        key = self.key
        return _with(tree, self.node.path, lambda entries: {**entries, key: self.value})


@dataclass(frozen=True)
class Substitute:
    """Other characters within a text: at a line and column of it, counted from 0, stands exactly `old`.

    lone  whether `old` is a whole word of a shell command, which goes with the blanks before it
    """

    node: Node
    line: int
    column: int
    old: str
    new: str = ""
    lone: bool = False

    def inside(self, text: str) -> Splice:
        """The characters of the text itself."""
        lines = text.split("\n")
        if self.line >= len(lines) or not self.old:
            raise Unclear
        start = sum(len(line) + 1 for line in lines[: self.line]) + self.column
        end = start + len(self.old)
        if text[start:end] != self.old:
            raise Unclear
        if self.lone:
            blanks = _BLANKS_BEFORE.search(text, 0, start)
            if not blanks or not _WORD_END.match(text, end):
                raise Unclear
            start = blanks.start()
        return Splice(start, end, self.new)

    def splices(self, layout: Layout) -> list[Splice]:
        """The characters of the file that the text is written with."""
        text = self.node.text()
        return within(layout, self.node.path, text, [self.inside(text)])

    def applied(self, tree: Any) -> Any:
        """The tree with the text."""
        return _with(tree, self.node.path, lambda text: edited(text, [self.inside(text)]))


Change = Set | Quote | RenameKey | Remove | RemoveFirst | Add | Substitute


def edited(text: str, splices: Iterable[Splice]) -> str:
    """A text with splices made; Unclear where they overlap."""
    parts, at = [], 0
    for start, end, new in sorted(set(splices)):
        if start < at:
            raise Unclear
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])


def within(layout: Layout, path: KeyPath, text: str, splices: Sequence[Splice]) -> list[Splice]:
    """Splices of a scalar's text as splices of the file; Unclear where the file writes it in another way."""
    entry = layout.entry(path)
    if entry.marked:
        raise Unclear
    if entry.style == "|":
        return _within_block(layout, entry, text, splices)
    first, last = (entry.value, entry.end) if entry.style == "" else (entry.value + 1, entry.end - 1)
    if entry.style not in ("", "'", '"') or layout.text[first:last] != text:
        raise Unclear
    return [Splice(first + start, first + end, new) for start, end, new in splices]


def _within_block(layout: Layout, entry: Entry, text: str, splices: Sequence[Splice]) -> list[Splice]:
    """The same for the lines of a block: each stands in the file as it is, behind the indentation."""
    start = layout.text.find("\n", entry.value) + 1
    raw = layout.text[start : entry.end].split("\n")
    lines = text.split("\n")
    indent = next((len(line) - len(line.lstrip(" ")) for line in raw if line.strip()), 0)
    if [line[indent:].rstrip("\r") for line in raw] != lines[: len(raw)]:
        raise Unclear
    starts = [start + sum(len(line) + 1 for line in raw[:number]) for number in range(len(raw) + 1)]

    def place(position: int) -> int:
        before = text[:position]
        number = before.count("\n")
        if number >= len(raw):
            raise Unclear
        column = position - (before.rfind("\n") + 1)
        return starts[number] + min(indent, len(raw[number])) + column

    return [
        Splice(place(start), place(end), new.replace("\n", _line_end(layout) + " " * indent))
        for start, end, new in splices
    ]


def _in_brackets(layout: Layout, path: KeyPath, value: Any) -> Splice:
    entry = layout.entry(path)
    old = layout.text[entry.value : entry.end]
    if entry.marked or entry.style == "alias" or _COMMENT.search(old):
        raise Unclear
    return Splice(entry.value, entry.end, spelling.flow(value, _is_json(layout)))


def _is_json(layout: Layout) -> bool:
    return layout.text.lstrip()[:1] in ("{", "[")


def _scalar(layout: Layout, path: KeyPath) -> Entry:
    """A scalar without an anchor or tag."""
    entry = layout.entry(path)
    if entry.marked or entry.style not in ("", "'", '"'):
        raise Unclear
    return entry


def _out(layout: Layout, path: KeyPath, entry: Entry) -> Splice:
    """An entry taken out of the text, so that nothing else goes."""
    if not layout.entry(path[:-1]).flows:
        return _lines_out(layout, entry, isinstance(path[-1], int))
    siblings = layout.siblings(path)
    place = siblings.index(entry)
    if place:
        start, end = siblings[place - 1].end, entry.end
        between = layout.text[start : entry.start]
    else:
        start, end = entry.start, siblings[1].start
        between = layout.text[entry.end : end]
    if not _BETWEEN_ITEMS.fullmatch(between) or _COMMENT.search(layout.text[entry.start : entry.end]):
        raise Unclear
    return Splice(start, end, "")


def _lines_out(layout: Layout, entry: Entry, item: bool) -> Splice:
    """The whole lines of an entry; Unclear where they hold anything else, such as a comment."""
    start, end = layout.line_start(entry.start), layout.line_end(entry.end)
    before, behind = layout.text[start : entry.start], layout.text[entry.end : end]
    alone = _BEFORE_ITEM.fullmatch(before) if item else not before.strip(" ")
    if not alone or behind.strip() or _COMMENT.search(layout.text[entry.start : entry.end]):
        raise Unclear
    following = layout.text.find("\n", end) + 1
    if following:
        return Splice(start, following, "")
    before = layout.text[:start].removesuffix("\n").removesuffix("\r")
    return Splice(len(before), end, "")  # a last line without an end takes the one before it


def _in_front(layout: Layout, children: Sequence[Entry], text: str) -> Splice:
    """An entry before the first one in brackets, on a line of its own where that one has it."""
    first = children[0].start
    before = layout.text[layout.line_start(first) : first]
    return Splice(first, first, f"{text}, " if before.strip() else f"{text},{_line_end(layout)}{before}")


def _line(layout: Layout, children: Sequence[Entry], text: str, item: bool) -> Splice:
    """A line before the first entry that has its lines for itself, and before the comments above that one."""
    first = children[0].start
    shares = not item and layout.text[layout.line_start(first) : first].strip(
        " "
    )  # behind the dash of a list
    if shares and len(children) == 1:
        return Splice(first, first, f"{text}{_line_end(layout)}{' ' * (first - layout.line_start(first))}")
    child = children[1] if shares else children[0]
    start = top = layout.line_start(child.start)
    before = layout.text[start : child.start]
    if not (_BEFORE_ITEM.fullmatch(before) if item else not before.strip(" ")):
        raise Unclear
    while top and layout.text[layout.line_start(top - 1) : top].lstrip(" ").startswith("#"):
        top = layout.line_start(top - 1)
    return Splice(top, top, f"{before}{text}{_line_end(layout)}")


def _line_end(layout: Layout) -> str:
    """That of the text's first line."""
    end = layout.text.find("\n")
    return "\r\n" if end > 0 and layout.text[end - 1] == "\r" else "\n"


def _at(tree: Any, path: KeyPath) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def _with(tree: Any, path: KeyPath, change: Callable[[Any], Any]) -> Any:
    """A tree with one value changed; what an alias shares is copied, and so stays as it is elsewhere."""
    if not path:
        return change(tree)
    step, *rest = path
    copy: Any = list(tree) if isinstance(tree, list) else dict(tree)
    copy[step] = _with(tree[step], tuple(rest), change)
    return copy


def _removed(tree: Any, path: KeyPath) -> Any:
    *parent, step = path
    entries = _at(tree, tuple(parent))
    if isinstance(entries, list) and len(entries) == 1:
        return _removed(tree, tuple(parent))
    return _with(tree, tuple(parent), lambda entries: _without(entries, step))


def _without(entries: Any, step: str | int) -> Any:
    if isinstance(entries, list):
        return [value for index, value in enumerate(entries) if index != step]
    return {key: value for key, value in entries.items() if key != step}
