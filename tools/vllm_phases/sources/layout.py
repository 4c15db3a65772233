"""Where the entries of a YAML text lie, character by character, for repairs that keep every other one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vllm_phases.sources import scalars

if TYPE_CHECKING:
    from vllm_phases.sources.yaml_reader import KeyPath


class Unclear(Exception):  # noqa: N818  # no fault: the finding is told all the same
    """A change has no place in the text that is known for certain."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a mapping or list; positions count characters of the text from 0.

    start    of its key, or of the value where it has none
    key_end  behind its key
    value    where its value starts, and end, behind its last character
    style    of the value: "" plain, ' and " quoted, | and > blocks, { and [ flow, "block" or "alias"
    marked   whether an anchor or a tag stands before the value
    """

    start: int
    key_end: int
    value: int
    end: int
    style: str
    marked: bool

    @property
    def flows(self) -> bool:
        """Whether it is a list or mapping in brackets."""
        return self.style in ("{", "[")


@dataclass(frozen=True)
class Layout:
    """The entries of a text with one document.

    order     the steps of each mapping and list as they are written
    repeated  the first entry of each key that a mapping has twice
    """

    text: str
    entries: dict[KeyPath, Entry] = field(default_factory=dict)
    order: dict[KeyPath, list[str | int]] = field(default_factory=dict)
    repeated: dict[KeyPath, Entry] = field(default_factory=dict)

    def entry(self, path: KeyPath) -> Entry:
        """The entry at a path; Unclear where it is not written there, as below an alias or a merge key."""
        if path not in self.entries:
            raise Unclear
        return self.entries[path]

    def siblings(self, path: KeyPath) -> list[Entry]:
        """The entries of the mapping or list that holds a path, in order."""
        return self.children(path[:-1])

    def children(self, path: KeyPath) -> list[Entry]:
        """The entries of a mapping or list, in order."""
        return [self.entry((*path, step)) for step in self.order.get(path, ())]

    def line_start(self, position: int) -> int:
        """Where the line of a position starts."""
        return self.text.rfind("\n", 0, position) + 1

    def line_end(self, position: int) -> int:
        """Where the line of a position ends, before its line end."""
        end = self.text.find("\n", position)
        end = len(self.text) if end < 0 else end
        return end - 1 if self.text[position:end].endswith("\r") else end


def read(text: str) -> Layout:
    """The layout of a text; Unclear for what is no single readable document."""
    import yaml

    reader = _Reader(text)
    loader = yaml.CBaseLoader(text)
    try:
        while loader.check_event():
            reader.take(loader.get_event())
    except yaml.YAMLError:
        raise Unclear from None
    finally:
        loader.dispose()
    if reader.documents != 1:
        raise Unclear
    return reader.layout


@dataclass
class _Frame:
    """A mapping or list that is being read; key is the pending one of a mapping, with its place."""

    path: KeyPath
    event: Any
    mapping: bool
    own: tuple[int, int]
    key: str | None = None
    key_place: tuple[int, int] = (0, 0)
    last: int = 0


class _Reader:
    def __init__(self, text: str) -> None:
        self.layout = Layout(text)
        self.documents = 0
        self._stack: list[_Frame] = []

    def take(self, event: Any) -> None:
        """One event of libyaml."""
        kind = type(event).__name__
        if kind == "DocumentStartEvent":
            self.documents += 1
        elif kind == "ScalarEvent":
            self._scalar(event)
        elif kind == "AliasEvent":
            if self._awaits_key():
                raise Unclear
            self._put(event, event.end_mark.index, "alias")
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._open(event, kind == "MappingStartEvent")
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._close(event)

    def _awaits_key(self) -> bool:
        return bool(self._stack) and self._stack[-1].mapping and self._stack[-1].key is None

    def _scalar(self, event: Any) -> None:
        start, end = event.start_mark.index, event.end_mark.index
        if self._awaits_key():
            frame = self._stack[-1]
            plain = not event.style and event.tag is None
            frame.key = scalars.key(event.value) if plain else event.value
            frame.key_place = (start, end)
            return
        if event.style in ("|", ">"):  # libyaml ends them at the next token
            end = start + len(self.layout.text[start:end].rstrip())
        self._put(event, end, event.style or "")

    def _open(self, event: Any, mapping: bool) -> None:
        if self._awaits_key():
            raise Unclear
        path, start = self._place(event)
        self.layout.order[path] = []
        self._stack.append(_Frame(path, event, mapping, start, last=event.end_mark.index))

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        flows = frame.event.flow_style
        style = ("{" if frame.mapping else "[") if flows else "block"
        self._put(frame.event, event.end_mark.index if flows else frame.last, style, frame)

    def _place(self, event: Any) -> tuple[KeyPath, tuple[int, int]]:
        """The path of the value that begins, and where its key starts and ends."""
        here = event.start_mark.index
        if not self._stack:
            return (), (here, here)
        frame = self._stack[-1]
        if frame.mapping:
            return (*frame.path, frame.key or ""), frame.key_place
        return (*frame.path, len(self.layout.order[frame.path])), (here, here)

    def _put(self, event: Any, end: int, style: str, closed: _Frame | None = None) -> None:
        path, (start, key_end) = (closed.path, closed.own) if closed else self._place(event)
        marked = bool(event.anchor) or bool(getattr(event, "tag", None))
        entry = Entry(start, key_end, event.start_mark.index, end, style, marked)
        if path in self.layout.entries:
            self.layout.repeated[path] = self.layout.entries[path]
        elif path:
            self.layout.order[path[:-1]].append(path[-1])
        self.layout.entries[path] = entry
        if self._stack:
            self._stack[-1].key, self._stack[-1].last = None, end
