"""The simulator beside the real scheduler, on scenarios that are in no recording.

HAMI_SCHEDULER names HAMi's scheduler, built by hand from its sources; HAMI_SEED makes other scenarios.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from .live import come, decide, running
from .replay import agree, replay
from .scenarios import Scenario, generate

COUNT = 60
CARD = ["GPU-0", 0, 10, 81559, 100, "NVIDIA H100 80GB HBM3", 0, "hami-core", True]
MOST_OF_IT = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 60000}

pytestmark = pytest.mark.cluster


@pytest.fixture
def hami() -> Path:
    """HAMi's scheduler."""
    binary = os.environ.get("HAMI_SCHEDULER")
    if not binary:
        pytest.skip("NOT TESTED: packing beside the real scheduler; set HAMI_SCHEDULER to HAMi's scheduler")
    return Path(binary).resolve()


def test_the_real_scheduler_decides_the_same(hami: Path, tmp_path: Path) -> None:
    scenarios = generate(int(os.environ.get("HAMI_SEED", "7")), COUNT)
    different = []
    for scenario, decisions in zip(scenarios, decide(hami, tmp_path, scenarios), strict=True):
        found, _ = replay(scenario, decisions)
        different += [
            (scenario.name, number, mine, real)
            for number, (mine, real) in enumerate(zip(found, decisions, strict=True))
            if not agree(mine, real)
        ]
    assert different == []


def test_hami_forgets_a_pod_whose_init_containers_are_done(hami: Path, tmp_path: Path) -> None:
    """Why `pack` warns of init containers without a GPU; once this fails, HAMi is mended."""
    pods = [{"annotations": {}, "init": [{}] * inits, "containers": [MOST_OF_IT]} for inits in (1, 0)]
    scenario = Scenario("init", [{"name": "node", "cards": [CARD]}], pods)
    decisions: list[list[dict[str, Any]]] = [[]]
    with running(hami, tmp_path, scenario.node_objects()) as plane:
        come(plane, [scenario], 0, decisions)
        done = {"name": "init-0", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
        status = {
            "initContainerStatuses": [
                {**done, "image": "none", "imageID": "none", "ready": True, "restartCount": 0}
            ]
        }
        patch = json.dumps({"status": status})
        plane.kubectl("patch", "pod", "init-p0", "--subresource=status", "--type=merge", "-p", patch)
        time.sleep(5)  # HAMi hears of it by its watch, and tells nobody
        come(plane, [scenario], 1, decisions)
    assert decisions == [[{"node": "node", "cards": "GPU-0,NVIDIA,60000,0:;"}] * 2]
