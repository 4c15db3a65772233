"""Deployments that went wrong in the field, and some that did not, judged as files on disk.

The cases are no part of the repository. They are looked for in the folder that VLLM_PHASES_CASES names, and
else in shared/cases beside the repository; without them these tests are skipped, which pytest reports.
cases.yaml says which rules answer to each `expect` of a case; the score is printed at the end of the run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from vllm_phases import rules, sources
from vllm_phases.finding import Severity
from vllm_phases.model import Release

if TYPE_CHECKING:
    from vllm_phases.finding import Finding

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("VLLM_PHASES_CASES", HERE.parents[2] / "shared" / "cases"))
RULES: dict[str, list[str]] = yaml.safe_load((HERE / "cases.yaml").read_text())
LEVELS = [Severity.NOTE, Severity.WARNING, Severity.ERROR]
KUBE_VERSION = "1.33.0"


@dataclass(frozen=True)
class Case:
    name: str
    expected: list[dict[str, Any]]
    findings: list[Finding]


def names() -> list[str]:
    return sorted(folder.name for folder in FOLDER.glob("*/") if (folder / "case.yaml").is_file())


def case(name: str) -> Case:
    described = yaml.safe_load((FOLDER / name / "case.yaml").read_text(encoding="utf-8"))
    inputs = [str(path) for path in sorted((FOLDER / name).iterdir()) if path.name != "case.yaml"]
    read = sources.read(inputs)
    found = rules.run(rules.Context(Release(read.documents), KUBE_VERSION))
    return Case(name, described["expect"], [*read.findings, *found])


def answers(wanted: str, expected: dict[str, Any], found: list[Finding]) -> bool:
    """Whether a rule, and an object where one is named, was reported at the expected level or above."""
    rule_id, _, subject = wanted.partition(" ")
    least = LEVELS.index(Severity(expected["severity"]))
    return any(
        finding.rule_id == rule_id
        and finding.object.startswith(subject)
        and LEVELS.index(finding.severity) >= least
        for finding in found
    )


cases = pytest.mark.parametrize(
    "name",
    [pytest.param(name, id=name) for name in names()]
    or [pytest.param("", marks=pytest.mark.skip(reason=f"no cases in {FOLDER}; set VLLM_PHASES_CASES"))],
)


@cases
def test_gives_what_it_must(name: str, record_score: Any) -> None:
    found = case(name)
    listed = RULES.get(name, [])
    met = [answers(*pair, found.findings) for pair in zip(listed, found.expected, strict=False)]
    record_score(sum(met), len(found.expected))
    assert all(met), f"cases.yaml promises {listed}, found {[finding.rule_id for finding in found.findings]}"
    if len(listed) < len(found.expected):
        missing = [expected["what"] for expected in found.expected[len(listed) :]]
        pytest.xfail(f"not yet found: {'; '.join(missing)}")


@cases
def test_gives_no_error_where_nothing_is_wrong(name: str) -> None:
    found = case(name)
    assert not [finding for finding in found.findings if finding.rule_id.startswith("LINT")]
    if not found.expected:
        assert [finding for finding in found.findings if finding.severity is Severity.ERROR] == []
