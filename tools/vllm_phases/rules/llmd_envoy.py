"""LLMD: the Envoy that stands before an endpoint picker, where its bootstrap is in a ConfigMap."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Release
from vllm_phases.rules import repairs
from vllm_phases.rules.registry import Context, Problem, rule
from vllm_phases.sources.changes import Set
from vllm_phases.sources.document import embedded
from vllm_phases.sources.repair import Repair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Node, Object, Picker

_FILTER = "envoy.filters.http.ext_proc"
_DESTINATION = "x-gateway-destination-endpoint"
_FORGEABLE = (_DESTINATION, "x-prefiller-host-port")
_HANGING = ("BUFFERED", "STREAMED", "BUFFERED_PARTIAL")


@lru_cache(maxsize=2)
def _bootstraps(release: Release) -> tuple[tuple[Object, Node], ...]:
    """Each ConfigMap with an Envoy that asks a picker, and the root of its bootstrap."""
    return tuple(
        (found, root)
        for found in release.of_kind("ConfigMap")
        for _, node in found.node.entries("data")
        if isinstance(node.value, str) and _FILTER in node.value and _DESTINATION in node.value
        if (root := embedded(node)) is not None
    )


def _chains(root: Node) -> Iterator[list[Node]]:
    """The HTTP filters of each listener that asks a picker, in order."""
    for listener in root.items("static_resources", "listeners"):
        for chain in listener.items("filter_chains"):
            for network in chain.items("filters"):
                filters = list(network.items("typed_config", "http_filters"))
                if any(one.text("name") == _FILTER for one in filters):
                    yield filters


def _asking(root: Node) -> Iterator[Node]:
    """The configuration of every filter that asks a picker."""
    for filters in _chains(root):
        yield from (one.at("typed_config") for one in filters if one.text("name") == _FILTER)


@rule(
    "LLMD060", "envoy-body-mode", Severity.ERROR, scope=Release, fix="sets the modes that the picker needs."
)
def envoy_body_mode(release: Release, context: Context) -> Iterator[Problem]:
    """Envoy gives bodies to the picker in a way that the picker does not answer.

    Why:
        The picker speaks FULL_DUPLEX_STREAMED, with trailers sent. In any other mode every request hangs until
        the client gives up; without SEND for trailers Envoy does not start.

    Bad:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: envoy}
        data:
          envoy.yaml: |
            static_resources:
              listeners:
                - filter_chains:
                    - filters:
                        - typed_config:
                            http_filters:
                              - name: envoy.filters.http.ext_proc
                                typed_config: {processing_mode: {request_body_mode: BUFFERED}}
              clusters:
                - {name: dst, original_dst_lb_config: {http_header_name: x-gateway-destination-endpoint}}
        ```

    Good:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: envoy}
        data:
          envoy.yaml: |
            static_resources:
              listeners:
                - filter_chains:
                    - filters:
                        - typed_config:
                            http_filters:
                              - name: envoy.filters.http.ext_proc
                                typed_config:
                                  processing_mode: {request_body_mode: FULL_DUPLEX_STREAMED, request_trailer_mode: SEND}
              clusters:
                - {name: dst, original_dst_lb_config: {http_header_name: x-gateway-destination-endpoint}}
        ```

    References:
        - observed with llm-d-router v0.10.0 and Envoy 1.40.0
    """
    for _, root in _bootstraps(release):
        for asking in _asking(root):
            mode = asking.at("processing_mode")
            for side in ("request", "response"):
                body, trailer = mode.at(f"{side}_body_mode"), mode.at(f"{side}_trailer_mode")
                if body.text() in _HANGING:
                    message = (
                        f"{side}_body_mode is {body.text()}, in which the picker lets every request hang"
                    )
                    repair = Repair((Set(body, "FULL_DUPLEX_STREAMED"),))
                    yield Problem(body, message, "Set it to FULL_DUPLEX_STREAMED.", repair=repair)
                elif body.text() == "FULL_DUPLEX_STREAMED" and trailer.text() != "SEND":
                    message = f"{side}_body_mode FULL_DUPLEX_STREAMED needs {side}_trailer_mode SEND"
                    where, fix = trailer if trailer else body, f"Set {side}_trailer_mode: SEND."
                    sending = repairs.entry_set(mode, f"{side}_trailer_mode", "SEND")
                    yield Problem(where, message, fix, repair=sending)


@rule("LLMD061", "envoy-route-timeout", Severity.WARNING, scope=Release)
def envoy_route_timeout(release: Release, context: Context) -> Iterator[Problem]:
    """Envoy's route to the engines has no timeout of its own, so 15 seconds count.

    Why:
        Envoy ends a request 15 s after it began unless the route says otherwise: long answers are cut off, or
        get 504.

    Bad:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: envoy}
        data:
          envoy.yaml: |
            static_resources:
              listeners:
                - filter_chains:
                    - filters:
                        - typed_config:
                            route_config: {virtual_hosts: [{routes: [{match: {prefix: /}, route: {cluster: dst}}]}]}
                            http_filters: [{name: envoy.filters.http.ext_proc}]
              clusters:
                - {name: dst, original_dst_lb_config: {http_header_name: x-gateway-destination-endpoint}}
        ```

    Good:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: envoy}
        data:
          envoy.yaml: |
            static_resources:
              listeners:
                - filter_chains:
                    - filters:
                        - typed_config:
                            route_config: {virtual_hosts: [{routes: [{match: {prefix: /}, route: {cluster: dst, timeout: 0s}}]}]}
                            http_filters: [{name: envoy.filters.http.ext_proc}]
              clusters:
                - {name: dst, original_dst_lb_config: {http_header_name: x-gateway-destination-endpoint}}
        ```

    References:
        - https://www.envoyproxy.io/docs/envoy/latest/faq/configuration/timeouts
    """
    for _, root in _bootstraps(release):
        for route in _routes(root):
            if route.at("cluster") and not route.at("timeout"):
                message = f"the route to {route.text('cluster')} has no timeout, so Envoy cuts requests off after 15 s"
                yield Problem(route, message, "Set timeout: 0s on the route.")


def _routes(root: Node) -> Iterator[Node]:
    """Every route of listeners that ask a picker."""
    for listener in root.items("static_resources", "listeners"):
        for chain in listener.items("filter_chains"):
            for network in chain.items("filters"):
                names = [one.text("name") for one in network.items("typed_config", "http_filters")]
                for host in network.items("typed_config", "route_config", "virtual_hosts"):
                    for route in host.items("routes") if _FILTER in names else ():
                        yield route.at("route")


@rule("LLMD062", "envoy-forged-destination", Severity.WARNING, scope=Release)
def envoy_forged_destination(release: Release, context: Context) -> Iterator[Problem]:
    """Clients may choose where Envoy or a sidecar sends their request.

    Why:
        Envoy and the sidecar follow headers that only the picker should write. A client's own
        x-prefiller-host-port makes the sidecar send the prompt to any address; with failure_mode_allow and the
        picker down, x-gateway-destination-endpoint reaches Envoy's own admin port.

    Bad:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: envoy}
        data:
          envoy.yaml: |
            static_resources:
              listeners: [{filter_chains: [{filters: [{typed_config: {http_filters: [{name: envoy.filters.http.ext_proc}]}}]}]}]
              clusters:
                - {name: dst, original_dst_lb_config: {http_header_name: x-gateway-destination-endpoint}}
        ```

    Good:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: envoy}
        data:
          envoy.yaml: |
            static_resources:
              listeners:
                - filter_chains:
                    - filters:
                        - typed_config:
                            http_filters:
                              - name: envoy.filters.http.header_mutation
                                typed_config:
                                  mutations:
                                    request_mutations: [{remove: x-gateway-destination-endpoint}, {remove: x-prefiller-host-port}]
                              - {name: envoy.filters.http.ext_proc}
              clusters:
                - {name: dst, original_dst_lb_config: {http_header_name: x-gateway-destination-endpoint}}
        ```

    References:
        - observed with llm-d-router v0.10.0 and Envoy 1.40.0
    """
    for _, root in _bootstraps(release):
        for filters in _chains(root):
            names = [one.text("name") for one in filters]
            before = filters[: names.index(_FILTER)]
            removed = str(
                [
                    one.value
                    for one in before
                    if "header_mutation" in one.text("name") or "lua" in one.text("name")
                ]
            )
            if missing := [header for header in _FORGEABLE if header not in removed]:
                message = f"nothing removes {' and '.join(missing)} from clients' requests before the picker is asked"
                fix = "Put envoy.filters.http.header_mutation that removes them before ext_proc."
                yield Problem(filters[names.index(_FILTER)], message, fix)


@rule("LLMD063", "envoy-picker-tls", Severity.ERROR, scope=Release)
def envoy_picker_tls(release: Release, context: Context) -> Iterator[Problem]:
    """Envoy and the picker of its pod do not agree on TLS.

    Why:
        The picker serves TLS unless --secure-serving=false. Where only one of them speaks it every request gets
        500 with an empty body.

    Bad:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: envoy}
        data:
          envoy.yaml: |
            static_resources:
              listeners:
                - filter_chains:
                    - filters:
                        - typed_config:
                            http_filters:
                              - name: envoy.filters.http.ext_proc
                                typed_config: {grpc_service: {envoy_grpc: {cluster_name: picker}}}
              clusters:
                - {name: picker}
                - {name: dst, original_dst_lb_config: {http_header_name: x-gateway-destination-endpoint}}
        ---
        containers: [{name: epp, image: 'ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0', args: [--pool-name=demo]}]
        volumes: [{name: envoy, configMap: {name: envoy}}]
        ```

    Good:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: envoy}
        data:
          envoy.yaml: |
            static_resources:
              listeners:
                - filter_chains:
                    - filters:
                        - typed_config:
                            http_filters:
                              - name: envoy.filters.http.ext_proc
                                typed_config: {grpc_service: {envoy_grpc: {cluster_name: picker}}}
              clusters:
                - {name: picker}
                - {name: dst, original_dst_lb_config: {http_header_name: x-gateway-destination-endpoint}}
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --secure-serving=false]
        volumes: [{name: envoy, configMap: {name: envoy}}]
        ```

    References:
        - observed with llm-d-router v0.10.0 and Envoy 1.40.0
    """
    for holder, root in _bootstraps(release):
        picker = _mounting(release, holder)
        names = {asking.text("grpc_service", "envoy_grpc", "cluster_name") for asking in _asking(root)}
        for cluster in root.items("static_resources", "clusters") if picker else ():
            if picker is None or cluster.text("name") not in names or picker.arguments.open:
                continue
            tls, serves = (
                bool(cluster.at("transport_socket")),
                picker.arguments.truth("secure-serving") is not False,
            )
            if tls != serves:
                ours, theirs = ("TLS", "plain gRPC") if tls else ("plain gRPC", "TLS")
                message = f"Envoy speaks {ours} to the picker, which serves {theirs}"
                fix = (
                    "Set --secure-serving=false on the picker."
                    if serves
                    else "Remove --secure-serving=false."
                )
                yield Problem(cluster, message, fix)


def _mounting(release: Release, holder: Object) -> Picker | None:
    """The picker whose pod has a ConfigMap for a volume."""
    for picker in release.pickers:
        names = {volume.text("configMap", "name") for volume in picker.pod.volumes.values()}
        if holder.name in names and picker.pod.namespace == holder.namespace:
            return picker
    return None
