"""The pods of a release that want a GPU, in the order in which they come."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vllm_phases import catalogue
from vllm_phases.packing import wish as wishes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vllm_phases.model.pod import Pod
    from vllm_phases.packing.wish import Wish
    from vllm_phases.sources.document import Node

# The order in which Helm creates kinds that have pods; others come after them, by name (helm v4.3.1:
# kind_sorter.go and manifest_sorter.go). kubectl creates objects as they stand.
_HELM = (
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "StatefulSet",
    "Job",
    "CronJob",
)
_UNKNOWN_COUNT = ("DaemonSet", "CronJob")
_NOT_SIMULATED = ("podAffinity", "podAntiAffinity", "nodeAffinity")


@dataclass(frozen=True)
class Settings:
    """How HAMi is installed: its scheduler's policies, and whether its webhook is there."""

    gpu_policy: str
    node_policy: str
    webhook: bool


@dataclass(frozen=True, eq=False)
class Workload:
    """Equal pods of one object.

    wish      what they ask of HAMi; None where the default scheduler places them
    counts    the extended resources that the default scheduler counts for one pod
    unknown   what may change where they go, and is not simulated
    forgotten whether HAMi 2.10 forgets what they take once their init containers are done: it shifts its
              record by init containers without a GPU, and then drops the first entries of the record
    """

    kind: str
    name: str
    namespace: str
    wish: Wish | None
    counts: Mapping[str, int]
    selector: Mapping[str, str]
    unknown: tuple[str, ...] = ()
    forgotten: bool = False

    @property
    def id(self) -> str:
        """Kind and name; of a pod of a LeaderWorkerSet its part of the group too."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True)
class Arrival:
    """A pod, named as its controller would count it."""

    name: str
    workload: Workload


def arrivals(pods: Iterable[Pod], settings: Settings, hami: bool) -> tuple[Arrival, ...]:
    """Every pod with a GPU; all of one object before those of the next.

    hami  whether HAMi knows any node; without one its webhook sends no pod to it
    """
    groups: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.as_written and pod.owner and pod.owner.kind not in _UNKNOWN_COUNT:
            groups.setdefault(f"{pod.owner.namespace}/{pod.owner.id}", []).append(pod)
    return tuple(arrival for group in groups.values() for arrival in _of_object(group, settings, hami))


def in_helm_order(pods: Iterable[Pod]) -> list[Pod]:
    """The pods as `helm install` creates their objects: by kind, those of one kind by template path."""
    order = {kind: place for place, kind in enumerate(_HELM)}
    owned = [(pod.owner, pod) for pod in pods if pod.owner]
    owned.sort(key=lambda pair: (order.get(pair[0].kind, len(order)), pair[0].kind))
    return [pod for _, pod in owned]


def asks_hami(pod: Pod) -> bool:
    """Whether a pod is written for HAMi: it names its scheduler, or asks for a share of a card."""
    names = wishes.resource_names()
    shares = {names[key] for key in ("memory", "percentage", "cores")}
    return pod.spec.text("schedulerName") == _scheduler() or any(
        shares & {*container.limits(), *container.requests()} for container in pod.containers
    )


def _scheduler() -> str:
    name: str = catalogue.facts("hami_scheduling")["defaults"]["scheduler"]
    return name


def _of_object(group: list[Pod], settings: Settings, hami: bool) -> Iterator[Arrival]:
    """The pods of one object."""
    owner = group[0].owner
    assert owner is not None
    known = {pod.group: found for pod in group if (found := _workload(pod, settings, hami))}
    if owner.kind == "LeaderWorkerSet":
        if all(pod.group != "leaderTemplate" for pod in group) and "workerTemplate" in known:
            known["leaderTemplate"] = known["workerTemplate"]
        size = owner.node.number("spec", "leaderWorkerTemplate", "size") or 1
        yield from _groups(owner.name, _replicas(group[0]), size, known)
    elif owner.kind == "Pod":
        yield from (Arrival(owner.name, one) for one in known.values())
    else:
        for number in range(_replicas(group[0])):
            yield from (Arrival(f"{owner.name}-{number}", one) for one in known.values())


def _groups(name: str, count: int, size: int, known: Mapping[str, Workload]) -> Iterator[Arrival]:
    """The groups of a LeaderWorkerSet: each a leader and its workers."""
    for number in range(count):
        for member in range(size):
            if one := known.get("workerTemplate" if member else "leaderTemplate"):
                yield Arrival(f"{name}-{number}" + (f"-{member}" if member else ""), one)


def _replicas(pod: Pod) -> int:
    owner = pod.owner
    assert owner is not None
    if owner.kind == "Job":
        return owner.node.number("spec", "parallelism") or 1
    count = pod.replicas
    return 1 if count is None else max(count, 0)


def _workload(pod: Pod, settings: Settings, hami: bool) -> Workload | None:
    """What the pods of a template want; None where that is no GPU."""
    owner = pod.owner
    assert owner is not None
    counted = counts(pod.spec)
    by_hami, webhook = _scheduled_by(pod, settings, hami)
    wish = _wish(pod, settings, webhook) if by_hami else None
    if not counted and not (wish and (wish.asks or wish.error)):
        return None
    role = {"leaderTemplate": " (leader)", "workerTemplate": " (worker)"}.get(pod.group, "")
    selector = pod.spec.mapping("nodeSelector")
    unknown, lost = tuple(_unknown(pod)), wish is not None and _forgotten(pod, wish)
    return Workload(owner.kind, owner.name + role, owner.namespace, wish, counted, selector, unknown, lost)


def _forgotten(pod: Pod, wish: Wish) -> bool:
    """Whether all init containers end, and one of them has no GPU."""
    ends = not any(container.native_sidecar for container in pod.containers)
    return ends and None in wish.first


def _scheduled_by(pod: Pod, settings: Settings, hami: bool) -> tuple[bool, bool]:
    """Whether HAMi's scheduler places a pod, and whether its webhook has seen it."""
    defaults = catalogue.facts("hami_scheduling")["defaults"]
    named = pod.spec.text("schedulerName")
    seen = settings.webhook and hami and pod.labels.get(defaults["ignoreLabel"]) != "ignore"
    if named == defaults["scheduler"]:
        return True, seen
    taken = seen and named in ("", "default-scheduler")
    return taken and any(wishes.asks_resource(container) for container in pod.containers), seen


