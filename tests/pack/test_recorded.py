"""The simulator decides what the real scheduler decided: every pod of every recorded scenario.

Where several nodes are equally good, the real one takes one by chance: it scores the nodes side by side, and
sorts them in the order in which they were ready. There the recorded node must be one of the equally good ones
that the simulator finds, and it goes on from that node. Everything else is the same each time: the order of
cards, where Go's sort keeps up to twelve equal ones as they were, and so the scenarios have at most eight.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

import pytest
from vllm_phases import catalogue

from . import record
from .replay import agree, replay
from .scenarios import POLICIES, generate

if TYPE_CHECKING:
    from .live import Decisions
    from .scenarios import Scenario


@functools.cache
def recorded() -> tuple[tuple[Scenario, Decisions], ...]:
    return tuple(record.recorded())


def test_every_recorded_decision() -> None:
    different = []
    for scenario, decisions in recorded():
        found, _ = replay(scenario, decisions)
        different += [
            (scenario.name, number, mine, real)
            for number, (mine, real) in enumerate(zip(found, decisions, strict=True))
            if not agree(mine, real)
        ]
    assert different == []


def test_the_recording_is_of_these_scenarios() -> None:
    assert [scenario for scenario, _ in recorded()] == generate(record.SEED, len(recorded()))
    assert len(recorded()) >= 200


@pytest.mark.parametrize("policy", POLICIES)
def test_the_recording_has_the_policy(policy: str) -> None:
    placed = [
        decision
        for scenario, decisions in recorded()
        for pod, decision in zip(scenario.pods, decisions, strict=True)
        if pod["annotations"].get("hami.io/gpu-scheduler-policy") == policy and "node" in decision
    ]
    assert len(placed) >= 10


def test_the_recording_has_every_refusal() -> None:
    reasons = {
        re.sub(r"^\d+/\d+ ", "", part)
        for _, decisions in recorded()
        for decision in decisions
        for reason in decision.get("refused", {}).values()
        for part in reason.split(", ")
    }
    known = set(catalogue.facts("hami_scheduling")["refusals"]["reasons"]) - {"node unregistered"}
    assert reasons == known


def test_a_wrong_decision_is_noticed() -> None:
    scenario, decisions = next(pair for pair in recorded() if "node" in pair[1][0])
    found, _ = replay(scenario, decisions)
    assert not agree(found[0], {**decisions[0], "cards": "GPU-other,NVIDIA,1,0:;"})
