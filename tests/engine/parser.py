"""A program's own argument parser, held ready in one process."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

INSIDE = Path(__file__).parent / "inside"


@dataclass(frozen=True)
class Parsed:
    """What the parser made of an argument list: values by destination, or its own error text."""

    values: Mapping[str, Any]
    error: str


class Parser:
    """Parses argument lists; importing the program takes seconds, parsing does not.

    `command` is a Python with one of the programs in inside/ that read a JSON list a line and answer each.
    """

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )

    def __call__(self, argv: Sequence[str]) -> Parsed:
        """Parse and validate as the program does before it starts anything."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(list(argv)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the parser's process ended:\n{self._log.read_text()}"
        return Parsed(**{"values": {}, "error": "", **json.loads(answer)})

    def __enter__(self) -> Parser:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