def _wish(pod: Pod, settings: Settings, webhook: bool) -> Wish:
    first = tuple(wishes.ask(container, webhook) for container in pod.containers if container.init)
    together = tuple(wishes.ask(container, webhook) for container in pod.containers if not container.init)
    found = wishes.wish(first, together, pod.annotations, settings.gpu_policy, settings.node_policy)
    return wishes.refused(found, pod, webhook)


def counts(spec: Node) -> dict[str, int]:
    """GPU resources as the default scheduler counts them: the sum, or the largest init container.

    spec  a pod's object, or its specification
    """
    together: Counter[str] = Counter()
    most: Counter[str] = Counter()
    root = spec.at("spec") if spec.at("spec") else spec
    for container in root.items("containers"):
        together.update(_resources(container))
    for container in root.items("initContainers"):
        most |= Counter(_resources(container))
    return {name: count for name, count in sorted((together | most).items()) if count}


def _resources(container: Node) -> dict[str, int]:
    given = {**container.mapping("resources", "requests"), **container.mapping("resources", "limits")}
    return {name: wishes.quantity(text) or 0 for name, text in given.items() if _is_gpu(name)}


def _is_gpu(resource: str) -> bool:
    shares = set(wishes.resource_names().values()) - {wishes.resource_names()["cards"]}
    patterns = (entry["pattern"] for entry in catalogue.facts("gpu_resources").values())
    return resource in shares or any(re.fullmatch(pattern, resource) for pattern in patterns)


def _unknown(pod: Pod) -> Iterator[str]:
    """What else decides where a pod goes; no preference does, because HAMi leaves one node to choose."""
    for name in _NOT_SIMULATED:
        if pod.spec.at("affinity", name, "requiredDuringSchedulingIgnoredDuringExecution"):
            yield f"required {name}"
    for constraint in pod.spec.items("topologySpreadConstraints"):
        if constraint.text("whenUnsatisfiable") != "ScheduleAnyway":
            yield "topologySpreadConstraints"
            break
    if any(list(container.node.items("resources", "claims")) for container in pod.containers):
        yield "resource claims"
