"""Parse argument lists as `vllm serve` itself does: `python parse.py [TREE]`.

Without TREE the installed vLLM parses, and the engine environment's Python runs this. TREE is the folder of
another release: any Python that has reader.PACKAGES runs its parser, with stand-ins for torch and all else.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    Release = tuple[argparse.ArgumentParser, Callable[[argparse.Namespace], None]]

TOOLS = Path(__file__).parents[3] / "tools"


def installed() -> Release:
    """Give the parser of the command `vllm` and what its `main` does with the parsed arguments first."""
    from vllm.entrypoints.cli.serve import ServeSubcommand  # type: ignore[import-not-found]
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # type: ignore[import-not-found]

    parser = FlexibleArgumentParser(prog="vllm")
    command = ServeSubcommand()
    command.subparser_init(parser.add_subparsers(required=True, dest="subparser"))
    return parser, command.validate


def unpacked(tree: str) -> Release:
    """Give the same of the release in TREE, as far as it does not need torch: all of it."""
    sys.path[:0] = [tree, str(TOOLS)]
    from vllm_phases.catalogue import reader

    reader.install_stand_ins()
    serve, _ = reader.with_stand_ins(reader.load_release)
    parser = type(serve)(prog="vllm")
    parser.add_subparsers(required=True, dest="subparser").choices["serve"] = serve
    validate = reader.attribute(reader.PARSER_MODULES, "validate_parsed_serve_args")
    return parser, lambda namespace: reader.with_stand_ins(lambda: validate(namespace))


def parse(release: Release, argv: list[str]) -> dict[str, Any]:
    """Parse and validate; the error is upstream's own text."""
    parser, validate = release
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            namespace = parser.parse_args(argv)
            validate(namespace)
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
    release = unpacked(sys.argv[1]) if sys.argv[1:] else installed()
    for line in sys.stdin:
        print(json.dumps(parse(release, json.loads(line)), default=plain), file=answers, flush=True)


if __name__ == "__main__":
    main()
