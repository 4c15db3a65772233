"""Results for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from vllm_phases.report.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from vllm_phases.check import Result
    from vllm_phases.finding import Finding

VERSION = 1
"""Of the format; keys may be added within a version, none is taken away or given another meaning."""


def report(results: Sequence[Result], chart: Path) -> str:
    """One JSON object: every set with its findings, and all findings once more in one list."""
    sets = [_set(result, chart) for result in results]
    findings = [finding for values_set in sets for finding in values_set["findings"]]
    return json.dumps({"version": VERSION, "sets": sets, "findings": findings}, indent=2, ensure_ascii=False)


def _set(result: Result, chart: Path) -> dict[str, Any]:
    return {
        "files": [str(file) for file in result.values_set.files],
        "chart": str(chart),
        "verdict": verdict(result),
        "engine_version": result.engine_version,
        "objects": result.objects,
        "engines": result.engines,
        "findings": [as_object(finding) for finding in result.findings],
    }


def as_object(finding: Finding) -> dict[str, Any]:
    """A finding with its place taken apart; file, line and column are null where it has none."""
    place = finding.location
    return {
        "rule_id": finding.rule_id,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "remediation": finding.remediation,
        "object": finding.object,
        "path": finding.path,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }
