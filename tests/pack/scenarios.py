"""Scenarios made from a seed: a few nodes with cards of their own kind, and pods that come one after the other."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

POLICIES = (
    "binpack", "spread", "numa", "mutex", "topology-aware", "mutex,binpack", "mutex, spread", "binpack,numa",
    "numa,spread", "spread,numa,binpack", "numa,binpack,mutex", "topology-aware,binpack",
    "mutex,topology-aware", " binpack", "fastest",
)  # fmt: skip
TYPES = ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA L4", "NVIDIA")
MEMORIES = (81559, 81920, 23034)
FIELDS = ("id", "index", "count", "devmem", "devcore", "type", "numa", "mode", "health")
MIG_PROFILES = [
    {"name": "1g.10gb", "memoryMB": 9856, "core": 14, "sliceCount": 1,
     "placements": [{"start": start, "size": 1} for start in range(7)]},
    {"name": "2g.20gb", "memoryMB": 20096, "core": 28, "sliceCount": 2,
     "placements": [{"start": start, "size": 2} for start in (0, 2, 4)]},
    {"name": "3g.40gb", "memoryMB": 40448, "core": 42, "sliceCount": 3,
     "placements": [{"start": start, "size": 4} for start in (0, 4)]},
    {"name": "7g.80gb", "memoryMB": 81152, "core": 100, "sliceCount": 7, "placements": [{"start": 0, "size": 8}]},
]  # fmt: skip


@dataclass(frozen=True)
class Scenario:
    """Nodes and pods, as short as a file wants them; `node_objects` and `pod_objects` make them whole.

    nodes  name, cards (a list for each, in the order of FIELDS), perhaps links (how well each card is connected
           to each) and cordoned ids
    pods   annotations, and the resources of init containers and containers
    """

    name: str
    nodes: list[Json]
    pods: list[Json]

    def node_objects(self) -> list[Json]:
        """The Node objects: what HAMi's device plugin would have written on them."""
        return [_node(self.name, node) for node in self.nodes]

    def pod_objects(self) -> list[Json]:
        """The pods, each for the nodes of this scenario only."""
        return [_pod(self.name, f"{self.name}-p{number}", pod) for number, pod in enumerate(self.pods)]


def generate(seed: int, count: int) -> list[Scenario]:
    """So many scenarios; the same seed gives the same ones."""
    return [_scenario(random.Random(f"{seed}/{number}"), f"s{number:03}", number) for number in range(count)]


def _scenario(chance: random.Random, name: str, number: int) -> Scenario:
    mig = number % 8 == 7
    nodes = [_cards(chance, f"{name}-{letter}", mig) for letter in "abc"[: chance.choice((1, 1, 2, 3))]]
    ids = [card[0] for node in nodes for card in node["cards"]]
    kinds = [_wanted(chance, number, mig, ids) for _ in range(chance.choice((1, 2, 3)))]
    return Scenario(name, nodes, [chance.choice(kinds) for _ in range(chance.randint(3, 9))])


