"""Every rule that says it has a fix: its bad examples are fixed, and nothing else comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from vllm_phases import fixing
from vllm_phases.finding import Severity
from vllm_phases.rules import Selection, all_rules
from vllm_phases.sources import yaml_reader

from tests.lint.examples import findings, judged, written

if TYPE_CHECKING:
    from vllm_phases.rules import Rule

FIXABLE = [rule for rule in all_rules() if rule.fix]
fixable_rules = pytest.mark.parametrize("rule", FIXABLE, ids=lambda rule: rule.id)


def repaired(text: str, name: str, selection: Selection, unsafe: bool) -> str:
    contents = {name: text.encode()}
    fixing.repair(contents, lambda: judged(contents[name].decode(), name, selection), unsafe)
    return contents[name].decode()


def rule_ids(text: str, name: str, errors: bool = False) -> set[str]:
    """The rules that find something, or an error. A misspelling may have hidden what is told of its flag."""
    return {found.rule_id for found in judged(text, name) if not errors or found.severity is Severity.ERROR}


@pytest.mark.parametrize("rule", [rule for rule in all_rules() if rule.name], ids=lambda rule: rule.id)
def test_what_is_written_is_judged_as_the_fragment(rule: Rule) -> None:
    for example in (*rule.examples("Bad"), *rule.examples("Good")):
        if example.language == "text":
            continue
        text, name = written(example)[::-1]
        only = Selection((rule.id,))
        assert [found.message for found in judged(text, name, only)] == [
            found.message for found in findings(example, only)
        ]


@fixable_rules
def test_bad_examples_are_fixed(rule: Rule) -> None:
    fixed = 0
    for example in rule.examples("Bad"):
        name, text = written(example)
        only = Selection((rule.id,))
        found = judged(text, name, only)
        unsafe = any(finding.fix and not finding.fix.safe for finding in found)
        after = repaired(text, name, only, unsafe)
        fixed += sum(finding.fix is not None for finding in found)
        left = [finding.message for finding in found if finding.fix is None]
        assert [finding.message for finding in judged(after, name, only)] == left, after
        new = rule_ids(after, name, errors=unsafe) - rule_ids(text, name)
        assert new <= {"LINT002"}, after
    assert fixed, "no bad example shows the fix"


@fixable_rules
def test_fixes_say_what_they_do(rule: Rule) -> None:
    assert rule.fix.endswith(".")
    assert rule.fix[0].islower()


def test_no_other_rule_fixes() -> None:
    for rule in all_rules():
        for example in rule.examples("Bad"):
            if not rule.fix and example.language != "text":
                name, text = written(example)
                assert not [found for found in judged(text, name, Selection((rule.id,))) if found.fix]


@fixable_rules
def test_fixed_examples_are_readable(rule: Rule) -> None:
    for example in rule.examples("Bad"):
        name, text = written(example)
        after = repaired(text, name, Selection((rule.id,)), unsafe=True)
        if example.language != "sh":
            yaml_reader.documents(after)
