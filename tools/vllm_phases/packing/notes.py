"""What a reader of a packing must know: what was not simulated, and what another order would do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from vllm_phases.packing import cluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vllm_phases.model.pod import Pod
    from vllm_phases.packing.cluster import Packing
    from vllm_phases.packing.pods import Arrival

_MOST_STABLE = 12  # Go's sort keeps the order of so many equal cards, and not of more


def notes(packing: Packing, pods: Iterable[Pod]) -> Iterator[str]:
    """Each note as a sentence."""
    yield from _other_order(packing)
    for workload in dict.fromkeys(pod.workload.id for pod in packing.arrivals):
        unknown = next(pod.workload.unknown for pod in packing.arrivals if pod.workload.id == workload)
        if unknown:
            yield f"{workload} has {' and '.join(unknown)}, which are not simulated"
    if any(len(node.cards) > _MOST_STABLE for node in packing.nodes):
        yield f"among more than {_MOST_STABLE} equal cards of a node, HAMi may take another one than is shown"
    for pod in pods:
        if pod.owner and not pod.as_written:
            yield f"{pod.owner.id} is left out: its controller decides what its pods are"


def _other_order(packing: Packing) -> Iterator[str]:
    """Whether more pods stay Pending when the workloads come the other way round."""
    groups: dict[str, list[Arrival]] = {}
    for pod in packing.arrivals:
        groups.setdefault(pod.workload.id, []).append(pod)
    if len(groups) < 2:
        return
    turned = cluster.pack(packing.nodes, [pod for group in reversed(groups.values()) for pod in group])
    if len(turned.pending) == len(packing.pending):
        return
    waiting = Counter(one.pod.workload.id for one in turned.pending)
    listed = ", ".join(f"{count} of {name}" for name, count in waiting.items()) or "no pod"
    order = ", then ".join(reversed(groups))
    yield f"the order matters: when {order} come, {listed} would stay Pending"
