"""The linter: rules look at what documents deploy and point at the line that is wrong.

Every module beside this one that defines rules is found by itself; see registry for what a rule is.
"""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
from typing import TYPE_CHECKING

from vllm_phases.finding import Finding, Severity
from vllm_phases.model import Release
from vllm_phases.model.objects import object_id
from vllm_phases.rules.registry import Context, Problem, Rule, registered, subjects
from vllm_phases.rules.selection import Selection
from vllm_phases.yaml_document import dotted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vllm_phases.finding import Location

    Locate = Callable[[Problem, object], "tuple[str, Location | None]"]
    """The path and the place to show for a problem of a subject."""

EVERY_RULE = Selection()
_TRACEBACK = "VLLM_PHASES_TRACEBACK"


def all_rules() -> tuple[Rule, ...]:
    """Every rule, by id."""
    _import_rules()
    return registered()


def known_ids() -> frozenset[str]:
    """The ids of every finding that a selection may name."""
    return frozenset(rule.id for rule in all_rules())


def run(
    context: Context, selection: Selection = EVERY_RULE, locate: Locate | None = None
) -> Iterator[Finding]:
    """What the selected rules find. A rule that fails is told as LINT004, and the others go on."""
    for rule in all_rules():
        if rule.id in selection:
            yield from _findings(rule, context, locate or written)


def written(problem: Problem, subject: object) -> tuple[str, Location | None]:
    """The path in the document, and the place where it is written."""
    return ("" if problem.node is None else dotted(problem.node.path)), problem.location


def _findings(rule: Rule, context: Context, locate: Locate) -> Iterator[Finding]:
    """What a rule finds, each thing once, though several pairs may lead to it."""
    told: set[Finding] = set()
    try:
        for subject, around in _subjects(rule, context):
            for problem in rule.check(subject, around):
                finding = _finding(rule, problem, *locate(problem, subject))
                if finding not in told:
                    told.add(finding)
                    yield finding
    except Exception as error:
        if os.environ.get(_TRACEBACK):
            raise
        message = f"rule {rule.id} failed: {type(error).__name__}: {error}"
        fix = "This is a fault of vllm-phases, not of your files: please report it."
        yield Finding("LINT004", "rule-failed", Severity.ERROR, message, fix)


def _subjects(rule: Rule, context: Context) -> Iterator[tuple[object, Context]]:
    """What a rule looks at, each with the deployment around it."""
    for around in (context,) if rule.whole else context.deployments:
        for subject in subjects(around.release, rule.scope):
            if rule.applies(subject):
                yield subject, around


def _finding(rule: Rule, problem: Problem, path: str, location: Location | None) -> Finding:
    severity = problem.severity or rule.severity
    subject = "" if problem.node is None else object_id(problem.node)
    return Finding(
        rule.id, rule.name, severity, problem.message, problem.remediation, path, subject, location
    )


@functools.cache
def _import_rules() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


__all__ = [
    "EVERY_RULE",
    "Context",
    "Problem",
    "Release",
    "Rule",
    "Selection",
    "all_rules",
    "known_ids",
    "run",
]
