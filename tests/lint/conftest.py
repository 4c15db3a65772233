"""The score of the field cases, printed at the end of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

SCORE = pytest.StashKey[list[tuple[int, int]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SCORE] = []


@pytest.fixture
def record_score(pytestconfig: pytest.Config) -> Callable[[int, int], None]:
    """Count how many of the expected findings of a case were found."""

    def record(found: int, expected: int) -> None:
        pytestconfig.stash[SCORE].append((found, expected))

    return record


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    scores = config.stash.get(SCORE, [])
    if scores:
        found, expected = (sum(column) for column in zip(*scores, strict=True))
        whole = sum(found == expected for found, expected in scores)
        terminalreporter.write_line(
            f"field cases: {found} of {expected} findings, {whole} of {len(scores)} cases complete"
        )
