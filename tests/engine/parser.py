"""vLLM's own argument parser, held ready in one process of the engine environment."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PROGRAM = Path(__file__).parent / "inside" / "parse.py"


@dataclass(frozen=True)
class Parsed:
    """What the parser made of an argument list: values by destination, or its own error text."""

    values: Mapping[str, Any]
    error: str


class Parser:
    """Parses argument lists that begin with `serve`; importing vLLM takes seconds, parsing does not."""

    def __init__(self, python: Path, log: Path) -> None:
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [python, _PROGRAM], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )

    def __call__(self, argv: Sequence[str]) -> Parsed:
        """Parse and validate as `vllm` does before it starts anything."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(list(argv)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the parser's process ended:\n{self._log.read_text()}"
        return Parsed(**{"values": {}, "error": "", **json.loads(answer)})

    def close(self) -> None:
        self._process.communicate()
