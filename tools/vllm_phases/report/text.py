"""Results for people: each finding with the line that caused it, then one row for every set of values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vllm_phases.finding import Severity
from vllm_phases.report.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from vllm_phases.check import Result
    from vllm_phases.finding import Finding, Location

_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "blue"}
_SET = "--set "
_HEADER = ("VALUES", "VERDICT", "VLLM", "OBJECTS", "ENGINES", "FINDINGS")


def report(results: Sequence[Result]) -> str:
    """Findings by set, then the table; in colours, which `click.echo` drops where they do not belong."""
    found = findings(finding for result in results for finding in result.findings)
    return "\n\n".join(filter(None, (found, "\n".join(_table(results)))))


def findings(found: Iterable[Finding], texts: Mapping[str, str] | None = None) -> str:
    """Every finding, in words once, however many sets or engines have it.

    texts  what has no file to show lines from, such as standard input, by its name
    """
    lines = {name: tuple(text.splitlines()) for name, text in (texts or {}).items()}
    return "\n\n".join(dict.fromkeys("\n".join(_finding(finding, lines)) for finding in found))


def _finding(finding: Finding, texts: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """Place, message and rule; the line of the file with a caret; what to do."""
    place = finding.location
    frame = list(_frame(place, _lines(place.file, texts))) if place else []
    where = f"{_where(place)}: " if place else ""
    in_values = frame or (place and place.file.startswith(_SET))
    subject = f"{finding.object}: " if finding.object and not in_values else ""
    severity = click.style(finding.severity.value, fg=_COLORS[finding.severity], bold=True)
    rule = f"[{finding.rule_id} {finding.name}]"
    yield f"{click.style(where, bold=True)}{severity}: {subject}{finding.message} {rule}"
    yield from frame
    if finding.remediation:
        yield f"  {finding.remediation}"


def _where(place: Location) -> str:
    return place.file if place.file.startswith(_SET) else str(place)


def _frame(place: Location, lines: tuple[str, ...]) -> Iterator[str]:
    if place.line <= len(lines):
        number = str(place.line)
        yield f"  {number} | {lines[place.line - 1]}"
        yield f"  {' ' * len(number)} | {' ' * (place.column - 1)}{click.style('^', fg='green', bold=True)}"


def _lines(file: str, texts: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The lines of a file, read once; none for what is no file, such as --set or a template of a chart."""
    if file not in texts:
        try:
            texts[file] = tuple(Path(file).read_text(encoding="utf-8").splitlines())
        except (OSError, UnicodeDecodeError):
            texts[file] = ()
    return texts[file]


def _table(results: Sequence[Result]) -> Iterator[str]:
    rows = [_HEADER, *map(_row, results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _row(result: Result) -> tuple[str, ...]:
    counts = ((severity, result.count(severity)) for severity in Severity)
    findings = ", ".join(
        f"{count} {severity.value}{'s' * (count > 1)}" for severity, count in counts if count
    )
    version = result.engine_version or "-"
    return (
        result.values_set.name,
        verdict(result),
        version,
        str(result.objects),
        str(result.engines),
        findings or "none",
    )
