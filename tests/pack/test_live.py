"""The simulator beside the real scheduler, on scenarios that are in no recording.

HAMI_SCHEDULER names HAMi's scheduler, built by hand from its sources; HAMI_SEED makes other scenarios.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .live import decide
from .replay import agree, replay
from .scenarios import generate

COUNT = 60


@pytest.mark.cluster
def test_the_real_scheduler_decides_the_same(tmp_path: Path) -> None:
    binary = os.environ.get("HAMI_SCHEDULER")
    if not binary:
        pytest.skip("NOT TESTED: packing beside the real scheduler; set HAMI_SCHEDULER to HAMi's scheduler")
    scenarios = generate(int(os.environ.get("HAMI_SEED", "7")), COUNT)
    different = []
    for scenario, decisions in zip(
        scenarios, decide(Path(binary).resolve(), tmp_path, scenarios), strict=True
    ):
        found, _ = replay(scenario, decisions)
        different += [
            (scenario.name, number, mine, real)
            for number, (mine, real) in enumerate(zip(found, decisions, strict=True))
            if not agree(mine, real)
        ]
    assert different == []
