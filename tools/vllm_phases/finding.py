"""What every check says: a finding, where it stands, and the error of a command that cannot start."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Severity(str, Enum):
    """How much a finding weighs; only an error makes a check fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, order=True)
class Location:
    """A place in a file as the user named it; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Edit:
    """Characters of a file that give way to others.

    start, end  the places of the first one and behind the last one
    offset      of the first one, in characters from the start of the file's text
    old, new    what stands there, and what is to stand there
    """

    start: Location
    end: Location
    offset: int
    old: str
    new: str


@dataclass(frozen=True)
class Fix:
    """The edits that put a finding right; safe says whether they are the only right answer."""

    edits: tuple[Edit, ...]
    safe: bool


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    rule_id and name identify the rule ("ARG001", "unknown-flag"). message says where, what was given
    and why it is wrong; remediation says what to set. path is the dotted values path or the path in the
    object; object is "Kind/name"; location is the line to change, where one is known; start is where the
    argument begins that has several lines around that one; fix is what `lint --fix` does.
    """

    rule_id: str
    name: str
    severity: Severity
    message: str
    remediation: str = ""
    path: str = ""
    object: str = ""
    location: Location | None = None
    start: Location | None = None
    fix: Fix | None = field(default=None, compare=False)


def reading_order(finding: Finding) -> tuple[bool, Location, str, str]:
    """A key that sorts findings by file and line; those without a place come last."""
    place = finding.location
    return place is None, place or Location("", 0, 0), finding.rule_id, finding.message


class UsageError(Exception):
    """The command was asked for something it cannot start on: exit code 2, printed as one line."""
