"""Mutation test of the rules: `make mutate`.

Each change to a rule is tried in memory, in a fork of a process that has collected the tests, on the tests that
reach the changed line, until one of them fails. What no test notices has survived, and is listed.

Neither mutmut nor cosmic-ray fits: the first leaves decorated functions alone, and every rule is one; the second
changes files and starts the tests anew for each change.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

import click
import pytest

from tests.mutation.runner import Runner
from tests.mutation.targets import targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.mutation.runner import Mutant

TESTS = ("tests/lint", "tests/tool/test_rules.py")
# Random input notices a change on some days only; the rules of our own charts need Helm, whose threads no fork has.
LEFT_OUT = ("tests/lint/test_robustness.py::TestFuzzed", "tests/lint/test_model.py::TestOurCharts")
WANTED = 95.0


def main(arguments: Sequence[str]) -> int:
    """0 where enough rules whose body is removed are noticed, 1 where not, 2 where nothing can be said."""
    options = _parsed(arguments)
    selected = targets(options.package, options.rules)
    if not selected:
        click.echo(
            f"--rules {','.join(options.rules)} fits no rule and no module of {options.package}", err=True
        )
        return 2
    runner = Runner(selected, options.jobs, options.seconds)
    # Settings of the command line and of the terminal's reporter are those of `pytest`, but nothing is printed.
    quiet = ("-p", "no:terminal", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib")
    left_out = (f"--deselect={test}" for test in LEFT_OUT)
    code = pytest.main([*quiet, *left_out, *options.tests], plugins=[runner])
    if runner.trouble or code != pytest.ExitCode.OK:
        click.echo(runner.trouble or f"pytest ended with exit code {int(code)}", err=True)
        return 2
    return _report(runner.mutants)


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make mutate MUTATE_ARGS=…", description="Mutation test of the rules."
    )
    parser.add_argument(
        "--rules",
        type=lambda text: tuple(text.split(",")),
        default=("",),
        metavar="KV,ARG001,kv.py",
        help="only these: beginnings of rule ids, and modules for their helpers",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--seconds", type=int, default=20, help="until a test hangs; the slowest takes one")
    parser.add_argument("--package", default="vllm_phases.rules", help="where the rules are")
    parser.add_argument("tests", nargs="*", default=TESTS, help="which tests may notice a change")
    return parser.parse_args(arguments)


def _report(mutants: Sequence[Mutant]) -> int:
    """Both scores and the survivors; the bodies decide."""
    for mutant in mutants:
        if mutant.survived:
            click.echo(mutant.told())
    bodies = _score("bodies", [mutant for mutant in mutants if mutant.body])
    _score("conditions", [mutant for mutant in mutants if not mutant.body])
    return 0 if bodies >= WANTED else 1


def _score(title: str, mutants: Sequence[Mutant]) -> float:
    noticed = sum(not mutant.survived for mutant in mutants)
    score = 100 * noticed / len(mutants) if mutants else 100.0
    hung = sum(mutant.hung for mutant in mutants)
    click.echo(
        f"{title}: {noticed} of {len(mutants)} changes noticed ({score:.1f} %), {hung} of them by time"
    )
    return score


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
