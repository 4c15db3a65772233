"""Whether NetworkPolicies let one pod into another."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from vllm_phases.model.objects import same_namespace

if TYPE_CHECKING:
    from vllm_phases.model import Node, Pod, Policy, Release

_MANY = 1000  # ports that are enough for UCX to choose from


def refusing(release: Release, source: Pod, target: Pod, port: int) -> Policy | None:
    """A policy that keeps a pod out of another one of its namespace; None where none is sure to.

    port 0 asks for every port. What cannot be judged, such as address blocks, lets everybody in.
    """
    if source is target or source.namespace != target.namespace:
        return None
    if any(same_namespace(space, source.namespace) for space in _unclear(release)):
        return None
    over = [*_by_pod(release).get(id(target), ()), *_whole(release, target.namespace)]
    rules = [rule for policy in over for rule in policy.node.items("spec", "ingress")]
    if any(_lets(rule, source, target, port) for rule in rules):
        return None
    return next(iter(over), None)


@lru_cache(maxsize=2)
def _by_pod(release: Release) -> dict[int, list[Policy]]:
    """The policies for incoming connections that name a pod, by its identity."""
    found: dict[int, list[Policy]] = {}
    for policy in release.policies:
        if "Ingress" in policy.types:
            for pod in release.index.selected(policy.selector, policy.object.namespace):
                found.setdefault(id(pod), []).append(policy)
    return found


@lru_cache(maxsize=64)
def _whole(release: Release, namespace: str) -> tuple[Policy, ...]:
    """The policies for incoming connections to every pod of a namespace."""
    return tuple(
        policy
        for policy in release.policies
        if not policy.selector
        and "Ingress" in policy.types
        and same_namespace(policy.object.namespace, namespace)
    )


@lru_cache(maxsize=2)
def _unclear(release: Release) -> frozenset[str]:
    """The namespaces with a policy that selects by expressions."""
    return frozenset(policy.object.namespace for policy in release.policies if not policy.simple)


def _lets(rule: Node, source: Pod, target: Pod, port: int) -> bool:
    """Whether an ingress rule may let a pod in on a port."""
    peers, listed = list(rule.items("from")), list(rule.items("ports"))
    return (not peers or any(_is(peer, source) for peer in peers)) and (
        not listed or any(_names(entry, target, port) for entry in listed)
    )


def _is(peer: Node, pod: Pod) -> bool:
    """Whether a peer may be a pod of the policy's namespace."""
    if isinstance(peer.at("ipBlock").value, dict):
        return True
    selector = peer.at("podSelector")
    wanted = selector.mapping("matchLabels")
    return bool(selector.at("matchExpressions")) or wanted.items() <= pod.labels.items()


def _names(entry: Node, target: Pod, port: int) -> bool:
    """Whether an entry of `ports` covers a port of a pod."""
    given, last = entry.text("port"), entry.number("endPort")
    if entry.text("protocol") not in ("", "TCP"):
        return False
    if not given:
        return True
    first = int(given) if given.isdecimal() else _declared(target, given)
    if first is None:
        return True
    if port == 0:
        return last is not None and last - first >= _MANY
    return first <= port <= (last or first)


def _declared(pod: Pod, name: str) -> int | None:
    return next(
        (port.number for container in pod.containers for port in container.ports if port.name == name), None
    )
