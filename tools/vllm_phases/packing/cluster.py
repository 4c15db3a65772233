"""Pods on nodes, one after the other: HAMi's, and those that the default scheduler counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vllm_phases.packing import hami

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from vllm_phases.packing.cards import GpuNode, Uses
    from vllm_phases.packing.hami import Fit, Grant
    from vllm_phases.packing.pods import Arrival, Workload
    from vllm_phases.packing.wish import Wish

UNREGISTERED = "node unregistered"
SELECTOR = "node(s) didn't match Pod's node affinity/selector"
CORDONED = "node(s) were unschedulable"


@dataclass(frozen=True)
class Placed:
    """A pod on a node.

    containers, added  by HAMi: the cards of each container, and what the pod takes of each card of the node
    counts             by the default scheduler: the resources that it counts
    """

    pod: Arrival
    node: str
    containers: tuple[tuple[Grant, ...], ...] = ()
    added: Uses = ()
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Pending:
    """A pod that no node takes: for each reason, in the scheduler's words, on how many nodes.

    error  why no node was even asked, "" otherwise
    """

    pod: Arrival
    reasons: Mapping[str, int]
    error: str = ""


@dataclass(frozen=True)
class Packing:
    """What came of it: the pods as they came, what is taken of each node in the end, and what ran before."""

    nodes: tuple[GpuNode, ...]
    arrivals: tuple[Arrival, ...]
    placed: tuple[Placed, ...]
    pending: tuple[Pending, ...]
    uses: Mapping[str, Uses]
    running: tuple[Placed, ...] = ()


def pack(
    nodes: Iterable[GpuNode],
    pods: Iterable[Arrival],
    running: Iterable[Placed] = (),
    choose: Callable[[Arrival, Sequence[str]], str] = lambda pod, names: names[0],
) -> Packing:
    """Place pods in their order, beside those that run already.

    Of equally good nodes `choose` takes one, by default the first.
    """
    state, pods, running = _Cluster(tuple(nodes), choose), tuple(pods), tuple(running)
    for one in running:
        state.take(one)
    placed: list[Placed] = []
    pending: list[Pending] = []
    for pod in pods:
        outcome = state.place(pod)
        if isinstance(outcome, Placed):
            placed.append(outcome)
        else:
            pending.append(outcome)
    return Packing(state.nodes, pods, tuple(placed), tuple(pending), state.uses, running)


class _Cluster:
    """Nodes and what is taken of them; an answer of a node is kept until something is placed there."""

    def __init__(self, nodes: tuple[GpuNode, ...], choose: Callable[[Arrival, Sequence[str]], str]) -> None:
        self.nodes, self.choose = nodes, choose
        self.uses: dict[str, Uses] = {node.name: node.unused for node in nodes}
        self.counted: dict[str, Counter[str]] = {node.name: Counter() for node in nodes}
        self.guests: Counter[str] = Counter()
        self.answers: dict[Wish, dict[str, Fit | str]] = {}

    def place(self, pod: Arrival) -> Placed | Pending:
        """Place one pod."""
        workload = pod.workload
        if workload.wish and workload.wish.error:
            return Pending(pod, {}, workload.wish.error)
        refusals: Counter[str] = Counter()
        open_nodes = [node for node in self.nodes if self._open(node, workload, refusals)]
        if workload.wish:
            return self._by_hami(pod, workload.wish, open_nodes, refusals)
        return self._counted(pod, open_nodes, refusals)

    def take(self, one: Placed) -> None:
        """Count a pod that is on a node."""
        if one.added:
            old = self.uses[one.node]
            self.uses[one.node] = tuple(use.plus(*new) for use, new in zip(old, one.added, strict=True))
            for known in self.answers.values():
                known.pop(one.node, None)
        self.counted[one.node].update(one.counts)
        self.guests[one.node] += bool(one.counts)

    def _open(self, node: GpuNode, workload: Workload, refusals: Counter[str]) -> bool:
        """Whether Kubernetes itself lets the pod onto the node."""
        if not node.schedulable:
            refusals[CORDONED] += 1
        elif not node.selected(workload.selector):
            refusals[SELECTOR] += 1
        else:
            return True
        return False

    def _by_hami(
        self, pod: Arrival, wish: Wish, open_nodes: Sequence[GpuNode], refusals: Counter[str]
    ) -> Placed | Pending:
        """The fullest node that fits, or with the policy spread the emptiest one."""
        best: dict[str, Fit] = {}
        score = 0.0
        answers = self.answers.setdefault(wish, {})
        for node in open_nodes:
            answer = answers.get(node.name) or self._ask(node, wish)
            if isinstance(answer, str):
                refusals[answer] += 1
                continue
            better = answer.score < score if wish.node_policy == "spread" else answer.score > score
            if better or not best:
                best, score = {}, answer.score
            if answer.score == score:
                best[node.name] = answer
        if not best:
            return Pending(pod, dict(refusals))
        name = self.choose(pod, list(best))
        placed = Placed(pod, name, best[name].containers, best[name].added)
        self.take(placed)
        return placed

    def _ask(self, node: GpuNode, wish: Wish) -> Fit | str:
        """Ask a node, and keep its answer."""
        answer = hami.place(node, self.uses[node.name], wish) if node.cards else UNREGISTERED
        self.answers[wish][node.name] = answer
        return answer

    def _counted(
        self, pod: Arrival, open_nodes: Sequence[GpuNode], refusals: Counter[str]
    ) -> Placed | Pending:
        """The node with the fewest pods that has as many of each resource left."""
        fitting = []
        for node in open_nodes:
            if short := self._short(node, pod.workload.counts):
                refusals[f"Insufficient {short}"] += 1
            else:
                fitting.append(node.name)
        if not fitting:
            return Pending(pod, dict(refusals))
        fewest = min(self.guests[name] for name in fitting)
        name = self.choose(pod, [name for name in fitting if self.guests[name] == fewest])
        placed = Placed(pod, name, counts=pod.workload.counts)
        self.take(placed)
        return placed

    def _short(self, node: GpuNode, counts: Mapping[str, int]) -> str:
        """The first resource of which a node has too few left, "" where it has enough of each."""
        taken = self.counted[node.name]
        lacking = (
            name for name, count in counts.items() if node.countable.get(name, 0) - taken[name] < count
        )
        return next(lacking, "")
