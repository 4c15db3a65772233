"""Which GPUs a pod may run on, as far as its labels and annotations say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from vllm_phases import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model.pod import Pod
    from vllm_phases.sources.document import Node

_REQUIRED = (
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)


@dataclass(frozen=True)
class Card:
    """A kind of GPU (catalogue/data/gpu_cards.yaml).

    capability  compute capability, (9, 0)
    memory      MiB, the most that cards of this kind have; None where it was not looked up
    mig         its MIG profiles, "3g.40gb"; empty without MIG
    """

    name: str
    capability: tuple[int, ...]
    memory: int | None
    mig: frozenset[str]


@dataclass(frozen=True)
class Choice:
    """Names of GPUs of which a pod wants one; node is where they stand."""

    names: tuple[str, ...]
    node: Node

    @property
    def cards(self) -> tuple[Card, ...]:
        """Every card that may be meant; empty as soon as one name is not known."""
        found = [cards(name) for name in self.names]
        return tuple(card for group in found for card in group) if all(found) else ()


def choices(pod: Pod) -> Iterator[Choice]:
    """What a pod asks of its GPU's kind; each of these must hold."""
    labels = {name for name, entry in catalogue.facts("gpu_labels").items() if entry["where"] == "label"}
    for name, node in pod.spec.entries("nodeSelector"):
        if name in labels and node.text():
            yield Choice((node.text(),), node)
    terms = list(pod.spec.items(*_REQUIRED))
    for expression in terms[0].items("matchExpressions") if len(terms) == 1 else ():
        if expression.text("key") in labels and expression.text("operator") == "In":
            yield Choice(tuple(item.text() for item in expression.items("values")), expression.at("values"))
    for name, node in pod.metadata.entries("annotations") if pod.owner else ():
        if catalogue.facts("gpu_labels").get(name, {}).get("where") == "annotation" and node.text():
            yield Choice(tuple(part.strip() for part in node.text().split(",")), node)


@cache
def cards(name: str) -> tuple[Card, ...]:
    """The cards that a name may mean: "H100" is one of 80 GB or of 96; empty when none is known."""
    return tuple(
        Card(
            key,
            tuple(map(int, entry["capability"].split("."))),
            entry["memory"],
            frozenset(entry["mig"] or ()),
        )
        for key, entry in catalogue.facts("gpu_cards").items()
        if re.search(entry["names"], name.lower())
    )
