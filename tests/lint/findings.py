"""What each rule says of its own examples, word for word, and of whose other examples it says something.

It is kept in findings.txt. `make docs` writes that file anew; its difference is for reading before it is committed.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vllm_phases.model import Release
from vllm_phases.rules import Context, all_rules
from vllm_phases.rules.registry import Elsewhere, Problem, subjects
from vllm_phases.yaml_document import dotted

from tests.lint.examples import KUBE_VERSION, documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.rules import Rule

EXECUTED = tuple(rule for rule in all_rules() if rule.scope is not Elsewhere)
FILE = Path(__file__).with_name("findings.txt")


@dataclass(frozen=True)
class Shown:
    """An example of a rule, read once for every rule; its name is such as "Bad 2"."""

    rule_id: str
    name: str
    context: Context


def told(rule: Rule) -> list[str]:
    """The section of a rule."""
    own: dict[str, None] = {}
    also: dict[str, list[str]] = defaultdict(list)
    for shown in _every_example():
        for problem in _problems(rule, shown.context):
            if shown.rule_id == rule.id:
                own[f"  {shown.name}: {_line(rule, problem)}"] = None
            elif shown.name not in also[shown.rule_id]:
                also[shown.rule_id].append(shown.name)
    others = (f"{rule_id} {', '.join(names)}" for rule_id, names in also.items() if names)
    return [rule.id, *own, *(f"  also in {other}" for other in others)]


@functools.cache
def approved() -> dict[str, list[str]]:
    """The sections of findings.txt by rule."""
    sections = (section.splitlines() for section in FILE.read_text(encoding="utf-8").split("\n\n"))
    return {lines[0]: lines for lines in sections}


@functools.cache
def _every_example() -> tuple[Shown, ...]:
    return tuple(
        Shown(rule.id, f"{title} {number}", Context(Release(documents(example)), KUBE_VERSION))
        for rule in EXECUTED
        for title in ("Bad", "Good")
        for number, example in enumerate(rule.examples(title), 1)
    )


def _problems(rule: Rule, context: Context) -> Iterator[Problem]:
    for subject in subjects(context.release, rule.scope):
        if rule.applies(subject):
            yield from rule.check(subject, context)


def _line(rule: Rule, problem: Problem) -> str:
    """Severity, place, message and remedy."""
    assert problem.location
    assert problem.node is not None
    severity = (problem.severity or rule.severity).value
    where = dotted(problem.node.path) or f"line {problem.location.line}"
    return f"{severity} at {where}: {problem.message} → {problem.remediation}"


if __name__ == "__main__":
    FILE.write_text("\n\n".join("\n".join(told(rule)) for rule in EXECUTED) + "\n", encoding="utf-8")
