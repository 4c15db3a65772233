"""What a reader of a packing must know: what was not simulated, and what another order would do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from vllm_phases.packing import cluster, hami
from vllm_phases.packing.wish import annotation_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vllm_phases.model.pod import Pod
    from vllm_phases.packing.cluster import Packing
    from vllm_phases.packing.pods import Arrival, Workload

_MOST_STABLE = 12  # Go's sort keeps the order of so many equal cards, and not of more


def notes(packing: Packing, pods: Iterable[Pod]) -> Iterator[str]:
    """Each note as a sentence."""
    yield from _packed_tighter(packing)
    yield from _other_order(packing)
    for workload in dict.fromkeys(pod.workload.id for pod in packing.arrivals):
        unknown = next(pod.workload.unknown for pod in packing.arrivals if pod.workload.id == workload)
        if unknown:
            yield f"{workload} has {' and '.join(unknown)}, which are not simulated"
    yield from _forgotten(packing)
    if any(len(node.cards) > _MOST_STABLE for node in packing.nodes):
        yield f"among more than {_MOST_STABLE} equal cards of a node, HAMi may take another one than is shown"
    for pod in pods:
        if pod.owner and not pod.as_written:
            yield f"{pod.owner.id} is left out: its controller decides what its pods are"


def _forgotten(packing: Packing) -> Iterator[str]:
    """Of pods whose part HAMi gives away a second time (seen with v2.10.0, tests/pack/test_live.py)."""
    names = dict.fromkeys(pod.workload.id for pod in packing.arrivals if pod.workload.forgotten)
    if names and any(not hami.writes_empty(node) for node in packing.nodes if node.cards):
        yield (
            f"HAMi 2.10 forgets what the pods of {', '.join(names)} take once their init containers are "
            "done, and puts other pods there too: take the init containers without a GPU out, or add a "
            "native sidecar (restartPolicy: Always)"
        )


def _packed_tighter(packing: Packing) -> Iterator[str]:
    """Whether fewer pods stay Pending when those that share cards fill one before they take the next."""
    tighter = {pod.workload: _binpacked(pod.workload) for pod in packing.arrivals}
    names = ", ".join(old.id for old, new in tighter.items() if old is not new)
    if not packing.pending or not names:
        return
    pods = [replace(pod, workload=tighter[pod.workload]) for pod in packing.arrivals]
    better = len(packing.pending) - len(cluster.pack(packing.nodes, pods, packing.running).pending)
    if better > 0:
        annotation = annotation_names()["gpuPolicy"]
        yield f"with {annotation}: binpack on the pods of {names}, {better} fewer would stay Pending"


def _binpacked(workload: Workload) -> Workload:
    """The workload with the policy binpack, where it shares cards and has another one."""
    wish = workload.wish
    if wish is None or wish.has_policy("binpack") or not any(ask.shares for ask in wish.together if ask):
        return workload
    return replace(workload, wish=replace(wish, gpu_policy="binpack"))


def _other_order(packing: Packing) -> Iterator[str]:
    """Whether more pods stay Pending when the workloads come the other way round."""
    groups: dict[str, list[Arrival]] = {}
    for pod in packing.arrivals:
        groups.setdefault(pod.workload.id, []).append(pod)
    if len(groups) < 2:
        return
    other = [pod for group in reversed(groups.values()) for pod in group]
    turned = cluster.pack(packing.nodes, other, packing.running)
    if len(turned.pending) == len(packing.pending):
        return
    waiting = Counter(one.pod.workload.id for one in turned.pending)
    listed = ", ".join(f"{count} of {name}" for name, count in waiting.items()) or "no pod"
    order = ", then ".join(reversed(groups))
    yield f"the order matters: when {order} come, {listed} would stay Pending"
