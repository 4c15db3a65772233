"""Why pods stay Pending, in the scheduler's words, and what to set."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vllm_phases import catalogue
from vllm_phases.packing import cluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vllm_phases.packing.cluster import Pending
    from vllm_phases.packing.pods import Workload

_COUNT = re.compile(r"^[0-9]+/[0-9]+ ")
_SHARES = ("gpumem", "gpumem-percentage", "gpucores")


@dataclass(frozen=True)
class Stuck:
    """Pods of one workload that wait for the same reasons.

    reasons  each with the number of nodes that gave it, the most frequent one first
    advice   for each kind of reason what it means and what to set
    """

    workload: Workload
    pods: tuple[str, ...]
    reasons: tuple[tuple[int, str], ...]
    advice: tuple[str, ...]


def stuck(pending: Iterable[Pending]) -> tuple[Stuck, ...]:
    """The pending pods, those of one workload and the same reasons together."""
    groups: dict[tuple[str, str, tuple[tuple[str, int], ...]], list[Pending]] = defaultdict(list)
    for one in pending:
        key = one.pod.workload.id, one.error, tuple(sorted(one.reasons.items()))
        groups[key].append(one)
    return tuple(_stuck(group) for group in groups.values())


def _stuck(group: list[Pending]) -> Stuck:
    first = group[0]
    workload, names = first.pod.workload, tuple(one.pod.name for one in group)
    if first.error:
        return Stuck(workload, names, (), (first.error,))
    reasons = sorted(((count, reason) for reason, count in first.reasons.items()), key=lambda one: -one[0])
    return Stuck(workload, names, tuple(reasons), tuple(_advice(first.reasons)))


def _advice(reasons: Iterable[str]) -> Iterator[str]:
    """Of each word once, in the order of HAMi's checks; then what Kubernetes says itself."""
    words = {
        word: None for reason in reasons for word in (_COUNT.sub("", part) for part in reason.split(", "))
    }
    known = catalogue.facts("hami_scheduling")["refusals"]["reasons"]
    for word, entry in known.items():
        if word in words:
            yield f"{word}: {entry['what']}. Set {entry['set']}."
    for word in words:
        if word not in known:
            yield f"{word}: {_of_kubernetes(word)}."


def _of_kubernetes(word: str) -> str:
    if word == cluster.CORDONED:
        return "kubectl uncordon opens the node again"
    if word == cluster.SELECTOR:
        return "set the pod's nodeSelector to labels that the nodes have"
    if word.rpartition("/")[2] in _SHARES:
        return "no node offers it without HAMi. Set schedulerName: hami-scheduler, and install HAMi"
    return "no node has as many left. Set fewer replicas or GPUs a pod, or give more nodes"
