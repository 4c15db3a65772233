"""Patterns: whatever the check lets through, Helm's engine and our validator's compile."""

from __future__ import annotations

import jsonschema_rs
import pytest
import re2  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st
from vllm_phases.schema.regex import problem


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$",
        r"^(sha256:[a-f0-9]{64})?$",
        r"^([^/].*)?$",
        r"^(?:a|b){1,1000}$",
        r"^[(){}+*?.\]\[\\^$-]$",
        r"^\(\?=literal\)\d+\s\w\b$",
    ],
)
def test_plain_patterns_pass(pattern: str) -> None:
    assert problem(pattern) == ""


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("^(?=a)", "looks around"),
        ("^(?!a)", "looks around"),
        ("(?<=a)b", "looks around"),
        ("(?<!a)b", "looks around"),
        (r"(a)\1", "refers back to a group"),
        ("(?P<x>a)(?P=x)", "has a group that is neither plain nor (?:…)"),
        ("(?>a)", "has a group that is neither plain nor (?:…)"),
        ("a++", "has a possessive quantifier"),
        ("a{2}+", "has a possessive quantifier"),
        ("a{,2}", "has a brace that is no repetition; escape it"),
        ("a]", "has a ] outside of a class; escape it"),
        ("a{1001}", "repeats more than 1000 times"),
        (r"a\Z", r"has an escape that not every engine knows (\Z)"),
        (r"\u0041", r"has an escape that not every engine knows (\u)"),
        ("[[:alpha:]]", "has a class with a bracket in it; escape it"),
        ("[]a]", "has a class with a bracket in it; escape it"),
        ("[a--b]", "is no valid expression (Possible set difference at position 2)"),
        ("(a", "is no valid expression (missing ), unterminated subpattern at position 0)"),
        ("[b-a]", "is no valid expression (bad character range b-a at position 1)"),
    ],
)
def test_what_re2_or_another_reader_refuses_is_named(pattern: str, why: str) -> None:
    assert problem(pattern) == why


PIECES = [
    *"ab^$.|()[]{}*+?-,\\/:=!<>P019 ",
    *("(?:", "(?=", "(?!", "(?<", "(?P<", "[^", "[:", "{1,", "{,", "&&"),
    *(r"\d", r"\1", r"\Z", r"\Q"),
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_every_engine_compiles_whatever_passes(pattern: str) -> None:
    if not problem(pattern):
        options = re2.Options()
        options.log_errors = False
        re2.compile(pattern, options)
        jsonschema_rs.Draft7Validator({"pattern": pattern})
