"""From the repairs that rules propose to edits of the user's files.

Only certain places are edited. The edited text is read again, and unless its values are the old ones but for
the changes, there is no fix: so anchors, merge keys and odd quoting need no care of their own.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Edit, Fix
from vllm_phases.sources import layout, yaml_reader
from vllm_phases.sources.changes import Add, Change, Remove, Splice, Substitute, edited, within
from vllm_phases.sources.layout import Unclear

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vllm_phases.sources.document import Document
    from vllm_phases.sources.layout import Layout


@dataclass(frozen=True)
class Repair:
    """The changes that put right what a rule found.

    safe  whether it is the only right answer; one that is merely likely waits for --unsafe-fixes
    """

    changes: tuple[Change, ...]
    safe: bool = True


@dataclass(frozen=True)
class _Part:
    """What a repair does to one document."""

    document: Document
    changes: tuple[Change, ...]
    splices: tuple[Splice, ...]

    @property
    def key(self) -> tuple[int, tuple[Splice, ...]]:
        """Equal for parts that do the same."""
        return id(self.document), self.splices


def fixes(repairs: Sequence[Repair | None]) -> list[Fix | None]:
    """The fix for each repair; None where there is none, or one of its places is not certain."""
    order = sorted(range(len(repairs)), key=lambda index: _first_document(repairs[index]))
    found = {index: _draft(repairs[index]) for index in order}
    drafts = [found[index] for index in range(len(repairs))]
    by_document: dict[int, dict[tuple[Splice, ...], _Part]] = {}
    for part in (part for draft in drafts for part in draft):
        by_document.setdefault(id(part.document), {})[part.splices] = part
    sound = {part.key for parts in by_document.values() for part in _sound(list(parts.values()))}
    return [
        _fix(draft, repair) if repair and draft and all(part.key in sound for part in draft) else None
        for draft, repair in zip(drafts, repairs, strict=True)
    ]


def changed_text(change: Change) -> str:
    """The text of a document after a change; Unclear where its place is not certain."""
    document = change.node.document
    parts = _sound([_Part(document, (change,), _splices(document, [change]))])
    return edited(document.text, parts[0].splices) if parts else _unclear()


def _first_document(repair: Repair | None) -> int:
    return id(repair.changes[0].node.document) if repair else 0


def _draft(repair: Repair | None) -> tuple[_Part, ...]:
    """The parts of a repair; none where a place is not certain."""
    by_document: dict[int, list[Change]] = {}
    for change in repair.changes if repair else ():
        by_document.setdefault(id(change.node.document), []).append(change)
    try:
        return tuple(_part(changes) for changes in by_document.values())
    except Unclear:
        return ()


def _part(changes: Sequence[Change]) -> _Part:
    document = changes[0].node.document
    return _Part(document, tuple(changes), _splices(document, changes))


def _splices(document: Document, changes: Sequence[Change]) -> tuple[Splice, ...]:
    if document.kind == "command":
        return tuple(_in_script(document.text, change) for change in changes)
    here = _layout(document)
    return tuple(splice for change in changes for splice in change.splices(here))


def _in_script(text: str, change: Change) -> Splice:
    splice: Splice = change.inside(text) if isinstance(change, Substitute) else _unclear()
    return splice


def _sound(parts: list[_Part]) -> list[_Part]:
    """The parts after which a document holds what it is to hold: all of them with one reading, if all are."""
    document = parts[0].document
    if document.kind == "command" or _holds(document, parts):
        return parts
    half = len(parts) // 2
    return [*_sound(parts[:half]), *_sound(parts[half:])] if half else []


def _holds(document: Document, parts: Sequence[_Part]) -> bool:
    changes = [change for part in parts for change in part.changes]
    try:
        text = edited(document.text, (splice for part in parts for splice in part.splices))
        trees, _ = yaml_reader.documents(text)
        return trees == [_expected(document.tree, changes)]
    except (
        Unclear,
        yaml_reader.Unreadable,
        LookupError,
    ):  # changes of which one takes away the other's place
        return False


def _expected(tree: Any, changes: Iterable[Change]) -> Any:
    """The data after all changes, made from the end of lists, so that no index moves before its turn."""
    for change in sorted(changes, key=_turn):
        tree = change.applied(tree)
    return tree


def _turn(change: Change) -> tuple[int, list[tuple[int, str]], int, int]:
    kind = 2 if isinstance(change, Add) else 1 if isinstance(change, Remove) else 0
    steps = [(-step, "") if isinstance(step, int) else (0, step) for step in change.node.path]
    line, column = (-change.line, -change.column) if isinstance(change, Substitute) else (0, 0)
    return kind, steps, line, column


def _fix(draft: Sequence[_Part], repair: Repair) -> Fix | None:
    try:
        return Fix(tuple(edit for part in draft for edit in _edits(part.document, part.splices)), repair.safe)
    except Unclear:
        return None


def _edits(document: Document, splices: Sequence[Splice]) -> Iterator[Edit]:
    """Edits of the file, through the texts that hold the document."""
    while document.inside is not None:
        holder = document.inside
        splices = within(_layout(holder.document), holder.path, document.text, splices)
        document = holder.document
    for start, end, text in splices:
        old = document.text[start:end]
        first, last = document.location_at(start), document.location_at(end)
        yield Edit(first, last, document.offset + start, old, text)


@functools.lru_cache(maxsize=4)  # repairs come document by document, and layouts are large
def _known_layout(document: Document) -> Layout | None:
    try:
        return layout.read(document.text) if document.kind != "command" else None
    except Unclear:
        return None


def _layout(document: Document) -> Layout:
    return _known_layout(document) or _unclear()


def _unclear() -> Any:
    raise Unclear