def _cards(chance: random.Random, name: str, mig: bool) -> Json:
    count, kind, memory = chance.choice((1, 2, 2, 4, 4, 8)), chance.choice(TYPES), chance.choice(MEMORIES)
    slots, cores = chance.choice((1, 2, 3, 10, 10)), chance.choice((100, 100, 100, 200))
    cards = []
    for index in range(count):
        numa = chance.choice((0, index * 2 // count, chance.randint(0, 1)))
        mode = "mig" if mig and chance.random() < 0.8 else "hami-core"
        healthy = chance.random() > 0.06
        own = memory if chance.random() < 0.8 else chance.choice(MEMORIES)
        own_slots = 7 if mode == "mig" else slots
        own_cores = 100 if mode == "mig" else cores
        cards.append([f"GPU-{name}-{index}", index, own_slots, own, own_cores, kind, numa, mode, healthy])
    ids: list[str] = [str(card[0]) for card in cards]
    node: Json = {"name": name, "cards": cards}
    if chance.random() < 0.6:
        node["links"] = [
            [0 if one == other else chance.choice((10, 50, 100, 180)) for other in ids] for one in ids
        ]
    if chance.random() < 0.15:
        node["cordoned"] = ", ".join(chance.sample(ids, 1))
    return node


def _wanted(chance: random.Random, number: int, mig: bool, ids: list[str]) -> Json:
    annotations = {}
    if chance.random() < 0.9:  # every policy comes up often
        annotations["hami.io/gpu-scheduler-policy"] = (
            POLICIES[number % len(POLICIES)] if chance.random() < 0.7 else chance.choice(POLICIES)
        )
    for odds, key, values in (
        (0.4, "hami.io/node-scheduler-policy", ("binpack", "spread", "spread", "other")),
        (0.3, "nvidia.com/numa-bind", ("true", "1", "yes", "false")),
        (0.15, "nvidia.com/use-gputype", ("h100", "A100,L4", "", "T4", " l4 , nvidia")),
        (0.1, "nvidia.com/nouse-gputype", ("A100", "V100", "")),
        (0.12, "nvidia.com/use-gpuuuid", (", ".join(chance.sample(ids, min(2, len(ids)))), "GPU-other")),
        (0.12, "nvidia.com/nouse-gpuuuid", (chance.choice(ids), " ")),
        (
            0.6 if mig else 0.08,
            "nvidia.com/vgpu-mode",
            ("mig", "hami-core", "hami-core,mig", "mps") if not mig else ("mig", "mig", "hami-core"),
        ),
        (
            0.15,
            "hami.io/device-scoring-weights",
            ("slot=1,core=1,memory=3", "slot=0, core=0, memory=2", "slot=1,core=1", "slot=5,core=0,memory=0"),
        ),
    ):
        if chance.random() < odds:
            annotations[key] = chance.choice(values)
    containers = [_resources(chance)]
    if chance.random() < 0.2:
        containers.insert(chance.randint(0, 1), chance.choice(({}, _resources(chance))))
    init = [chance.choice(({}, _resources(chance)))] if chance.random() < 0.15 else []
    return {"annotations": annotations, "init": init, "containers": containers}


def _resources(chance: random.Random) -> Json:
    """What one container asks for; sometimes all of a card, or more than any has."""
    limits: Json = {"nvidia.com/gpu": chance.choice((1, 1, 1, 1, 2, 2, 3, 4))}
    kind = chance.random()
    if kind < 0.6:
        limits["nvidia.com/gpumem"] = chance.choice((5000, 9000, 11000, 20000, 27000, 39000, 40000, 90000))
    elif kind < 0.8:
        limits["nvidia.com/gpumem-percentage"] = chance.choice((10, 25, 33, 50, 60, 100))
    if chance.random() < 0.45:
        limits["nvidia.com/gpucores"] = chance.choice((0, 30, 50, 60, 100, 100, 100, 120))
    return limits


def _node(scenario: str, node: Json) -> Json:
    cards = [{**dict(zip(FIELDS, card, strict=True)), **_profiles(card)} for card in node["cards"]]
    annotations = {"hami.io/node-nvidia-register": json.dumps(cards)}
    if "links" in node:
        annotations["hami.io/node-nvidia-score"] = json.dumps(_scores(cards, node["links"]))
    if "cordoned" in node:
        annotations["hami.io/device-cordon"] = node["cordoned"]
    slots = sum(card["count"] for card in cards)
    room = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(slots)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node["name"], "labels": {"scenario": scenario}, "annotations": annotations},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Fake", "message": "fake"}],
        },
    }


def _scores(cards: list[Json], links: list[list[int]]) -> list[Json]:
    ids = [card["id"] for card in cards]
    return [
        {"uuid": one, "score": {other: link for other, link in zip(ids, row, strict=True) if other != one}}
        for one, row in zip(ids, links, strict=True)
    ]


def _profiles(card: list[Any]) -> Json:
    return {"migProfiles": MIG_PROFILES} if card[FIELDS.index("mode")] == "mig" else {}


def _pod(scenario: str, name: str, pod: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"scenario": scenario}, "annotations": pod["annotations"]},
        "spec": {
            "schedulerName": "hami-scheduler",
            "nodeSelector": {"scenario": scenario},
            "tolerations": [{"operator": "Exists"}],
            "initContainers": _containers("init", pod["init"]),
            "containers": _containers("main", pod["containers"]),
        },
    }


def _containers(name: str, resources: list[Json]) -> list[Json]:
    return [
        {"name": f"{name}-{number}", "image": "none", "resources": {"limits": limits}}
        for number, limits in enumerate(resources)
    ]
