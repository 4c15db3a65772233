"""Findings as SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/), for GitHub's code scanning."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from vllm_phases import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vllm_phases.finding import Edit, Finding, Fix, Location
    from vllm_phases.rules import Rule

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_FINGERPRINT = "vllmPhases/v1"


def report(findings: Sequence[Finding], texts: Mapping[str, str]) -> str:
    """One run, with the rules that were broken and a result for each finding."""
    from vllm_phases.rules import all_rules

    broken = {finding.rule_id for finding in findings}
    rules = [rule for rule in all_rules() if rule.id in broken]
    driver = {
        "name": "vllm-phases",
        "version": __version__,
        "rules": [_rule(rule) for rule in rules],
    }
    index = {rule.id: position for position, rule in enumerate(rules)}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": list(_results(findings, index)),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def fingerprints(findings: Sequence[Finding]) -> list[str]:
    """A name for each finding that stays when lines move: rule, file, object, path and a running number."""
    seen: Counter[str] = Counter()
    names = []
    for finding in findings:
        file = finding.location.file if finding.location else ""
        identity = "\0".join((finding.rule_id, file, finding.object, finding.path))
        seen[identity] += 1
        names.append(hashlib.sha256(f"{identity}\0{seen[identity]}".encode()).hexdigest()[:32])
    return names


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": f"{rule.summary} {' '.join(rule.sections['Why'].split())}"},
        "help": {"text": rule.markdown, "markdown": rule.markdown},
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {"tags": [rule.topic]},
    }


def _results(findings: Sequence[Finding], index: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for finding, fingerprint in zip(findings, fingerprints(findings), strict=True):
        subject = f"{finding.object}: " if finding.object else ""
        text = f"{subject}{finding.message}." + (f" {finding.remediation}" if finding.remediation else "")
        result: dict[str, Any] = {
            "ruleId": finding.rule_id,
            "level": finding.severity.value,
            "message": {"text": text},
            "locations": [_location(finding.location)] if finding.location else [],
            "partialFingerprints": {_FINGERPRINT: fingerprint},
        }
        if finding.fix and finding.fix.safe:
            result["fixes"] = [_fix(finding, finding.fix)]
        if finding.rule_id in index:
            result["ruleIndex"] = index[finding.rule_id]
        yield result


def _fix(finding: Finding, fix: Fix) -> dict[str, Any]:
    """What `lint --fix` would do, file by file."""
    files: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        replacement = {"deletedRegion": _region(edit), "insertedContent": {"text": edit.new}}
        files.setdefault(edit.start.file, []).append(replacement)
    changes = [
        {"artifactLocation": _artifact(file), "replacements": replacements}
        for file, replacements in files.items()
    ]
    return {"description": {"text": finding.remediation}, "artifactChanges": changes}


def _region(edit: Edit) -> dict[str, int]:
    return {
        "startLine": edit.start.line,
        "startColumn": edit.start.column,
        "endLine": edit.end.line,
        "endColumn": edit.end.column,
    }


def _location(place: Location) -> dict[str, Any]:
    region = {"startLine": place.line, "startColumn": place.column}
    return {"physicalLocation": {"artifactLocation": _artifact(place.file), "region": region}}


def _artifact(file: str) -> dict[str, str]:
    """A file relative to the current folder, where it stands below that; standard input as "stdin"."""
    if file == "<stdin>":
        return {"uri": "stdin"}
    path = Path(file)
    if path.is_absolute():
        try:
            path = path.relative_to(Path.cwd())
        except ValueError:
            return {"uri": path.as_uri()}
    return {"uri": quote(path.as_posix()), "uriBaseId": "%SRCROOT%"}
