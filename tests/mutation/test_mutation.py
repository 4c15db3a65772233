"""The mutation test itself: what it changes, and that it tells a tested rule from an untested one."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.mutations import mutated_conditions, removed_body

ROOT = Path(__file__).parents[2]
RULES = '''\
from functools import lru_cache
from vllm_phases.finding import Severity
from vllm_phases.rules.registry import rule

@rule("TST001", "covered", Severity.ERROR, scope=int)
def covered(subject, context):
    """Doc."""
    if large(subject):
        yield subject

@rule("TST002", "uncovered", Severity.ERROR, scope=int)
def uncovered(subject, context):
    """Doc."""
    if subject == 2:
        yield subject

@rule("TST003", "told-elsewhere", Severity.ERROR, scope=int)
def told_elsewhere(subject, context):
    """Doc."""
    return iter(())

@lru_cache
def large(number):
    return number > 3

def lowered(number):
    while number != 3:
        number -= 1
    return number
'''
TESTS = """\
from planted.rules import covered

def test_finds():
    assert list(covered(5, None)) == [5]

def test_finds_not():
    assert list(covered(3, None)) == []
"""


def mutated(source: str) -> list[str]:
    """The line of a function that each change leaves."""
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    return [mutation.shown(source.splitlines())[1] for mutation in mutated_conditions(function)]


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("if a: f()", ["if not a: f()"]),
        ("if not a: f()", ["if a: f()"]),
        ("while a: f()", ["while not a: f()"]),
        ("return b if a else c", ["return b if not a else c"]),
        ("return [a for a in b if a]", ["return [a for a in b if not a]"]),
        ("return a and b or c", ["return (a and b) and c", "return a or b or c"]),
        ("return a is None", ["return a is not None"]),
        ("return a < b", ["return a <= b"]),
        ("return a in b != c", ["return a not in b != c", "return a in b == c"]),
        ("if a == b: f()", ["if a != b: f()"]),
        ("return a >= 3", ["return a > 3", "return a >= 4"]),
        ("return a('x') or ''", ["return a('x') and ''", "return a('x~') or ''"]),
        ("return a == (True, b['key'], f'{b}text')", ["return a != (True, b['key'], f'{b}text')", "return a == (False, b['key'], f'{b}text')"]),
        ("return f('x', 3)", []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_every_condition_is_changed_once(line: str, changes: list[str]) -> None:
    assert mutated(f"def f():\n    {line}") == changes


def test_a_guard_is_dropped() -> None:
    assert mutated("def f():\n    if a: return\n    g()") == ["if not a: return", "pass"]


@pytest.mark.parametrize(
    ("body", "left"),
    [("if a: yield a\n  yield b", "return"), ("return g(a)", "return iter(())"), ("return iter(())", None)],
)
def test_a_body_is_removed(body: str, left: str | None) -> None:
    source = f'def f():\n  """Doc."""\n  {body}'
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    mutation = removed_body(function)
    assert (mutation and mutation.shown(source.splitlines())[1]) == left


class TestRun:
    """As a process: it forks."""

    def run(self, folder: Path, *arguments: str, tests: str = TESTS) -> tuple[int, str, str]:
        (folder / "planted").mkdir()
        (folder / "planted" / "__init__.py").write_text("")
        (folder / "planted" / "rules.py").write_text(RULES)
        (folder / "test_planted.py").write_text(tests)
        path = os.pathsep.join((str(folder), str(ROOT / "tools"), *sys.path))
        command = [sys.executable, "-m", "tests.mutation", "--package=planted", *arguments, str(folder)]
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_lists_what_no_test_notices(self, tmp_path: Path) -> None:
        code, out, err = self.run(tmp_path, "--rules=TST,rules.py:large")
        file = os.path.relpath(tmp_path / "planted" / "rules.py", ROOT)
        assert out == (
            f"TST002  {file}:14\n  - if subject == 2:\n  + return\n"
            f"TST002  {file}:14\n  - if subject == 2:\n  + if subject != 2:\n"
            f"TST002  {file}:14\n  - if subject == 2:\n  + if subject == 3:\n"
            f"rules.py:large  {file}:24\n  - return number > 3\n  + return number > 4\n"
            "bodies: 1 of 2 changes noticed (50.0 %), 0 of them by time\n"
            "conditions: 2 of 5 changes noticed (40.0 %), 0 of them by time\n"
        )
        assert (code, err) == (1, "")

    def test_is_content_with_tested_bodies(self, tmp_path: Path) -> None:
        code, out, _ = self.run(tmp_path, "--rules=TST001")
        assert code == 0
        assert "bodies: 1 of 1 changes noticed (100.0 %)" in out

    def test_counts_a_change_that_never_ends(self, tmp_path: Path) -> None:
        tests = "from planted.rules import lowered\ndef test(): assert lowered(3) == 3\n"
        code, out, _ = self.run(tmp_path, "--rules=rules.py:lowered", "--seconds=1", tests=tests)
        assert code == 0
        assert "conditions: 2 of 2 changes noticed (100.0 %), 1 of them by time" in out

    def test_says_nothing_of_tests_that_fail_anyway(self, tmp_path: Path) -> None:
        code, out, err = self.run(tmp_path, tests=TESTS + "    assert not 'this'\n")
        assert (code, out) == (2, "")
        assert "test_planted.py::test_finds_not fails without any change:" in err

    def test_refuses_a_selection_of_nothing(self, tmp_path: Path) -> None:
        assert self.run(tmp_path, "--rules=TST9") == (
            2,
            "",
            "--rules TST9 fits no rule and no module of planted\n",
        )
