"""A packing as JSON, for other programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vllm_phases.packing.advice import Stuck
    from vllm_phases.packing.cards import GpuNode
    from vllm_phases.packing.cluster import Packing, Placed


def report(packing: Packing, stuck: Sequence[Stuck], notes: Sequence[str]) -> str:
    """Pods with their nodes and cards, nodes with what is taken of them; memory in MiB, cores in percent."""
    nodes = {node.name: node for node in packing.nodes}
    return json.dumps(
        {
            "placed": [_placed(one, nodes[one.node]) for one in packing.placed],
            "running": [_placed(one, nodes[one.node]) for one in packing.running],
            "pending": [_stuck(one) for one in stuck],
            "nodes": [_node(node, packing) for node in packing.nodes],
            "notes": list(notes),
        },
        indent=2,
        ensure_ascii=False,
    )


def _placed(one: Placed, node: GpuNode) -> dict[str, Any]:
    found: dict[str, Any] = {"pod": one.pod.name, "workload": one.pod.workload.id, "node": one.node}
    if one.counts:
        return {**found, "resources": dict(one.counts)}
    containers = [[_grant(grant, node) for grant in container] for container in one.containers]
    return {**found, "containers": containers}


def _grant(grant: Any, node: GpuNode) -> dict[str, Any]:
    card = node.cards[grant.card]
    found = {"card": card.index, "id": card.id, "memory": grant.memory, "cores": grant.cores}
    return {**found, "profile": grant.profile} if grant.profile else found


def _stuck(one: Stuck) -> dict[str, Any]:
    return {
        "workload": one.workload.id,
        "pods": list(one.pods),
        "reasons": [{"nodes": count, "reason": reason} for count, reason in one.reasons],
        "advice": list(one.advice),
    }


def _node(node: GpuNode, packing: Packing) -> dict[str, Any]:
    cards = [
        {
            "card": card.index,
            "id": card.id,
            "type": card.type,
            "memory": card.memory,
            "slots": card.slots,
            "taken": {"memory": use.memory, "cores": use.cores, "slots": use.slots},
        }
        for card, use in zip(node.cards, packing.uses[node.name], strict=True)
    ]
    return {"node": node.name, "cards": cards, "resources": dict(node.countable)}
