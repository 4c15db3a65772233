"""One word on a set of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm_phases.finding import Severity

if TYPE_CHECKING:
    from vllm_phases.check import Result


def verdict(result: Result) -> str:
    """ "ok", "failed" when there is an error, or "not rendered" when Helm refused."""
    if not result.rendered:
        return "not rendered"
    return "failed" if result.count(Severity.ERROR) else "ok"
