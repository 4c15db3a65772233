"""What holds of every packing, whatever the nodes, the pods and the policies."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from vllm_phases.packing import cluster, hami
from vllm_phases.packing.cards import Card, GpuNode, Use
from vllm_phases.packing.pods import Arrival, Workload
from vllm_phases.packing.wish import Ask, Wish

_POLICIES = ("binpack", "spread", "numa", "mutex", "topology-aware", "mutex,binpack", "numa,spread", "?")

asks = st.builds(
    Ask,
    cards=st.integers(1, 4),
    memory=st.sampled_from((0, 500, 20000, 39000)),
    percentage=st.sampled_from((10, 50, 100)),
    cores=st.sampled_from((0, 0, 30, 100)),
)
wishes = st.builds(
    Wish,
    first=st.lists(st.none() | asks, max_size=1).map(tuple),
    together=st.lists(asks, min_size=1, max_size=2).map(tuple),
    gpu_policy=st.sampled_from(_POLICIES),
    node_policy=st.sampled_from(("binpack", "spread")),
    numa_bind=st.booleans(),
)


@st.composite
def nodes(draw: st.DrawFn) -> tuple[GpuNode, ...]:
    """Up to three nodes with up to six cards."""
    found = []
    for number in range(draw(st.integers(1, 3))):
        count, slots = draw(st.integers(1, 6)), draw(st.sampled_from((1, 2, 10)))
        cards = tuple(
            Card(f"GPU-{index}", index, slots, 81559, 100, "NVIDIA H100", draw(st.integers(0, 1)))
            for index in range(count)
        )
        found.append(GpuNode(f"node-{number}", cards))
    return tuple(found)


def arrivals(wanted: list[Wish]) -> list[Arrival]:
    return [
        Arrival(f"pod-{number}", Workload("Pod", f"pod-{number}", "", wish, {}, {}))
        for number, wish in enumerate(wanted)
    ]


@settings(max_examples=150, deadline=None)
@given(nodes(), st.lists(wishes, min_size=1, max_size=12))
def test_every_pod_is_placed_or_pending_and_what_is_taken_is_the_sum(
    given_nodes: tuple[GpuNode, ...], wanted: list[Wish]
) -> None:
    packing = cluster.pack(given_nodes, arrivals(wanted))
    names = [one.pod.name for one in packing.placed] + [one.pod.name for one in packing.pending]
    assert sorted(names) == sorted(pod.name for pod in packing.arrivals)
    for node in given_nodes:
        total = list(node.unused)
        for one in packing.placed:
            if one.node == node.name:
                total = [old.plus(*new) for old, new in zip(total, one.added, strict=True)]
        assert tuple(total) == packing.uses[node.name]
    assert all(sum(one.reasons.values()) == len(given_nodes) for one in packing.pending)


@settings(max_examples=150, deadline=None)
@given(nodes(), st.lists(wishes, min_size=1, max_size=12))
def test_a_container_gets_as_many_different_cards_as_it_asks_for(
    given_nodes: tuple[GpuNode, ...], wanted: list[Wish]
) -> None:
    by_name = {node.name: node for node in given_nodes}
    for one in cluster.pack(given_nodes, arrivals(wanted)).placed:
        wish: Any = one.pod.workload.wish
        for ask, got in zip((*wish.first, *wish.together), one.containers, strict=True):
            cards = [grant.card for grant in got]
            assert len(set(cards)) == len(cards) == (ask.cards if ask else 0)
            if wish.numa_bind:
                assert len({by_name[one.node].cards[card].numa for card in cards}) <= 1


@settings(max_examples=150, deadline=None)
@given(nodes(), st.lists(wishes, min_size=1, max_size=12))
def test_no_card_is_taken_more_often_or_further_than_it_has(
    given_nodes: tuple[GpuNode, ...], wanted: list[Wish]
) -> None:
    """Init containers are left out: HAMi looks at each alone, and then counts the sum of the others."""
    packing = cluster.pack(
        given_nodes, arrivals([Wish((), wish.together, wish.gpu_policy) for wish in wanted])
    )
    for node in given_nodes:
        for card, use in zip(node.cards, packing.uses[node.name], strict=True):
            assert use.memory <= card.memory
            assert use.cores <= card.cores
            assert use.slots <= card.slots


@given(nodes(), wishes)
def test_the_same_question_has_the_same_answer(given_nodes: tuple[GpuNode, ...], wish: Wish) -> None:
    node = given_nodes[0]
    uses = tuple(Use(1, 1000, 0) for _ in node.cards)
    assert hami.place(node, uses, wish) == hami.place(node, uses, wish)
