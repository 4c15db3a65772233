"""Findings as commands of GitHub Actions, which shows them at the lines of a pull request.

A step shows 10 of each kind (docs.github.com, workflow commands), so the worst come first.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vllm_phases.finding import Finding

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_SHOWN = 10


def report(findings: Sequence[Finding], texts: Mapping[str, str]) -> str:
    """A line for each finding, errors first, and one that counts them."""
    ordered = sorted(findings, key=lambda finding: list(Severity).index(finding.severity))
    return "\n".join((*map(_command, ordered), *_summary(findings)))


def _command(finding: Finding) -> str:
    place = finding.location
    properties = {"title": f"{finding.rule_id} {finding.name}"}
    if place:
        properties = {"file": place.file, "line": str(place.line), "col": str(place.column), **properties}
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    subject = f"{finding.object}: " if finding.object else ""
    text = "\n".join(filter(None, (f"{subject}{finding.message}", finding.remediation)))
    return f"::{_COMMANDS[finding.severity]} {listed}::{_escaped(text)}"


def _summary(findings: Sequence[Finding]) -> Iterator[str]:
    counts = Counter(finding.severity for finding in findings)
    listed = ", ".join(f"{counts[severity]} {severity.value}s" for severity in Severity if counts[severity])
    hidden = sum(max(0, count - _SHOWN) for count in counts.values())
    yield f"vllm-phases: {listed or 'no findings'}" + (
        f"; GitHub does not show {hidden} of them" if hidden else ""
    )


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
