"""Parse argument lists as the command `vllm-router` does; run by the engine environment's Python.

Standard input: one argument list a line, as JSON, without the command itself.
Standard output: one line each, `{"values": {name: value}}` or `{"error": text}`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import sys
from typing import Any

from vllm_router.launch_router import parse_router_args  # type: ignore[import-not-found]
from vllm_router.router import Router  # type: ignore[import-not-found]


def parse(argv: list[str]) -> dict[str, Any]:
    """Parse and validate, and make the router of it, in Rust, without starting it."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            parsed = parse_router_args(argv)
        values = dataclasses.asdict(parsed)
        parsed._validate_router_args()
        Router.from_args(parsed)
    except SystemExit:
        return {"error": complaint.getvalue().partition("error: ")[2].strip()}
    except (TypeError, ValueError) as error:
        return {"error": str(error)}
    return {"values": values}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(parse(json.loads(line))), flush=True)
