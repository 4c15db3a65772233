"""YAML documents as plain data with the place of every key, read in one pass over libyaml's events.

Nothing is built from tags, and an alias is a reference to what it names, so reading needs memory and time
in proportion to the text only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from vllm_phases.sources import scalars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KeyPath = tuple["str | int", ...]

MAX_DEPTH = 100
_EXPANSION = 10  # how many times more values than it writes a document may have by its aliases …
_ALLOWANCE = 100_000  # … beyond these
_STRING = "tag:yaml.org,2002:str"
_CORE = "tag:yaml.org,2002:"


class Unreadable(Exception):  # noqa: N818  # what is wrong with the input
    """The text is no YAML that can be read; line and column count from 0."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(reason)
        self.line, self.column = line, column


class Spot(NamedTuple):
    """Where a value stands, counted from 0: its key or list item, then the first character of its text.

    literal is true for a `|` block, whose lines stand in the file as they are.
    """

    line: int
    column: int
    text_line: int
    text_column: int
    literal: bool = False


Places = dict[KeyPath, Spot]


def nearest(places: Places, path: KeyPath) -> Spot | None:
    """The place of a path, or of its nearest parent that has one."""
    above = (places.get(path[:length]) for length in range(len(path), 0, -1))
    return next((spot for spot in above if spot), None)


@dataclass
class _Frame:
    """A mapping or list that is being read."""

    container: Any
    anchor: str | None
    path: KeyPath
    spot: tuple[int, int]
    key: str | None = None
    key_spot: tuple[int, int] = (0, 0)
    key_merges: bool = False
    size: int = 1
    merged: list[tuple[Any, tuple[int, int]]] = field(default_factory=list)


def documents(text: str, places: Places | None = None) -> tuple[list[Any], list[KeyPath]]:
    """The documents of a text, and the paths of keys that are given twice (the last one counts).

    With `places`, the place of every key and list item of the first document is put there, and values stay
    text. Unreadable for broken YAML, nesting beyond MAX_DEPTH and aliases that expand without measure.
    """
    import yaml

    reader = _Reader(places)
    takers = {getattr(yaml, name): taker.__get__(reader) for name, taker in _TAKERS.items()}
    try:
        loader = yaml.CBaseLoader(text)
        try:
            while event := loader.get_event():  # None after the end
                if taker := takers.get(type(event)):
                    taker(event)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        raise Unreadable(_reason(error, text, line, column), line, column) from None
    except yaml.YAMLError as error:
        raise Unreadable(" ".join(str(error).split()), 0, 0) from None
    return reader.documents, reader.repeated


def _reason(error: Any, text: str, line: int, column: int) -> str:
    lines = text.splitlines()
    if line < len(lines) and lines[line][column : column + 1] == "\t":
        return "a tab indents this line; YAML takes spaces only"
    return str(error.problem or error.context)


class _Reader:
    """Builds data from events with a stack of its own, so that depth costs no recursion."""

    def __init__(self, places: Places | None) -> None:
        self.documents: list[Any] = []
        self.repeated: list[KeyPath] = []
        self._places = places
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._written = self._expanded = 0

    def _document_start(self, event: Any) -> None:
        self._anchors = {}

    def _scalar(self, event: Any) -> None:
        text, mark, tag = event.value, event.start_mark, event.tag
        plain = not event.style
        frame = self._stack[-1] if self._stack else None
        if frame and frame.key is None and isinstance(frame.container, dict):
            frame.key = scalars.key(text) if plain and tag is None else text
            frame.key_spot = (mark.line, mark.column)
            frame.key_merges = plain and text == "<<"
            return
        resolves = (plain and tag is None) or (tag is not None and tag.startswith(_CORE) and tag != _STRING)
        value = scalars.value(text) if resolves and self._places is None else text
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._put(value, 1, (mark.line, mark.column), event.style == "|")

    def _start(self, event: Any) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise Unreadable(f"nested more than {MAX_DEPTH} deep", *_at(event))
        frame = self._stack[-1] if self._stack else None
        if frame and isinstance(frame.container, dict) and frame.key is None:
            raise Unreadable("a mapping or list stands where a key must be", *_at(event))
        path = self._path(frame) if self._places is not None else ()
        container: Any = {} if type(event).__name__ == "MappingStartEvent" else []
        self._stack.append(_Frame(container, event.anchor, path, _at(event)))

    def _end(self, event: Any) -> None:
        frame = self._stack.pop()
        for source, spot in frame.merged:
            self._merge(frame, source, spot)
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.container, frame.size)
        self._put(frame.container, frame.size, frame.spot, False)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise Unreadable(f"*{event.anchor} names nothing that stands before it", *_at(event))
        value, size = self._anchors[event.anchor]
        frame = self._stack[-1] if self._stack else None
        if frame and isinstance(frame.container, dict) and frame.key is None:
            frame.key, frame.key_spot = str(value), _at(event)
            return
        self._expanded += size
        if self._expanded > _ALLOWANCE + _EXPANSION * self._written:
            raise Unreadable("aliases expand to far more values than are written", *_at(event))
        self._put(value, size, _at(event), False)

    def _put(self, value: Any, size: int, spot: tuple[int, int], literal: bool) -> None:
        """A finished value goes into its container, or becomes a document."""
        self._written += 1
        if not self._stack:
            self.documents.append(value)
            return
        frame = self._stack[-1]
        frame.size += size
        if frame.key_merges and frame.key is not None:
            frame.merged.extend((source, frame.key_spot) for source in _sources(value))
            frame.key, frame.key_merges = None, False
            return
        if self._places is not None and not self.documents:
            line, column = frame.key_spot if frame.key is not None else spot
            self._places[self._path(frame)] = Spot(line, column, spot[0], spot[1], literal)
        if frame.key is None:
            frame.container.append(value)
            return
        if frame.key in frame.container:
            self.repeated.append(tuple(self._step(above) for above in self._stack))
        frame.container[frame.key], frame.key = value, None

    def _merge(self, frame: _Frame, source: Any, spot: tuple[int, int]) -> None:
        """Keys that `<<` brings in; the mapping's own keys win."""
        for key, value in source.items():
            if key not in frame.container:
                frame.container[key] = value
                if self._places is not None and not self.documents:
                    path: KeyPath = (*frame.path, key)
                    self._places[path] = Spot(spot[0], spot[1], spot[0], spot[1])

    @staticmethod
    def _path(frame: _Frame | None) -> KeyPath:
        if frame is None:
            return ()
        return (*frame.path, _Reader._step(frame))

    @staticmethod
    def _step(frame: _Frame) -> str | int:
        """The key or index that is being read."""
        return len(frame.container) if frame.key is None else frame.key


_TAKERS: dict[str, Callable[[_Reader, Any], None]] = {
    "ScalarEvent": _Reader._scalar,
    "MappingStartEvent": _Reader._start,
    "MappingEndEvent": _Reader._end,
    "SequenceStartEvent": _Reader._start,
    "SequenceEndEvent": _Reader._end,
    "AliasEvent": _Reader._alias,
    "DocumentStartEvent": _Reader._document_start,
}


def _at(event: Any) -> tuple[int, int]:
    return event.start_mark.line, event.start_mark.column


def _sources(value: Any) -> Iterator[dict[str, Any]]:
    """The mappings that a merge key names."""
    for source in value if isinstance(value, list) else [value]:
        if isinstance(source, dict):
            yield source
