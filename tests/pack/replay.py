"""What the simulator makes of a scenario, told as the recordings tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm_phases.model import Document, Release
from vllm_phases.packing import cluster, hami, nodes, pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vllm_phases.packing.cards import GpuNode
    from vllm_phases.packing.cluster import Pending, Placed
    from vllm_phases.packing.pods import Arrival

    from .scenarios import Json, Scenario

SETTINGS = pods.Settings("spread", "binpack", webhook=False)


def replay(scenario: Scenario, recorded: Sequence[Json]) -> tuple[list[Json], int]:
    """What the simulator decides, and how often several nodes were equally good.

    Then the real scheduler takes one by chance: it scores the nodes side by side and sorts them as they come.
    The simulator takes the recorded one if, and only if, that is one of those which it finds equally good.
    """
    ties = 0

    def choose(pod: Arrival, names: Sequence[str]) -> str:
        nonlocal ties
        ties += len(names) > 1
        wanted = str(recorded[int(pod.name.rpartition("-p")[2])].get("node"))
        return wanted if wanted in names else names[0]

    gpu_nodes = tuple(nodes.from_object(_root(node)) for node in scenario.node_objects())
    release = Release(tuple(_document(pod) for pod in scenario.pod_objects()))
    arrivals = pods.arrivals(release.pods, SETTINGS, hami=True)
    packing = cluster.pack(gpu_nodes, arrivals, choose=choose)
    by_name = {node.name: node for node in gpu_nodes}
    found = {one.pod.name: _placed(one, by_name[one.node]) for one in packing.placed}
    found |= {one.pod.name: _pending(one) for one in packing.pending}
    return [found[pod.name] for pod in arrivals], ties


def agree(found: Json, recorded: Json) -> bool:
    """Whether both are the same decision; reasons of nodes are compared as how many nodes have which."""
    if "error" in recorded:
        return "error" in found
    if "refused" in recorded:
        reasons: dict[str, int] = {}
        for reason in recorded["refused"].values():
            reasons[reason] = reasons.get(reason, 0) + 1
        return bool(found.get("reasons") == reasons)
    return found == recorded


def _document(tree: Json) -> Document:
    return Document("scenario", "kubernetes", tree)


def _root(tree: Json) -> Any:
    return _document(tree).root


def _placed(one: Placed, node: GpuNode) -> Json:
    """The cards in the words of HAMi's annotation: containers end with a semicolon, cards with a colon."""
    told = [got for got in one.containers if got or hami.writes_empty(node)]
    cards = "".join(
        "".join(f"{node.cards[got.card].id},NVIDIA,{got.memory},{got.cores}:" for got in container) + ";"
        for container in told
    )
    return {"node": one.node, "cards": cards}


def _pending(one: Pending) -> Json:
    return {"error": one.error} if one.error else {"reasons": dict(one.reasons)}
