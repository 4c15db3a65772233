"""Fixes of findings made in texts: `vllm-phases lint --fix`.

A pass makes every fix that does not touch another one; the texts are judged again, and the next pass makes
what was put off, until nothing is left to do.
"""

from __future__ import annotations

import bisect
import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vllm_phases.finding import UsageError
from vllm_phases.sources import changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from vllm_phases.finding import Edit, Finding, Fix

    Judge = Callable[[], Sequence[Finding]]
    """Judges the texts as they are now."""

PASSES = 10
"""After so many, fixes that undo each other would go on for ever."""

_MARK = b"\xef\xbb\xbf"  # UTF-8's byte order mark, which is no part of the text


@dataclass(frozen=True)
class Repaired:
    """How many fixes were made, and what the files that they changed held before."""

    made: int
    before: dict[str, bytes]


def repair(contents: dict[str, bytes], judge: Judge, unsafe: bool = False) -> Repaired:
    """Make the fixes of what `judge` finds in `contents`, files by name; the unsafe ones where asked to."""
    made = 0
    before: dict[str, bytes] = {}
    for _ in range(PASSES):
        fixes = list(
            apart(finding.fix for finding in judge() if finding.fix and (finding.fix.safe or unsafe))
        )
        if not fixes:
            break
        made += len(fixes)
        edits = [edit for fix in fixes for edit in fix.edits]
        for file in {edit.start.file for edit in edits}:
            before.setdefault(file, contents[file])
            contents[file] = edited(contents[file], edits, file)
    return Repaired(made, before)


def edited(content: bytes, edits: Iterable[Edit], file: str) -> bytes:
    """The content of a file with its own of some edits made; other bytes stay."""
    mark = _MARK if content.startswith(_MARK) else b""
    text = content[len(mark) :].decode("utf-8")
    own = {(edit.offset, edit.old, edit.new) for edit in edits if edit.start.file == file}
    for offset, old, _ in own:
        if text[offset : offset + len(old)] != old:
            raise AssertionError(f"{file}: an edit expects {old!r} at character {offset}")
    splices = (changes.Splice(offset, offset + len(old), new) for offset, old, new in own)
    return mark + changes.edited(text, splices).encode("utf-8")


def difference(file: str, before: bytes, after: bytes) -> str:
    """A unified diff, "" where nothing changes. Line ends stay as they are, so that it can be applied."""
    old, new = (content.decode("utf-8").split("\n") for content in (before, after))
    lines = difflib.unified_diff(_with_ends(old), _with_ends(new), file, file)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def write(files: Mapping[str, bytes]) -> None:
    """Put new contents into files by name; UsageError where one may not be written, and then none is."""
    for change in (_try, Path.write_bytes):
        for name, content in files.items():
            try:
                change(Path(name), content)
            except OSError as error:
                raise UsageError(f"{name}: cannot be written: {error.strerror}") from None


def _try(file: Path, _: bytes) -> None:
    file.open("r+b").close()


def apart(fixes: Iterable[Fix]) -> Iterator[Fix]:
    """The fixes, each once, of which none touches one before it.

    Those side by side touch as well: the last entry of a list takes the list with it.
    """
    taken: dict[str, list[tuple[int, int]]] = {}
    for fix in dict.fromkeys(fixes):
        spans = [(edit.start.file, (edit.offset, edit.offset + len(edit.old))) for edit in fix.edits]
        if not any(_touches(span, taken.get(file, [])) for file, span in spans):
            for file, span in spans:
                bisect.insort(taken.setdefault(file, []), span)
            yield fix


def _touches(span: tuple[int, int], taken: list[tuple[int, int]]) -> bool:
    """Whether characters, from the first to behind the last one, touch some in order that do not."""
    place = bisect.bisect_left(taken, span)
    before, behind = taken[max(place - 1, 0) : place], taken[place : place + 1]
    return any(end >= span[0] for _, end in before) or any(start <= span[1] for start, _ in behind)


def _with_ends(lines: list[str]) -> list[str]:
    """Lines with their ends; the rest behind the last end is a line only where it is not empty."""
    *whole, rest = lines
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])
