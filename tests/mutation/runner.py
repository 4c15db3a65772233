"""Runs the tests on every mutant: a plugin of pytest that takes the place of its loop over the tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import pytest

from tests.mutation.mutations import mutated_conditions, removed_body
from tests.mutation.targets import forget

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.mutation.mutations import Mutation
    from tests.mutation.targets import Target

SURVIVED, NOTICED, BROKEN = 0, 1, 2
"""Exit codes of a fork."""


@dataclass
class Mutant:
    """One change, and the status with which the fork that ran its tests ended."""

    target: Target
    mutation: Mutation
    body: bool
    status: int = SURVIVED

    @property
    def survived(self) -> bool:
        return self.status == SURVIVED

    @property
    def hung(self) -> bool:
        return os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGALRM

    def told(self) -> str:
        """Whose it is, where, and the line before and after."""
        file = os.path.relpath(self.target.file)
        before, after = self.mutation.shown(self.target.lines)
        return f"{self.target.owner}  {file}:{self.mutation.node.lineno}\n  - {before}\n  + {after}"


class Runner:
    """What pytest collects is run once to see that it passes and what it reaches, then on every mutant."""

    def __init__(self, targets: Sequence[Target], jobs: int, seconds: int) -> None:
        self.mutants = [mutant for target in targets for mutant in _mutants(target)]
        self.trouble = ""
        self._jobs, self._seconds = jobs, seconds
        self._forked = False
        self._modules = {target.module.__name__: target.module for target in targets}.values()
        self._reaching: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
        self._took: dict[pytest.Item, float] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.trouble = f"{report.nodeid} cannot be collected: {report.longreprtext}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """In a fork the first failure says all."""
        if report.failed and self._forked:
            os._exit(NOTICED)
        if report.failed:
            self.trouble = f"{report.nodeid} fails without any change:\n{report.longreprtext}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if not self.trouble:
            self._explore(session.items)
        if not self.trouble and os.waitpid(self._fork(None, session.items), 0)[1] != SURVIVED:
            self.trouble = "the tests fail in a fork though nothing was changed"
        if not self.trouble:
            self._try_all()
        return True

    def _explore(self, items: Sequence[pytest.Item]) -> None:
        """Run every test and note which lines of the rules it reaches, and how long it takes."""
        files = frozenset(mutant.target.file for mutant in self.mutants)
        for item in _shown(items, "tests"):
            for module in self._modules:
                forget(module)
            start = time.perf_counter()
            for line in _reached(item, files):
                self._reaching[line].append(item)
            self._took[item] = time.perf_counter() - start

    def _try_all(self) -> None:
        gc.collect()
        gc.freeze()  # or every fork would copy the pages of what it never touches
        running: dict[int, Mutant] = {}
        for mutant in _shown(self.mutants, "changes"):
            if tests := self._tests(mutant):
                if len(running) == self._jobs:
                    self._wait(running)
                running[self._fork(mutant, tests)] = mutant
        while running:
            self._wait(running)

    def _tests(self, mutant: Mutant) -> list[pytest.Item]:
        """The tests that reach the change: those named after its rule, then the quickest first."""
        lines = ((mutant.target.file, line) for line in mutant.mutation.lines)
        found = {item for line in lines for item in self._reaching[line]}
        own = f"[{mutant.target.rule_id}]"
        return sorted(found, key=lambda item: (not item.name.endswith(own), self._took[item]))

    def _wait(self, running: dict[int, Mutant]) -> None:
        pid, status = os.wait()
        mutant = running.pop(pid)
        mutant.status = status
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) not in (SURVIVED, NOTICED):
            self.trouble = f"cannot be tried:\n{mutant.told()}"

    def _fork(self, mutant: Mutant | None, tests: Sequence[pytest.Item]) -> int:
        """Run the tests in a child until one fails."""
        if pid := os.fork():
            return pid
        self._forked = True
        try:
            if mutant:
                mutant.target.install(mutant.mutation)
            for item in tests:
                signal.alarm(self._seconds)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            os._exit(SURVIVED)
        finally:
            os._exit(BROKEN)


def _mutants(target: Target) -> Iterator[Mutant]:
    """Bodies of rules only; conditions of helpers as well."""
    if target.rule_id and (removed := removed_body(target.tree)):
        yield Mutant(target, removed, body=True)
    for mutation in mutated_conditions(target.tree):
        yield Mutant(target, mutation, body=False)


def _reached(item: pytest.Item, files: frozenset[str]) -> set[tuple[str, int]]:
    """Run a test; the lines of the files that it executes."""
    lines = set()

    def step(frame: Any, event: str, argument: object) -> Any:
        if event == "line":
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        return step

    def call(frame: Any, event: str, argument: object) -> Any:
        return step if frame.f_code.co_filename in files else None

    sys.settrace(call)
    try:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    finally:
        sys.settrace(None)
    return lines


def _shown(things: Sequence[Any], label: str) -> Iterator[Any]:
    """With a bar on a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield from things
        return
    with click.progressbar(things, label=label, file=sys.stderr, show_pos=True) as bar:
        yield from bar
