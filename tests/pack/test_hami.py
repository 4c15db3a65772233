"""HAMi's rules one by one, on a node of four cards; test_recorded.py holds all of them against the real one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from vllm_phases.packing import hami
from vllm_phases.packing.cards import Card, GpuNode, MigProfile, Span, Use
from vllm_phases.packing.wish import Ask, Wish, quantity, wish

MEMORY = 81559
CARDS = tuple(
    Card(f"GPU-{index}", index, 10, MEMORY, 100, "NVIDIA H100 80GB HBM3", index // 2) for index in range(4)
)
NODE = GpuNode("node", CARDS)
HALF = Ask(1, 39000, 0, 0)
WHOLE = Ask(1, 0, 100, 100)


def wants(*asks: Ask, **given: Any) -> Wish:
    return Wish((), asks, **given)


def cards(node: GpuNode, wanted: Wish, uses: tuple[Use, ...] | None = None) -> list[int] | str:
    """The cards of all containers, in order, or the reason."""
    answer = hami.place(node, uses or node.unused, wanted)
    return answer if isinstance(answer, str) else [grant.card for got in answer.containers for grant in got]


def used(**by_card: Use) -> tuple[Use, ...]:
    return tuple(by_card.get(f"c{index}", Use()) for index in range(4))


@pytest.mark.parametrize(
    ("policy", "chosen"),
    [
        ("spread", [3]),
        ("binpack", [1]),
        ("numa", [3]),
        ("numa,binpack", [2]),
        ("binpack,numa", [1]),
        ("mutex", [3]),
        ("mutex,binpack", [3]),
        (" binpack", [3]),
        ("unheard-of", [3]),
    ],
)
def test_a_policy_chooses_the_card(policy: str, chosen: list[int]) -> None:
    taken = used(c1=Use(1, 39000, 0), c2=Use(1, 20000, 0))
    assert cards(NODE, wants(HALF, gpu_policy=policy), taken) == chosen


def test_two_halves_share_a_card_by_binpack_and_no_third_one_does() -> None:
    wanted = wants(HALF, gpu_policy="binpack")
    taken = NODE.unused
    for expected in (3, 3, 2):
        answer = hami.place(NODE, taken, wanted)
        assert isinstance(answer, hami.Fit)
        assert answer.containers[0][0].card == expected
        taken = tuple(old.plus(*new) for old, new in zip(taken, answer.added, strict=True))


@pytest.mark.parametrize(
    ("node", "wanted", "use", "reason"),
    [
        (replace(NODE, cards=tuple(replace(card, healthy=False) for card in CARDS)), wants(HALF), Use(), "CardNotHealth"),
        (replace(NODE, cordoned=frozenset(card.id for card in CARDS)), wants(HALF), Use(), "CardCordoned"),
        (NODE, wants(HALF, types="A100"), Use(), "CardTypeMismatch"),
        (NODE, wants(HALF, not_types="h100"), Use(), "CardTypeMismatch"),
        (NODE, wants(HALF, mode="mig"), Use(), "CardTypeMismatch"),
        (NODE, wants(HALF, mode="mps"), Use(), "CardTypeMismatch"),
        (NODE, wants(HALF, ids="GPU-9"), Use(), "CardUuidMismatch"),
        (NODE, wants(HALF, not_ids="GPU-0, GPU-1,GPU-2,GPU-3"), Use(), "CardUuidMismatch"),
        (NODE, wants(HALF), Use(10, 100, 0), "CardTimeSlicingExhausted"),
        (NODE, wants(HALF, gpu_policy="mutex"), Use(1, 100, 0), "ExclusiveDeviceAllocateConflict"),
        (NODE, wants(HALF), Use(1, 43000, 0), "CardInsufficientMemory"),
        (NODE, wants(Ask(1, 1000, 0, 60)), Use(1, 100, 50), "CardInsufficientCore"),
        (NODE, wants(Ask(1, 1000, 0, 100)), Use(1, 100, 0), "ExclusiveDeviceAllocateConflict"),
        (NODE, wants(HALF), Use(1, 100, 100), "CardComputeUnitsExhausted"),
    ],
)  # fmt: skip
def test_a_card_is_passed_over(node: GpuNode, wanted: Wish, use: Use, reason: str) -> None:
    assert cards(node, wanted, (use,) * 4) == f"4/4 {reason}"


def test_more_cards_than_the_node_has() -> None:
    assert cards(NODE, wants(Ask(5, 0, 10, 0))) == "NodeInsufficientDevice"


def test_reasons_are_sorted_and_counted() -> None:
    taken = used(c0=Use(1, 60000, 0), c1=Use(10, 0, 0), c2=Use(1, 60000, 0))
    assert cards(NODE, wants(Ask(2, 39000, 0, 0)), taken) == (
        "1/4 AllocatedCardsInsufficientRequest, 1/4 CardTimeSlicingExhausted, 2/4 CardInsufficientMemory"
    )


def test_numa_bind_wants_all_cards_of_a_container_on_one_numa_node() -> None:
    taken = used(c3=Use(1, 60000, 0))
    wanted = wants(Ask(2, 39000, 0, 0), numa_bind=True)
    assert cards(NODE, wanted, taken) == [1, 0]
    assert cards(NODE, wanted, used(c3=taken[3], c0=taken[3])) == (
        "1/4 AllocatedCardsInsufficientRequest, 1/4 NumaNotFit, 2/4 CardInsufficientMemory"
    )


def test_topology_takes_the_best_connected_cards_and_leaves_them_to_who_wants_several() -> None:
    near = {"GPU-0": {"GPU-1": 180}, "GPU-1": {"GPU-0": 180}}
    links = {card.id: {other.id: 10 for other in CARDS if other != card} for card in CARDS}
    links = {name: {**found, **near.get(name, {})} for name, found in links.items()}
    node = replace(NODE, links=links)
    assert sorted(cards(node, wants(Ask(2, 1000, 0, 0), gpu_policy="topology-aware"))) == [0, 1]
    assert cards(node, wants(Ask(1, 1000, 0, 0), gpu_policy="topology-aware")) == [3]


def test_more_cores_than_a_card_has_bypass_exclusive_use() -> None:
    node = replace(NODE, cards=tuple(replace(card, cores=200) for card in CARDS))
    assert cards(node, wants(WHOLE), (Use(1, 0, 0),) * 4) == [3]


def test_init_containers_run_one_by_one_and_count_with_their_largest() -> None:
    wanted = Wish((Ask(1, 50000, 0, 0), Ask(1, 60000, 0, 0)), (HALF, None, HALF), gpu_policy="binpack")
    answer = hami.place(NODE, NODE.unused, wanted)
    assert isinstance(answer, hami.Fit)
    assert [len(got) for got in answer.containers] == [1, 1, 1, 0, 1]
    assert answer.added[3] == Use(2, 78000, 0)


def test_a_mig_card_gives_its_smallest_profile_that_is_large_enough() -> None:
    profiles = (
        MigProfile("1g.10gb", 9856, 14, 1, tuple(Span(start, 1) for start in range(7))),
        MigProfile("3g.40gb", 40448, 42, 3, (Span(0, 4), Span(4, 4))),
    )
    node = GpuNode("node", (replace(CARDS[0], mode="mig", slots=7, profiles=profiles),))
    taken = node.unused
    for span in (Span(4, 4), Span(0, 4)):
        answer = hami.place(node, taken, wants(HALF))
        assert isinstance(answer, hami.Fit)
        assert answer.containers[0][0] == hami.Grant(0, 40448, 42, "3g.40gb", span)
        taken = tuple(old.plus(*new) for old, new in zip(taken, answer.added, strict=True))
    assert cards(node, wants(HALF), taken) == "1/1 CardInsufficientMemory"
    assert cards(node, wants(Ask(1, 600, 0, 0)), taken) == "1/1 CardMigTopologyInfeasible"


@pytest.mark.parametrize(
    ("text", "weights", "wrong"),
    [
        ("slot=1,core=2,memory=3", (1, 2, 3), False),
        (" slot = 0 , core=0, memory=1", (0, 0, 1), False),
        ("slot=1,core=1", (1, 1, 1), True),
        ("slot=0,core=0,memory=0", (1, 1, 1), True),
        ("slot=-1,core=0,memory=1", (1, 1, 1), True),
        ("slot=1,slot=1,memory=1", (1, 1, 1), True),
        ("disk=1,core=0,memory=1", (1, 1, 1), True),
    ],
)
def test_weights(text: str, weights: tuple[int, int, int], wrong: bool) -> None:
    found = wish((), (HALF,), {"hami.io/device-scoring-weights": text}, "spread", "binpack")
    assert (found.weights, bool(found.error)) == (weights, wrong)


@pytest.mark.parametrize(
    ("text", "number"),
    [("3", 3), ("40Gi", 40 * 2**30), ("5k", 5000), ("1.5", None), ("", None), ("-1", None)],
)
def test_quantities(text: str, number: int | None) -> None:
    assert quantity(text) == number
