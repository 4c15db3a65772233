"""SEC: engines that clients outside reach, and who may call what there."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine, Route, Service, relations
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Release

_OUTSIDE = ("LoadBalancer", "NodePort")
_UNGUARDED = "/pause, /abort_requests, /tokenize, /score and /invocations"


@rule("SEC011", "published-without-key", Severity.WARNING, scope=Service)
def published_without_key(service: Service, context: Context) -> Iterator[Problem]:
    """A Service that opens engines to the outside, while they take requests from everyone.

    Why:
        A load balancer or a port of every node is reachable from outside the cluster, often from anywhere.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B]
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: chat}
        spec: {type: LoadBalancer, selector: {app: demo-0}, ports: [{port: 80, targetPort: 8000}]}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B]
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: chat}
        spec: {selector: {app: demo-0}, ports: [{port: 80, targetPort: 8000}]}
        ```
        ```yaml
        env: [{name: VLLM_API_KEY, valueFrom: {secretKeyRef: {name: chat, key: key}}}]
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: chat}
        spec: {type: LoadBalancer, selector: {app: demo-0}, ports: [{port: 80, targetPort: 8000}]}
        ```

    References:
        - https://docs.vllm.ai/en/latest/usage/security.html
    """
    if service.type not in _OUTSIDE or service.node.at("spec", "loadBalancerSourceRanges"):
        return
    if any(_takes_anyone(engine) for engine in relations.engines_of(context.release, service)):
        message = f"a {service.type} opens engines that ask for no API key"
        fix = "Set VLLM_API_KEY from a Secret, or make it ClusterIP behind a gateway that asks who it is."
        yield Problem(service.node.at("spec", "type"), message, fix)


@rule("SEC012", "unguarded-routes-published", Severity.WARNING, scope=Service)
def unguarded_routes_published(service: Service, context: Context) -> Iterator[Problem]:
    """A Service that opens engines to the outside with all their routes, of which the API key guards only some.

    Why:
        The key guards /v1, /v2, /inference and /cohere. /pause, /abort_requests and others answer everyone, so
        anyone who reaches the port stops the engine.

    Bad:
        ```yaml
        env: [{name: VLLM_API_KEY, valueFrom: {secretKeyRef: {name: chat, key: key}}}]
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: chat}
        spec: {type: LoadBalancer, selector: {app: demo-0}, ports: [{port: 80, targetPort: 8000}]}
        ```

    Good:
        ```yaml
        env: [{name: VLLM_API_KEY, valueFrom: {secretKeyRef: {name: chat, key: key}}}]
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: chat}
        spec: {selector: {app: demo-0}, ports: [{port: 80, targetPort: 8000}]}
        ```

    References:
        - https://docs.vllm.ai/en/latest/usage/security.html (endpoints without authentication)
    """
    if service.type in _OUTSIDE and not service.node.at("spec", "loadBalancerSourceRanges"):
        engines = relations.engines_of(context.release, service)
        if engines and not any(_takes_anyone(engine) for engine in engines):
            message = f"a {service.type} opens routes that no API key guards, such as {_UNGUARDED}"
            fix = "Publish only /v1 through a gateway or Ingress."
            yield Problem(service.node.at("spec", "type"), message, fix)


@rule("SEC013", "every-route-published", Severity.WARNING, scope=Route)
def every_route_published(route: Route, context: Context) -> Iterator[Problem]:
    """A route or Ingress that sends every path straight to engines.

    Why:
        /pause, /abort_requests, /metrics and others of an engine answer everyone; no API key guards them. What
        clients need begins with /v1.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B]
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: chat}
        spec: {selector: {app: demo-0}, ports: [{port: 8000}]}
        ---
        apiVersion: networking.k8s.io/v1
        kind: Ingress
        metadata: {name: chat}
        spec:
          rules:
            - http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: chat, port: {number: 8000}}}}]}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B]
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: chat}
        spec: {selector: {app: demo-0}, ports: [{port: 8000}]}
        ---
        apiVersion: networking.k8s.io/v1
        kind: Ingress
        metadata: {name: chat}
        spec:
          rules:
            - http: {paths: [{path: /v1, pathType: Prefix, backend: {service: {name: chat, port: {number: 8000}}}}]}
        ```

    References:
        - https://docs.vllm.ai/en/latest/usage/security.html (endpoints without authentication)
    """
    if route.object.kind not in ("HTTPRoute", "Ingress"):
        return
    for backend in route.backends:
        if backend.kind == "Service" and _whole_site(backend.node, route):
            found = context.release.find("Service", backend.name, backend.namespace)
            service = _services(context.release).get(id(found)) if found else None
            if service and relations.engines_of(context.release, service):
                message = f"every path goes to engines, also {_UNGUARDED}, which no API key guards"
                yield Problem(backend, message, "Send only /v1 to the engines.", Severity.WARNING)


def _takes_anyone(engine: Engine) -> bool:
    keyed = "api-key" in engine.arguments or "VLLM_API_KEY" in engine.variables
    unseen = engine.arguments.open or not engine.container.complete or "config" in engine.arguments
    return not keyed and not unseen


def _whole_site(backend: object, route: Route) -> bool:
    """Whether a backend gets "/" with all below."""
    from vllm_phases.model import Node

    assert isinstance(backend, Node)
    if route.object.kind == "Ingress":
        path = backend.document.root.at(*backend.path[:-2])
        return path.text("pathType") != "Exact" and path.text("path") in ("", "/")
    rule_of = backend.document.root.at(*backend.path[:-2])
    matches = list(rule_of.items("matches"))
    if any(node.text("type") == "URLRewrite" for node in rule_of.items("filters")):
        return False
    return not matches or any(
        match.text("path", "type") in ("", "PathPrefix") and match.text("path", "value") in ("", "/")
        for match in matches
    )


@functools.lru_cache(maxsize=4)
def _services(release: Release) -> dict[int, Service]:
    return {id(service.object): service for service in release.services}
