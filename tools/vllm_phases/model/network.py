"""How requests reach an engine, what scales it and who watches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.model.objects import Object
    from vllm_phases.sources.document import Node

_ROUTES = ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "Ingress")
_MONITORS = ("ServiceMonitor", "PodMonitor")


@dataclass(frozen=True, eq=False, repr=False)
class ServicePort:
    """A port of a Service; target is a number or a port's name, as written."""

    name: str
    number: int | None
    target: str
    node: Node


@dataclass(frozen=True, eq=False, repr=False)
class Service:
    """A Service; selector is empty where it has none."""

    object: Object
    selector: Mapping[str, str]
    ports: tuple[ServicePort, ...]

    @property
    def node(self) -> Node:
        """The object."""
        return self.object.node

    @property
    def type(self) -> str:
        """spec.type, ClusterIP by default."""
        return self.node.text("spec", "type") or "ClusterIP"

    @property
    def headless(self) -> bool:
        """Whether its name resolves to the pods."""
        return self.node.text("spec", "clusterIP") == "None"


@dataclass(frozen=True, eq=False, repr=False)
class Backend:
    """What a route sends to."""

    group: str
    kind: str
    name: str
    namespace: str
    port: int | None
    node: Node


@dataclass(frozen=True, eq=False, repr=False)
class Route:
    """A route of the Gateway API, or an Ingress."""

    object: Object
    backends: tuple[Backend, ...]

    @property
    def node(self) -> Node:
        """The object."""
        return self.object.node


@dataclass(frozen=True, eq=False, repr=False)
class Autoscaler:
    """A HorizontalPodAutoscaler or a ScaledObject.

    target   kind and name of what it scales
    queries  the PromQL texts, or the names of metrics, that it decides by
    """

    object: Object
    target: tuple[str, str]
    minimum: int | None
    maximum: int | None
    queries: tuple[Node, ...]

    @property
    def node(self) -> Node:
        """The object."""
        return self.object.node


@dataclass(frozen=True, eq=False, repr=False)
class Monitor:
    """A ServiceMonitor or PodMonitor; endpoints are the nodes of what it scrapes."""

    object: Object
    selector: Mapping[str, str]
    endpoints: tuple[Node, ...]

    @property
    def node(self) -> Node:
        """The object."""
        return self.object.node


@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """A NetworkPolicy; an empty selector takes every pod of its namespace. simple: without expressions."""

    object: Object
    selector: Mapping[str, str]
    simple: bool
    types: tuple[str, ...]

    @property
    def node(self) -> Node:
        """The object."""
        return self.object.node


def service(found: Object) -> Service | None:
    """Read a Service; None for any other object."""
    if found.kind != "Service" or found.group:
        return None
    ports = tuple(
        ServicePort(
            port.text("name"), port.number("port"), port.text("targetPort") or port.text("port"), port
        )
        for port in found.node.items("spec", "ports")
    )
    return Service(found, found.node.mapping("spec", "selector"), ports)


def route(found: Object) -> Route | None:
    """Read a route; None for any other object."""
    return Route(found, tuple(_backends(found))) if found.kind in _ROUTES else None


def autoscaler(found: Object) -> Autoscaler | None:
    """Read an autoscaler; None for any other object."""
    low, high = {
        "HorizontalPodAutoscaler": ("minReplicas", "maxReplicas"),
        "ScaledObject": ("minReplicaCount", "maxReplicaCount"),
    }.get(found.kind, ("", ""))
    if not low:
        return None
    node, target = found.node, found.node.at("spec", "scaleTargetRef")
    queries = (
        *(trigger.at("metadata", "query") for trigger in node.items("spec", "triggers")),
        *(_metric(metric) for metric in node.items("spec", "metrics")),
    )
    return Autoscaler(
        found,
        (target.text("kind") or "Deployment", target.text("name")),
        node.number("spec", low),
        node.number("spec", high),
        tuple(filter(None, queries)),
    )


def monitor(found: Object) -> Monitor | None:
    """Read a monitor; None for any other object."""
    if found.kind not in _MONITORS:
        return None
    field = "endpoints" if found.kind == "ServiceMonitor" else "podMetricsEndpoints"
    selector = found.node.mapping("spec", "selector", "matchLabels")
    return Monitor(found, selector, tuple(found.node.items("spec", field)))


def policy(found: Object) -> Policy | None:
    """Read a NetworkPolicy; None for any other object."""
    if found.kind != "NetworkPolicy":
        return None
    selector = found.node.at("spec", "podSelector")
    simple = not selector.at("matchExpressions").value
    given = tuple(item.text() for item in found.node.items("spec", "policyTypes"))
    types = given or ("Ingress", *(["Egress"] if found.node.at("spec", "egress") else []))
    return Policy(found, selector.mapping("matchLabels"), simple, types)


def _metric(metric: Node) -> Node | None:
    """The name of a metric of a HorizontalPodAutoscaler."""
    names = (metric.at(kind, "metric", "name") for kind in ("pods", "object", "external"))
    return next(filter(None, names), None)


def _backends(found: Object) -> Iterator[Backend]:
    for rule in found.node.items("spec", "rules"):
        for reference in rule.items("backendRefs"):
            kind = reference.text("kind") or "Service"
            yield Backend(
                reference.text("group"),
                kind,
                reference.text("name"),
                reference.text("namespace") or found.namespace,
                reference.number("port"),
                reference,
            )
        for path in rule.items("http", "paths"):
            node = path.at("backend", "service")
            port = node.number("port", "number")
            yield Backend("", "Service", node.text("name"), found.namespace, port, node)
