"""Findings of `vllm-phases lint` in each format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vllm_phases.finding import Finding

    Report = Callable[[Sequence[Finding], Mapping[str, str]], str]


def text(findings: Sequence[Finding], texts: Mapping[str, str]) -> str:
    """For people: every finding with the line it is about, then the numbers."""
    from vllm_phases.report.text import findings as shown

    counts = {severity: sum(found.severity is severity for found in findings) for severity in Severity}
    parts = [f"{count} {severity.value}{'s' * (count != 1)}" for severity, count in counts.items() if count]
    return "\n\n".join(filter(None, (shown(findings, texts), ", ".join(parts) or "no findings")))


def as_json(findings: Sequence[Finding], texts: Mapping[str, str]) -> str:
    """For programs: a versioned envelope."""
    from vllm_phases.report.json import VERSION, as_object

    return json.dumps(
        {"version": VERSION, "findings": [as_object(finding) for finding in findings]},
        indent=2,
        ensure_ascii=False,
    )


def _later(module: str) -> Report:
    """A format that is imported when it is asked for."""

    def report(findings: Sequence[Finding], texts: Mapping[str, str]) -> str:
        import importlib

        made: Any = importlib.import_module(f"vllm_phases.report.{module}")
        return str(made.report(findings, texts))

    return report


FORMATS: Mapping[str, Report] = {
    "text": text,
    "json": as_json,
    "sarif": _later("sarif"),
    "github": _later("github"),
    "junit": _later("junit"),
}
