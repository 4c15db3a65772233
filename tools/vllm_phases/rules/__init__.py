"""The linter: rules look at what documents deploy and point at the line that is wrong.

Every module beside this one that defines rules is found by itself; see registry for what a rule is.
"""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
from dataclasses import replace
from typing import TYPE_CHECKING

from vllm_phases.finding import Finding, Severity
from vllm_phases.model import Release
from vllm_phases.model.objects import object_id
from vllm_phases.rules.registry import Context, Problem, Rule, registered, subjects
from vllm_phases.rules.selection import Selection
from vllm_phases.yaml_document import dotted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vllm_phases.finding import Fix, Location
    from vllm_phases.sources.repair import Repair

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
    """What the selected rules find. A rule that fails is told as LINT004, and the others go on.

    What an API server has against a value (OBJ) is left out where PKG, which knows the remedy, tells it.

    locate  leads from what is read to another text, such as values; findings then have no fix
    """
    found = _found(context, selection, locate or written)
    told = {place for finding in found if finding.rule_id.startswith("PKG") for place in _places(finding)}
    kept = {
        finding: problem
        for finding, problem in found.items()
        if not (finding.rule_id.startswith("OBJ") and _place(finding, finding.path) in told)
    }
    if locate is not None:
        yield from kept
        return
    fixes = _fixes([problem.repair if problem else None for problem in kept.values()])
    for finding, fix in zip(kept, fixes, strict=True):
        yield replace(finding, fix=fix) if fix else finding


def _found(context: Context, selection: Selection, locate: Locate) -> dict[Finding, Problem | None]:
    """What is found, each thing once, though several pairs may lead to it.

    One deployment after the other, so that what rules share about it is worked out once.
    """
    chosen = [rule for rule in all_rules() if rule.id in selection]
    turns = [(rule, context) for rule in chosen if rule.whole]
    turns += [(rule, around) for around in context.deployments for rule in chosen if not rule.whole]
    found: dict[Finding, Problem | None] = {}
    for rule, around in turns:
        for finding, problem in _findings(rule, around, locate):
            found.setdefault(finding, problem)
    return found


def _places(finding: Finding) -> Iterator[tuple[str, str, str]]:
    """What a finding is about, and what holds that."""
    yield _place(finding, finding.path)
    yield _place(finding, finding.path.rpartition(".")[0])


def _place(finding: Finding, path: str) -> tuple[str, str, str]:
    """A path of the object that a finding is about."""
    return finding.location.file if finding.location else "", finding.object, path


def written(problem: Problem, subject: object) -> tuple[str, Location | None]:
    """The path in the document, and the place where it is written."""
    return ("" if problem.node is None else dotted(problem.node.path)), problem.location


def _findings(rule: Rule, context: Context, locate: Locate) -> Iterator[tuple[Finding, Problem | None]]:
    """What a rule finds in one deployment."""
    try:
        found = subjects(context.release, rule.scope)
        for subject in filter(rule.applies, found) if rule.versioned else found:
            for problem in rule.check(subject, context):
                yield _finding(rule, problem, *locate(problem, subject)), problem
    except Exception as error:
        if os.environ.get(_TRACEBACK):
            raise
        message = f"rule {rule.id} failed: {type(error).__name__}: {error}"
        fix = "This is a fault of vllm-phases, not of your files: please report it."
        yield Finding("LINT004", "rule-failed", Severity.ERROR, message, fix), None


def _fixes(repairs: Sequence[Repair | None]) -> Sequence[Fix | None]:
    """What puts each problem right in its file; None where that is not certain."""
    if not any(repairs):
        return [None] * len(repairs)
    from vllm_phases.sources.repair import fixes

    return fixes(repairs)


def _finding(rule: Rule, problem: Problem, path: str, location: Location | None) -> Finding:
    severity = problem.severity or rule.severity
    subject = "" if problem.node is None else object_id(problem.node)
    message, fix, start = problem.message, problem.remediation, problem.start
    return Finding(rule.id, rule.name, severity, message, fix, path, subject, location, start)


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
