"""Deployments at the edge of what a rule finds, out of near_misses.yaml: what it says of them, or that it is silent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from vllm_phases.rules import Selection
from vllm_phases.rules.registry import Example

from tests.lint.examples import findings

LANGUAGES = ("yaml", "compose", "sh")
NEAR_MISSES: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("near_misses.yaml").read_text(encoding="utf-8")
)


def cases() -> list[Any]:
    """One for each value that takes the place of EACH."""
    return [
        pytest.param(rule_id, case, str(value), id=f"{case['why']} {value}".strip() + f"[{rule_id}]")
        for rule_id, listed in NEAR_MISSES.items()
        for case in listed
        for value in case.get("each", [""])
    ]


@pytest.mark.parametrize(("rule_id", "case", "value"), cases())
def test_near_miss(rule_id: str, case: dict[str, Any], value: str) -> None:
    (language,) = set(case) & set(LANGUAGES)
    found = findings(Example(language, case[language].replace("EACH", value)), Selection((rule_id,)))
    told = [f"{finding.severity.value}: {finding.message}" for finding in found]
    assert told == [line.replace("EACH", value) for line in case.get("says", [])]
