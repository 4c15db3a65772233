"""Findings as JUnit XML: a suite for each file, a failed case for each finding."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from vllm_phases.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vllm_phases.finding import Finding

_NOT_XML = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def report(findings: Sequence[Finding], texts: Mapping[str, str]) -> str:
    """One document. Notes are no failures; a run without findings is one case that passes."""
    suites: dict[str, list[Finding]] = {}
    for finding in findings:
        suites.setdefault(finding.location.file if finding.location else "vllm-phases", []).append(finding)
    root = ElementTree.Element("testsuites", name="vllm-phases lint")
    for file, found in (suites or {"vllm-phases": []}).items():
        failures = sum(finding.severity is not Severity.NOTE for finding in found)
        attributes = {"name": _clean(file), "tests": str(len(found) or 1), "failures": str(failures)}
        suite = ElementTree.SubElement(root, "testsuite", attributes)
        for finding in found:
            _case(suite, finding)
        if not found:
            ElementTree.SubElement(suite, "testcase", name="no findings", classname="vllm-phases")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _case(suite: ElementTree.Element, finding: Finding) -> None:
    place = f":{finding.location.line}" if finding.location else ""
    name = _clean(f"{finding.rule_id} {finding.name} {finding.object}{place}")
    case = ElementTree.SubElement(suite, "testcase", name=name, classname=finding.rule_id)
    text = _clean(
        "\n".join(filter(None, (str(finding.location or ""), finding.message, finding.remediation)))
    )
    if finding.severity is Severity.NOTE:
        ElementTree.SubElement(case, "system-out").text = text
        return
    attributes = {"type": finding.severity.value, "message": _clean(finding.message)}
    ElementTree.SubElement(case, "failure", attributes).text = text


def _clean(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
