"""From the repair that a rule proposes to edits of the user's file.

Only certain places are edited. The edited text is read again, and unless its values are the old ones but for
the changes, there is no repair: so anchors, merge keys and odd quoting need no care of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Edit, Location
from vllm_phases.sources import layout, yaml_reader
from vllm_phases.sources.changes import Add, Change, Remove, Splice, Substitute, edited, within
from vllm_phases.sources.layout import Unclear

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vllm_phases.sources.document import Document


@dataclass(frozen=True)
class Repair:
    """The changes that put right what a rule found.

    safe  whether it is the only right answer; one that is merely likely waits for --unsafe-fixes
    """

    changes: tuple[Change, ...]
    safe: bool = True


def edits(repair: Repair) -> tuple[Edit, ...]:
    """The edits that a repair comes down to; none where one of its places is not certain."""
    by_document: dict[int, list[Change]] = {}
    for change in repair.changes:
        by_document.setdefault(id(change.node.document), []).append(change)
    try:
        return tuple(edit for changes in by_document.values() for edit in _edits(changes))
    except Unclear:
        return ()


def changed_text(change: Change) -> str:
    """The text of a document after a change; Unclear where its place is not certain."""
    document = change.node.document
    return edited(document.text, _splices(document, [change]))


def _edits(changes: Sequence[Change]) -> Iterator[Edit]:
    """The edits for the changes of one document, in the file that it stands in."""
    document = changes[0].node.document
    splices = _splices(document, changes)
    while document.inside is not None:
        holder = document.inside
        splices = within(_layout(holder.document), holder.path, document.text, splices)
        document = holder.document
    for start, end, text in splices:
        old = document.text[start:end]
        yield Edit(_place(document, start), _place(document, end), document.offset + start, old, text)


def _splices(document: Document, changes: Sequence[Change]) -> list[Splice]:
    if document.kind == "command":
        return [
            change.inside(document.text) if isinstance(change, Substitute) else _unclear()
            for change in changes
        ]
    read = _layout(document)
    found = [splice for change in changes for splice in change.splices(read)]
    if _tree(edited(document.text, found)) != _expected(document.tree, changes):
        raise Unclear
    return found


def _layout(document: Document) -> layout.Layout:
    if document.kind == "command":
        raise Unclear
    return layout.read(document.text)


def _unclear() -> Splice:
    raise Unclear


def _tree(text: str) -> Any:
    try:
        trees, _ = yaml_reader.documents(text)
    except yaml_reader.Unreadable:
        raise Unclear from None
    return trees[0] if len(trees) == 1 else None


def _expected(tree: Any, changes: Sequence[Change]) -> Any:
    """The data after all changes, made from the end of lists, so that no index moves before its turn."""
    for change in sorted(changes, key=_turn):
        tree = change.applied(tree)
    return tree


def _turn(change: Change) -> tuple[int, list[tuple[int, str]], int, int]:
    kind = 2 if isinstance(change, Add) else 1 if isinstance(change, Remove) else 0
    steps = [(-step, "") if isinstance(step, int) else (0, step) for step in change.node.path]
    line, column = (-change.line, -change.column) if isinstance(change, Substitute) else (0, 0)
    return kind, steps, line, column


def _place(document: Document, position: int) -> Location:
    before = document.text[:position]
    column = position - (before.rfind("\n") + 1)
    return Location(document.file, document.line + before.count("\n"), column + 1)
