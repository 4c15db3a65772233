"""Every rule documents itself: its docstring is complete, and its examples are what they say."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import TYPE_CHECKING

import pytest
from vllm_phases.rules import Selection, all_rules
from vllm_phases.rules.registry import SECTIONS

from tests.lint.examples import findings
from tests.lint.findings import EXECUTED, approved, told

if TYPE_CHECKING:
    from vllm_phases.rules import Rule

RULES = all_rules()
MAX_LINES = 25


every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
executed_rules = pytest.mark.parametrize("rule", EXECUTED, ids=lambda rule: rule.id)


@executed_rules
def test_bad_examples_are_found(rule: Rule) -> None:
    for example in rule.examples("Bad"):
        found = findings(example, Selection((rule.id,)))
        assert {finding.rule_id for finding in found} == {rule.id}, example.text


@executed_rules
def test_good_examples_are_not(rule: Rule) -> None:
    for example in rule.examples("Good"):
        assert findings(example, Selection((rule.id,))) == [], example.text


@executed_rules
def test_findings_are_those_of_findings_txt(rule: Rule) -> None:
    """On the examples of all rules: what it says of its own, and that it says nothing more of others."""
    assert told(rule) == approved()[rule.id], "is it meant? Then run `make docs`"


def test_findings_txt_has_no_other_rules() -> None:
    assert list(approved()) == [rule.id for rule in EXECUTED]


@every_rule
def test_documentation_is_complete(rule: Rule) -> None:
    assert tuple(rule.sections) == SECTIONS, f"sections in this order: {', '.join(SECTIONS)}"
    assert rule.summary.endswith("."), "a summary is one sentence"
    assert all(rule.sections[title].strip() for title in SECTIONS)
    assert rule.examples("Bad"), "Bad has a fenced yaml, compose or sh block"
    assert rule.examples("Good"), "Good has a fenced yaml, compose or sh block"
    assert rule.sections["References"].strip().startswith("- "), "References is a list"


@every_rule
def test_function_is_short(rule: Rule) -> None:
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(rule.check))).body
    assert isinstance(function, ast.FunctionDef)
    first, last = function.body[1], function.body[-1]
    assert (last.end_lineno or 0) - first.lineno < MAX_LINES


def test_names_are_unique() -> None:
    names = [rule.name for rule in RULES]
    assert sorted(set(names)) == sorted(names)


@every_rule
def test_names_are_words_with_dashes(rule: Rule) -> None:
    assert rule.name == rule.name.lower()
    assert rule.name.replace("-", "").isalnum()


@executed_rules
def test_findings_say_what_to_do(rule: Rule) -> None:
    """Every finding has a place, a message without a full stop and a remedy with one."""
    for example in rule.examples("Bad"):
        for finding in findings(example, Selection((rule.id,))):
            assert finding.location is not None
            assert not finding.message.endswith(".")
            assert finding.remediation.endswith((".", "?"))
