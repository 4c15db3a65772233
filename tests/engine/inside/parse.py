"""Parse argument lists as `vllm serve` itself does; run by the engine environment's Python.

Standard input: one argument list a line, as JSON, beginning with `serve`.
Standard output: one line each, `{"values": {dest: value}}` or `{"error": text}`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import sys
from typing import Any

from vllm.entrypoints.cli.serve import ServeSubcommand  # type: ignore[import-not-found]
from vllm.utils.argparse_utils import FlexibleArgumentParser  # type: ignore[import-not-found]


def parse(argv: list[str]) -> dict[str, Any]:
    """Parse and validate with the parser of the command `vllm`, as its `main` does first."""
    parser = FlexibleArgumentParser(prog="vllm")
    command = ServeSubcommand()
    command.subparser_init(parser.add_subparsers(required=True, dest="subparser"))
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            namespace = parser.parse_args(argv)
            command.validate(namespace)
    except SystemExit:
        return {"error": complaint.getvalue().partition("error: ")[2].strip()}
    except (TypeError, ValueError) as error:
        return {"error": str(error)}
    return {"values": vars(namespace)}


def plain(value: Any) -> Any:
    """Give JSON a configuration object as its fields and anything else unknown as text."""
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else str(value)  # type: ignore[arg-type]


def main() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # vLLM logs to standard output
    for line in sys.stdin:
        print(json.dumps(parse(json.loads(line)), default=plain), file=answers, flush=True)


if __name__ == "__main__":
    main()
