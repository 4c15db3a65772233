"""Findings that the user has excused, each with a reason.

A comment, on the line of the finding or alone above it, excuses rules there:

    # vllm-phases: ignore[KV001, ARG003] the engine is patched

An annotation of an object, or of its pods, excuses a rule for all of the object:

    ignore.vllm-phases.dev/KV001: the engine is patched
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vllm_phases.finding import Finding, Location, Severity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from vllm_phases.model import Document, Node, Release

ANNOTATION = "ignore.vllm-phases.dev/"
_MARK = "vllm-phases: ignore"
_COMMENT = re.compile(r"#\s*vllm-phases: ignore(?:\[(?P<ids>[^\]]*)\])?(?P<reason>.*)")
_KEPT = ("LINT002", "LINT004")


@dataclass(frozen=True)
class Suppression:
    """One rule excused: on a line of a file, or for an object; the other of `line` and `object` is empty."""

    rule_id: str
    reason: str
    place: Location
    line: int = 0
    object: str = ""

    def covers(self, finding: Finding) -> bool:
        """Whether it excuses a finding."""
        if finding.rule_id != self.rule_id or not self.reason or finding.rule_id in _KEPT:
            return False
        if self.object:
            return finding.object == self.object
        places = filter(None, (finding.location, finding.start))
        return any((found.file, found.line) == (self.place.file, self.line) for found in places)


def in_comments(document: Document) -> Iterator[Suppression]:
    """The suppressions in the comments of a document."""
    if _MARK not in document.text:
        return
    lines = document.text.splitlines()
    for index, line in enumerate(lines):
        if match := _COMMENT.search(line):
            alone = not line[: match.start()].strip()
            target = index if not alone else _next_line(lines, index)
            place = Location(document.file, document.line + index, match.start() + 1)
            reason = match["reason"].strip(" \t:-")
            for rule_id in (match["ids"] or "").split(","):
                yield Suppression(rule_id.strip(), reason, place, document.line + target)


def in_annotations(release: Release) -> Iterator[Suppression]:
    """The suppressions in the annotations of objects and of their pods."""
    for found in release.objects:
        yield from _annotated(found.node.at("metadata"), found.id)
    for pod in release.pods:
        if pod.owner is not None and pod.metadata.path != (*pod.owner.node.path, "metadata"):
            yield from _annotated(pod.metadata, pod.owner.id)


def apply(
    findings: Iterable[Finding], suppressions: Sequence[Suppression], ran: Collection[str]
) -> Iterator[Finding]:
    """The findings that nothing excuses, and LINT002 for each suppression that is of no use.

    ran  the ids of the rules that were run: a suppression of another one may have its use
    """
    used: set[Suppression] = set()
    by_rule: dict[str, list[Suppression]] = {}
    for suppression in suppressions:
        by_rule.setdefault(suppression.rule_id, []).append(suppression)
    for finding in findings:
        covering = [found for found in by_rule.get(finding.rule_id, ()) if found.covers(finding)]
        used.update(covering)
        if not covering:
            yield finding
    for suppression in suppressions:
        if suppression not in used and "LINT002" in ran and (problem := _problem(suppression, ran)):
            yield _useless(suppression, *problem)


def _problem(suppression: Suppression, ran: Collection[str]) -> tuple[str, str] | None:
    """What is wrong with a suppression that excused nothing, and what to do."""
    from vllm_phases.rules import known_ids

    rule_id = suppression.rule_id
    if not rule_id:
        return "names no rule", "Write # vllm-phases: ignore[RULE] reason."
    if rule_id not in known_ids():
        near = difflib.get_close_matches(rule_id.upper(), sorted(known_ids()), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"{rule_id} is no rule{hint}", f"Write {near[0]}." if near else f"Remove {rule_id}."
    if rule_id in _KEPT:
        return f"{rule_id} cannot be suppressed", f"Remove {rule_id}."
    if not suppression.reason:
        return f"ignore {rule_id}: no reason is given, so it is not honoured", "Say after it why."
    return (f"{rule_id} finds nothing here", f"Remove {rule_id}.") if rule_id in ran else None


def _useless(suppression: Suppression, message: str, remediation: str) -> Finding:
    return Finding(
        "LINT002",
        "useless-suppression",
        Severity.WARNING,
        message,
        remediation,
        object=suppression.object,
        location=suppression.place,
    )


def _next_line(lines: Sequence[str], index: int) -> int:
    """The next line that is neither blank nor a comment."""
    for following in range(index + 1, len(lines)):
        text = lines[following].strip()
        if text and not text.startswith("#"):
            return following
    return index


def _annotated(metadata: Node, subject: str) -> Iterator[Suppression]:
    for key, node in metadata.entries("annotations"):
        if key.startswith(ANNOTATION):
            yield Suppression(
                key.removeprefix(ANNOTATION), node.text().strip(), node.location, object=subject
            )
