"""From a character of a text to its place in the file, through what YAML and the shell do to it.

Each function follows the source and the text side by side and gives, for every character of the text, where
it was written. Where both do not agree to the end, as after an expansion, it gives None: nothing is guessed.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Reader = Callable[[str, int], "tuple[str, int]"]
    """Of a source and a position: the characters that stand there for the text, and the next position."""

_FOLD = re.compile(r"[ \t]*\n[ \t\n]*")
_CONTINUED = re.compile(r"\\[ \t]*\n[ \t]*")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "b": "\b",
    "f": "\f",
    "a": "\a",
    "v": "\v",
    "e": "\x1b",
}


def of_scalar(source: str, start: int, text: str) -> list[int] | None:
    """Where in a YAML source the characters of a plain or quoted scalar stand that starts at a position."""
    quote = source[start : start + 1]
    if quote == "'":
        return _followed(source, start + 1, text, _single)
    return (
        _followed(source, start + 1, text, _double)
        if quote == '"'
        else _followed(source, start, text, _plain)
    )


def of_block(source: str, start: int, indent: int, text: str) -> list[int] | None:
    """The same for a block scalar, whose first line starts at a position; `>` makes blanks of line ends."""

    def read(source: str, at: int) -> tuple[str, int]:
        if source[at] != "\n":
            return source[at], at + 1
        match = re.compile(rf"\n[ ]{{0,{indent}}}").match(source, at)
        return "\n", match.end() if match else at + 1

    return _followed(source, start, text, read, folds=True)


def of_word(script: str, start: int, text: str) -> list[int] | None:
    """Where in a shell script the characters of a word without expansions stand."""
    found: list[int] = []
    for at, character in _unquoted(script, start):
        if len(found) == len(text):
            break
        if character != text[len(found)]:
            return None
        found.append(at)
    return found if len(found) == len(text) else None


def _followed(source: str, at: int, text: str, read: Reader, folds: bool = False) -> list[int] | None:
    found: list[int] = []
    while len(found) < len(text) and at < len(source):
        characters, following = read(source, at)
        for character in characters:
            wanted = text[len(found) : len(found) + 1]
            if character != wanted and not (folds and character == "\n" and wanted == " "):
                return None
            found.append(at)
        at = following
    return found if len(found) == len(text) else None


def _plain(source: str, at: int) -> tuple[str, int]:
    """A character, or the line breaks that YAML folds: one becomes a blank, of several one is dropped."""
    if match := _FOLD.match(source, at):
        breaks = match[0].count("\n")
        return "\n" * (breaks - 1) or " ", match.end()
    return source[at], at + 1


def _single(source: str, at: int) -> tuple[str, int]:
    return ("'", at + 2) if source.startswith("''", at) else _plain(source, at)


def _double(source: str, at: int) -> tuple[str, int]:
    if match := _CONTINUED.match(source, at):
        return "", match.end()
    if match := _ESCAPE.match(source, at):
        code = match[1] or match[2] or match[3]
        return chr(int(code, 16)) if code else _ESCAPES.get(match[4], match[4]), match.end()
    return _plain(source, at)


def _unquoted(script: str, at: int) -> Iterator[tuple[int, str]]:
    """The characters that are left when the shell has taken off quotes, up to what it would expand."""
    quote = ""
    while at < len(script):
        character = script[at]
        if quote == "'" and character != "'":
            yield at, character
        elif character in ("'", '"') and quote in ("", character):
            quote = "" if quote else character
        elif character == "\\" and (not quote or script[at + 1 : at + 2] in tuple('"$`\\\n')):
            if script[at + 1 : at + 2] != "\n":
                yield at, script[at + 1 : at + 2]
            at += 1
        elif character in "$`" or (not quote and character in " \t\n;&|()<>"):
            return
        else:
            yield at, character
        at += 1


@functools.lru_cache(maxsize=8)
def line_starts(text: str) -> list[int]:
    """Where each line of a text starts."""
    return [0, *(match.end() for match in re.finditer("\n", text))]
