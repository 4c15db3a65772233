"""Findings of `vllm-phases lint` in each format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from vllm_phases.finding import Edit, Finding

    Report = Callable[[Sequence[Finding], Mapping[str, str]], str]


def text(findings: Sequence[Finding], texts: Mapping[str, str]) -> str:
    """For people: every finding with the line it is about, then the numbers."""
    from vllm_phases.report.text import findings as shown

    counts = {severity: sum(found.severity is severity for found in findings) for severity in Severity}
    parts = [f"{count} {severity.value}{'s' * (count != 1)}" for severity, count in counts.items() if count]
    numbers = "; ".join((", ".join(parts) or "no findings", *_fixable(findings)))
    return "\n\n".join(filter(None, (shown(findings, texts), numbers)))


def _fixable(findings: Sequence[Finding]) -> Iterator[str]:
    """How many of the findings `--fix` would put right."""
    safe = [finding.fix.safe for finding in findings if finding.fix]
    if any(safe):
        yield f"{sum(safe)} fixable with --fix"
    if not all(safe):
        yield f"{safe.count(False)} fixable with --fix --unsafe-fixes"


def as_json(findings: Sequence[Finding], texts: Mapping[str, str]) -> str:
    """For programs: a versioned envelope."""
    from vllm_phases.report.json import VERSION

    return json.dumps(
        {"version": VERSION, "findings": [_with_fix(finding) for finding in findings]},
        indent=2,
        ensure_ascii=False,
    )


def _with_fix(finding: Finding) -> dict[str, Any]:
    """A finding with its fix; null where it has none."""
    from vllm_phases.report.json import as_object

    fix = finding.fix and {"safe": finding.fix.safe, "edits": [_edit(edit) for edit in finding.fix.edits]}
    return {**as_object(finding), "fix": fix}


def _edit(edit: Edit) -> dict[str, Any]:
    return {
        "file": edit.start.file,
        "line": edit.start.line,
        "column": edit.start.column,
        "end_line": edit.end.line,
        "end_column": edit.end.column,
        "text": edit.new,
    }


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
