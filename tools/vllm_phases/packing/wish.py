"""What a pod wishes of HAMi: the requests of its containers, and the annotations that steer the scheduler."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from vllm_phases import catalogue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vllm_phases.model.container import Container
    from vllm_phases.model.pod import Pod
    from vllm_phases.sources.document import Node

_WEIGHT_NAMES = ("slot", "core", "memory")
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_WHOLE, _MAX_INT32 = 100, 2**31 - 1
_SUFFIXES = {"": 1, **{unit: 1000**power for power, unit in enumerate(("k", "M", "G", "T", "P", "E"), 1)}} | {
    f"{unit}i": 1024**power for power, unit in enumerate(("K", "M", "G", "T", "P", "E"), 1)
}


class Ask(NamedTuple):
    """What one container asks: cards, and of each MiB (or percent of its memory) and percent of its cores."""

    cards: int
    memory: int
    percentage: int
    cores: int

    @property
    def shares(self) -> bool:
        """Whether it leaves a part of the card to others."""
        return (bool(self.memory) or self.percentage < _WHOLE) and self.cores < _WHOLE

    def memory_of(self, whole: int) -> int:
        """MiB of a card with so many MiB."""
        return self.memory or whole * self.percentage // 100


@dataclass(frozen=True)
class Wish:
    """What a pod asks, a value that equal pods share.

    first, together  the asks of init containers, which run one by one, and of the others; None: no GPU
    gpu_policy, node_policy  as written in the annotation, or the scheduler's own
    weights          of slots, cores and memory in the score of a card
    error            why the scheduler cannot read the pod, "" where it can
    """

    first: tuple[Ask | None, ...]
    together: tuple[Ask | None, ...]
    gpu_policy: str = "spread"
    node_policy: str = "binpack"
    numa_bind: bool = False
    types: str = ""
    not_types: str = ""
    ids: str = ""
    not_ids: str = ""
    mode: str | None = None
    weights: tuple[int, int, int] = (1, 1, 1)
    error: str = ""

    @property
    def asks(self) -> bool:
        """Whether any container asks for a card; a pod that does not may run on any node."""
        return any((*self.first, *self.together))

    def has_policy(self, name: str) -> bool:
        """Whether a policy is in the chain."""
        return name in (part.strip() for part in self.gpu_policy.split(","))


def wish(
    first: tuple[Ask | None, ...],
    together: tuple[Ask | None, ...],
    annotations: Mapping[str, str],
    gpu_policy: str,
    node_policy: str,
) -> Wish:
    """The wish of a pod with these annotations; the policies are those of the scheduler."""
    names = annotation_names()
    given = {key: annotations.get(name, "") for key, name in names.items()}
    weights, error = _weights(names["weights"], annotations.get(names["weights"]))
    return Wish(
        first,
        together,
        annotations.get(names["gpuPolicy"], gpu_policy),
        annotations.get(names["nodePolicy"], node_policy),
        given["numaBind"] in _TRUE,
        given["types"],
        given["notTypes"],
        given["ids"],
        given["notIds"],
        annotations.get(names["mode"]),
        weights,
        error,
    )


def annotation_names() -> dict[str, str]:
    """The pod annotations that HAMi reads."""
    names: dict[str, str] = catalogue.facts("hami_scheduling")["podAnnotations"]["names"]
    return names


def resource_names() -> dict[str, str]:
    """The resources that HAMi reads."""
    names: dict[str, str] = catalogue.facts("hami_scheduling")["resources"]["names"]
    return names


def ask(container: Container, webhook: bool) -> Ask | None:
    """What the scheduler reads from a container; None where that is no request for cards.

    webhook  whether HAMi's webhook completes the request first: a card where only a share of one is asked,
             and exclusive use where no share is asked
    """
    names = resource_names()
    limits, given = _given(container.limits(), names), _given(container.requests(), names)
    given |= limits
    if webhook:
        given = _completed(given, limits)
    cards = quantity(given.get("cards", ""))
    memory = quantity(given.get("memory", "0"))
    if not cards or memory is None or not 0 <= memory <= _MAX_INT32:
        return None
    percentage = min(quantity(given.get("percentage", "0")) or 0, _WHOLE)
    if percentage <= 0:
        percentage = 0 if memory else _WHOLE
    cores = min(quantity(given.get("cores", "0")) or 0, _WHOLE)
    return Ask(cards, memory, percentage, cores)


def _given(resources: Mapping[str, Node], names: Mapping[str, str]) -> dict[str, str]:
    """The resources of HAMi as written, by what they mean."""
    return {key: resources[name].text() for key, name in names.items() if name in resources}


def quantity(text: str) -> int | None:
    """A Kubernetes quantity as a whole number; None for what is none."""
    found = re.fullmatch(r"\+?([0-9]+)([kMGTPE]i?|Ki)?", text)
    return int(found[1]) * _SUFFIXES[found[2] or ""] if found else None


def _completed(given: Mapping[str, str], limits: Mapping[str, str]) -> dict[str, str]:
    """The request as HAMi's webhook leaves it (v2.10.0: pkg/device/nvidia/device.go, MutateAdmission)."""
    completed = dict(given)
    if "cards" not in limits and {"cores", "memory", "percentage"} & limits.keys():
        completed["cards"] = "1"
    if "cards" in completed and "cores" not in completed:
        percentage = completed.get("percentage")
        whole = percentage == "100" if percentage is not None else "memory" not in completed
        if whole:
            completed["cores"] = "100"
    return completed


def _weights(name: str, text: str | None) -> tuple[tuple[int, int, int], str]:
    """The weights in an annotation, and what is wrong with it; HAMi refuses a pod with a wrong one."""
    if text is None:
        return (1, 1, 1), ""
    pairs = [tuple(map(str.strip, part.split("=", 1))) for part in text.split(",")]
    read = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and re.fullmatch(r"\+?\d+", pair[1])}
    if len(pairs) != len(_WEIGHT_NAMES) or set(read) != set(_WEIGHT_NAMES) or not any(read.values()):
        return (1, 1, 1), f"{name}: {text}: write slot=1,core=1,memory=1, not all of them 0"
    return (read["slot"], read["core"], read["memory"]), ""


def asks_resource(container: Container) -> bool:
    """Whether a container has a resource that makes HAMi's webhook send the pod to HAMi's scheduler."""
    names = resource_names()
    return names["cards"] in container.requests() or any(
        name in container.limits() for name in names.values()
    )


def refused(found: Wish, pod: Pod, webhook: bool) -> Wish:
    """The wish with what HAMi has against the pod: privilege, or a request that it cannot read."""
    names = resource_names()
    privileged = any(
        container.node.at("securityContext", "privileged").value is True for container in pod.containers
    )
    error = found.error
    if webhook and privileged and found.asks:
        error = "HAMi's webhook refuses privileged containers in a pod with its resources: remove privileged"
    elif not found.asks and any(map(asks_resource, pod.containers)):
        error = (
            f"HAMi cannot read the request, and would let the pod run anywhere and count nothing: write "
            f"{names['cards']} as a number of cards and {names['memory']} as MiB without a unit"
        )
    return replace(found, error=error)
