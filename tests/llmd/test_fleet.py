"""llm-d's own picker and sidecars spread requests over twenty pods, as the chart configures them.

LLMD_EPP and LLMD_SIDECAR name the two, built by hand from llm-d-router's sources. The engines are simulators.
"""

from __future__ import annotations

import socket
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from .conftest import running_fleet
from .fleet import Fleet, needs_llmd
from .network import NODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Render

pytestmark = needs_llmd("twenty pods behind llm-d's own picker and sidecars")

# 4 engines prefill, 16 decode. An answer takes a moment, so that there is load to spread.
VALUES = {
    "global": {"vllm": {"simulator": {"args": {"inter-token-latency": "10ms"}}}},
    "llmd": {
        "prefill": {"replicas": 4},
        "decode": {"replicas": 16},
        "endpointPicker": {"refreshMilliseconds": 1000},
    },
}
WORDS = 600  # more tokens than decode computes by itself, whoever counts them


def long(name: str) -> str:
    """A prompt whose start no other has."""
    return " ".join(f"{name}-{number}" for number in range(WORDS))


@pytest.fixture(scope="module")
def fleet(render: Render, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    objects = render("values/phase2-llmd.yaml", "values/overlays/sim.yaml", values=VALUES)
    with running_fleet(objects, tmp_path_factory) as fleet:
        yield fleet


def test_every_request_is_answered_and_every_decode_engine_works(fleet: Fleet) -> None:
    before = fleet.served("decode")
    answers = fleet.ask_all(f"Question {number}: how are you?" for number in range(300))
    assert Counter(answer.status for answer in answers) == {200: 300}
    engines = Counter(answer.engine for answer in answers)
    assert set(engines) == set(fleet.named("decode"))
    assert max(engines.values()) < 300 / 4, "no engine has more than its share by far"
    assert fleet.served("decode") == before + 300


def test_long_prompts_go_by_way_of_prefill_and_short_ones_do_not(fleet: Fleet) -> None:
    before = fleet.served("prefill")
    answers = fleet.ask_all(long(f"by-way-{number}") for number in range(40))
    assert Counter(answer.status for answer in answers) == {200: 40}
    assert {answer.engine for answer in answers} <= set(fleet.named("decode"))
    assert fleet.served("prefill") == before + 40
    fleet.ask_all(f"Short {number}" for number in range(40))
    assert fleet.served("prefill") == before + 40


def test_a_start_that_comes_again_stays_with_its_engine_and_needs_no_prefill(fleet: Fleet) -> None:
    before = fleet.served("prefill")
    for conversation in range(8):
        start = long(f"again-{conversation}")
        answers = [fleet.ask(f"{start} {turn}") for turn in range(5)]
        assert {answer.status for answer in answers} == {200}
        assert len({answer.engine for answer in answers}) == 1
    assert fleet.served("prefill") == before + 8


def test_a_forged_prefill_engine_is_never_called(fleet: Fleet) -> None:
    with socket.create_server((NODE, 8000)) as trap:
        trap.settimeout(1)
        forged = {"x-prefiller-host-port": f"{NODE}:8000", "x-gateway-destination-endpoint": f"{NODE}:8000"}
        assert [fleet.ask(f"Forged {number}", forged).status for number in range(10)] == [200] * 10
        with pytest.raises(TimeoutError):
            trap.accept()
