"""PKG: docker compose files that run engines and routers (https://github.com/compose-spec/compose-spec)."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Document, Engine, Pod, Router, relations
from vllm_phases.rules import repairs
from vllm_phases.rules.registry import Context, Problem, rule
from vllm_phases.sources.changes import Substitute
from vllm_phases.sources.repair import Repair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Node, Release

_QUOTED = re.compile(r"(\"[^\"]*\"|'[^']*')")
_READERS = ("VLLM_", "LMCACHE_", "MOONCAKE_", "HF_", "NCCL_", "UCX_", "CUDA_", "NVIDIA_", "TORCH_", "PYTHON")
_INTERPOLATED = re.compile(r"(?<!\$)\$(?:\{(\w+)\}|([A-Za-z_]\w*))")
_LOCAL = ("localhost", "127.0.0.1", "[::1]", "0.0.0.0")
_SLOW_START = 300  # seconds; loading and compiling a small model takes minutes
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}


@rule(
    "PKG020",
    "quotes-in-environment-list",
    Severity.ERROR,
    scope=Pod,
    fix="takes the quotes off, for variables of vLLM and its libraries.",
)
def quotes_in_environment_list(pod: Pod, context: Context) -> Iterator[Problem]:
    """A value in the list form of `environment` that stands in quotes of its own.

    Why:
        compose does not take quotes off there, as a shell would: they belong to the value, so that a path
        begins with a quotation mark and is not found.

    Bad:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B]
            environment:
              - LMCACHE_CONFIG_FILE="/opt/kv/local.yaml"
        ```

    Good:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B]
            environment:
              - "LMCACHE_CONFIG_FILE=/opt/kv/local.yaml"
              - SETTINGS={"a":"b"}
        ```

    References:
        - https://docs.docker.com/reference/compose-file/services/#environment
        - https://github.com/LMCache/LMCache/issues/906
    """
    if pod.platform != "compose":
        return
    for item in pod.spec.items("environment"):
        name, _, value = item.text().partition("=")
        if _QUOTED.fullmatch(value) and len(value) > 1:
            message = f"{name} is {value}, in which the quotes belong to the value"
            fix, known = f"Write {name}={value[1:-1]}.", name.startswith(_READERS)
            repair = Repair((Substitute(item, 0, len(name) + 1, value, value[1:-1]),)) if known else None
            yield Problem(item, message, fix, None if known else Severity.WARNING, repair)


@rule("PKG021", "bad-device-reservation", Severity.ERROR, scope=Pod, fix="adds the capability gpu.")
def bad_device_reservation(pod: Pod, context: Context) -> Iterator[Problem]:
    """A reservation of GPUs that docker compose refuses.

    Why:
        It needs capabilities, and takes either a count or device_ids.

    Bad:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B]
            deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1}]}}}
        ```

    Good:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B]
            deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}}}
        ```

    References:
        - https://docs.docker.com/reference/compose-file/deploy/#devices
    """
    if pod.platform != "compose":
        return
    for device in pod.spec.items("deploy", "resources", "reservations", "devices"):
        if not device.at("capabilities"):
            repair = repairs.entry_set(device, "capabilities", ["gpu"])
            yield Problem(device, "a device has no capabilities", "Add capabilities: [gpu].", repair=repair)
        if device.at("count") and device.at("device_ids"):
            yield Problem(device, "a device has both count and device_ids", "Leave one of them out.")


@rule("PKG022", "unknown-dependency", Severity.ERROR, scope=Pod)
def unknown_dependency(pod: Pod, context: Context) -> Iterator[Problem]:
    """A service that depends on one that is not there, or on the health of one that never says how it is.

    Why:
        compose refuses an unknown name. With `condition: service_healthy` and no healthcheck it ends with
        `container … has no healthcheck configured`; vLLM's image has none.

    Bad:
        ```compose
        services:
          engine: {image: "vllm/vllm-openai:v0.33.0", command: [Qwen/Qwen3-8B]}
          web: {image: "example/web:1", depends_on: {engine: {condition: service_healthy}}}
        ```

    Good:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B]
            healthcheck: {test: [CMD, curl, -f, "http://localhost:8000/health"], start_period: 600s}
          web: {image: "example/web:1", depends_on: {engine: {condition: service_healthy}}}
        ```

    References:
        - https://docs.docker.com/reference/compose-file/services/#depends_on
    """
    services = pod.spec.document.root.at("services")
    for name, node in _dependencies(pod):
        target = services.at(name)
        whole = not pod.spec.document.root.at("include") and not pod.spec.at("extends")
        if not isinstance(target.value, dict):
            if (
                whole
                and name not in _service_names(context.release)
                and node.at("required").value is not False
            ):
                yield Problem(node, f"depends_on names {name}, which is no service here", "Name a service.")
        elif node.text("condition") == "service_healthy" and _is_official(target, context):
            check = target.at("healthcheck")
            if not check or check.at("disable").value is True or check.text("test") == "NONE":
                fix = "Give it a healthcheck: curl -f http://localhost:8000/health, start_period 600s."
                yield Problem(node, f"waits for the health of {name}, which has no healthcheck", fix)


@rule("PKG023", "dependency-without-health", Severity.WARNING, scope=Router)
def dependency_without_health(router: Router, context: Context) -> Iterator[Problem]:
    """A router that starts with, not after, its engines.

    Why:
        `depends_on` as a list waits until the container runs, while the model takes minutes to load: the router
        finds nobody, and some give up.

    Bad:
        ```compose
        services:
          prefill: {image: "vllm/vllm-openai:v0.33.0", command: [Qwen/Qwen3-8B]}
          router:
            image: vllm/vllm-router:v0.1.0
            command: [vllm-router, --worker-urls, "http://prefill:8000"]
            depends_on: [prefill]
        ```

    Good:
        ```compose
        services:
          prefill:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B]
            healthcheck: {test: [CMD, curl, -f, "http://localhost:8000/health"], start_period: 600s}
          router:
            image: vllm/vllm-router:v0.1.0
            command: [vllm-router, --worker-urls, "http://prefill:8000"]
            depends_on: {prefill: {condition: service_healthy}}
        ```

    References:
        - https://docs.docker.com/compose/how-tos/startup-order/
    """
    if router.pod.platform != "compose":
        return
    engines = _engine_nodes(context.release)
    for name, node in _dependencies(router.pod):
        target = router.pod.spec.document.root.at("services", name)
        waits = node.text("condition") in ("service_healthy", "service_completed_successfully")
        if (id(target.document), target.path) in engines and not waits:
            message = f"the router waits for the container of {name}, not until its model is loaded"
            yield Problem(node, message, "Set condition: service_healthy, and give the engine a healthcheck.")


@rule("PKG024", "short-start-period", Severity.WARNING, scope=Engine)
def short_start_period(engine: Engine, context: Context) -> Iterator[Problem]:
    """A healthcheck that gives up before a model is loaded.

    Why:
        Whatever waits for the health of the engine fails with it: `dependency failed to start: container … is
        unhealthy`.

    Bad:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B]
            healthcheck: {test: [CMD, curl, -f, "http://localhost:8000/health"], interval: 10s, retries: 3}
        ```

    Good:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B]
            healthcheck: {test: [CMD, curl, -f, "http://localhost:8000/health"], start_period: 10m, retries: 3}
        ```

    References:
        - https://docs.docker.com/reference/dockerfile/#healthcheck
    """
    check = engine.node.at("healthcheck")
    if engine.pod.platform != "compose" or not check or check.at("disable").value is True:
        return
    times = [_seconds(check.text(field)) for field in ("start_period", "interval")]
    start, interval = times[0] or 0.0, times[1] or 30.0
    retries = check.number("retries") or 3
    if any("$" in check.text(field) for field in ("start_period", "interval", "retries")):
        return
    budget = start + interval * retries
    if budget < _SLOW_START:
        message = (
            f"the healthcheck gives up after {budget:.0f} s, which is less than most models take to load"
        )
        yield Problem(check, message, "Set start_period to 10m or more.")


@rule("PKG025", "router-to-itself", Severity.ERROR, scope=Router)
def router_to_itself(router: Router, context: Context) -> Iterator[Problem]:
    """A router in a container of its own that looks for engines at localhost.

    Why:
        localhost is the router's own container there; the engines are found by the names of their services.

    Bad:
        ```compose
        services:
          engine: {image: "vllm/vllm-openai:v0.33.0", command: [Qwen/Qwen3-8B]}
          router: {image: "vllm/vllm-router:v0.1.0", command: [vllm-router, --worker-urls, "http://localhost:8000"]}
        ```

    Good:
        ```compose
        services:
          engine: {image: "vllm/vllm-openai:v0.33.0", command: [Qwen/Qwen3-8B]}
          router: {image: "vllm/vllm-router:v0.1.0", command: [vllm-router, --worker-urls, "http://engine:8000"]}
        ```
        ```compose
        services:
          engine: {image: "vllm/vllm-openai:v0.33.0", command: [Qwen/Qwen3-8B], network_mode: host}
          router:
            image: vllm/vllm-router:v0.1.0
            network_mode: host
            command: [vllm-router, --worker-urls, "http://localhost:8000"]
        ```

    References:
        - https://docs.docker.com/compose/how-tos/networking/
    """
    if router.pod.platform != "compose" or router.pod.spec.at("network_mode"):
        return
    for url in relations.urls(router, "prefill", "decode", "worker-urls", "static-backends"):
        if url.host in _LOCAL:
            fix = "Write the name of the engine's service in place of it."
            yield Problem(url.word, f"{url.host} is the router's own container", fix)


@rule("PKG026", "ports-on-host-network", Severity.WARNING, scope=Pod)
def ports_on_host_network(pod: Pod, context: Context) -> Iterator[Problem]:
    """Published ports of a service on the host's network.

    Why:
        docker drops them: the program's own port is the host's port.

    Bad:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B]
            network_mode: host
            ports: ["9000:8000"]
        ```

    Good:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B, --port=9000]
            network_mode: host
        ```

    References:
        - https://docs.docker.com/engine/network/drivers/host/
    """
    if pod.platform == "compose" and pod.spec.text("network_mode") == "host" and pod.spec.at("ports").value:
        fix = "Remove ports, and give the program the port that it shall have."
        yield Problem(pod.spec.at("ports"), "ports of a service on the host's network are dropped", fix)


@rule("PKG027", "host-port-twice", Severity.ERROR, scope=Document)
def host_port_twice(document: Document, context: Context) -> Iterator[Problem]:
    """Two services of a compose file that publish one port of the host.

    Why:
        The second one does not start: `port is already allocated`.

    Bad:
        ```compose
        services:
          prefill: {image: "vllm/vllm-openai:v0.33.0", command: [Qwen/Qwen3-8B], ports: ["8000:8000"]}
          decode: {image: "vllm/vllm-openai:v0.33.0", command: [Qwen/Qwen3-8B], ports: ["8000:8000"]}
        ```

    Good:
        ```compose
        services:
          prefill: {image: "vllm/vllm-openai:v0.33.0", command: [Qwen/Qwen3-8B], ports: ["8001:8000"]}
          decode: {image: "vllm/vllm-openai:v0.33.0", command: [Qwen/Qwen3-8B], ports: ["127.0.0.2:8001:8000"]}
          old: {image: "vllm/vllm-openai:v0.33.0", command: [Qwen/Qwen3-8B], ports: ["8001:8000"], profiles: [old]}
        ```

    References:
        - https://docs.docker.com/reference/compose-file/services/#ports
    """
    if document.kind != "compose":
        return
    taken: dict[tuple[str, str], str] = {}
    for name, service in document.root.entries("services"):
        for node in service.items("ports") if not service.at("profiles") else ():
            place = _published(node)
            if place is not None and taken.setdefault(place, name) != name:
                message = f"port {place[1]} of the host is published by {taken[place]} already"
                yield Problem(node, message, "Give each service another port of the host.")


@rule("PKG028", "variable-of-host-shell", Severity.WARNING, scope=Pod)
def variable_of_host_shell(pod: Pod, context: Context) -> Iterator[Problem]:
    """A command with $NAME where NAME is set for the container: compose reads the host's variable.

    Why:
        compose replaces $NAME before the container starts, from the shell that runs it or .env, and puts
        nothing where it has no value. `environment` does not count for it.

    Bad:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            entrypoint: [bash, -c]
            command: ["vllm serve $MODEL"]
            environment: {MODEL: Qwen/Qwen3-8B}
        ```

    Good:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            entrypoint: [bash, -c]
            command: ["vllm serve $$MODEL"]
            environment: {MODEL: Qwen/Qwen3-8B}
        ```
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: ["${MODEL}"]
            environment: {MODEL: "${MODEL}"}
        ```

    References:
        - https://docs.docker.com/reference/compose-file/interpolation/
    """
    if pod.platform != "compose":
        return
    for node in (*_texts(pod.spec.at("entrypoint")), *_texts(pod.spec.at("command"))):
        for match in _INTERPOLATED.finditer(node.text()):
            name = match[1] or match[2]
            given = pod.containers[0].variables.get(name)
            if given is not None and given.source == "value" and given.value is not None:
                message = f"compose replaces {match[0]} by the host's {name}, not by the container's"
                yield Problem(node, message, f"Write ${match[0]} for the container's, or set {name} in .env.")


def _dependencies(pod: Pod) -> Iterator[tuple[str, Node]]:
    """The services that a service waits for."""
    if pod.platform == "compose":
        yield from pod.spec.entries("depends_on")
        yield from ((item.text(), item) for item in pod.spec.items("depends_on"))


def _texts(node: Node) -> Iterator[Node]:
    yield from node.items() if isinstance(node.value, list) else (node,)


def _is_official(service: Node, context: Context) -> bool:
    """Whether a service runs an engine of vLLM's own image, which has no healthcheck."""
    return (id(service.document), service.path) in _engine_nodes(context.release) and not service.at("build")


@functools.lru_cache(maxsize=4)
def _engine_nodes(release: Release) -> frozenset[tuple[int, tuple[str | int, ...]]]:
    nodes = (engine.node for engine in release.engines if engine.pod.platform == "compose")
    return frozenset((id(node.document), node.path) for node in nodes)


@functools.lru_cache(maxsize=4)
def _service_names(release: Release) -> frozenset[str]:
    """The services of all compose files, which may be merged."""
    return frozenset(pod.name for pod in release.pods if pod.platform == "compose")


def _published(node: Node) -> tuple[str, str] | None:
    """Address and port of the host that a port is published at; None where it is not fixed."""
    if isinstance(node.value, dict):
        address, port, protocol = node.text("host_ip"), node.text("published"), node.text("protocol")
    else:
        text, _, protocol = node.text().partition("/")
        address, _, port = text.rpartition(":")[0].rpartition(":")
    if not port.isdecimal() or "$" in address:
        return None
    return address or "0.0.0.0", f"{port}/udp" if protocol == "udp" else port


def _seconds(text: str) -> float | None:
    """A duration such as 1m30s in seconds."""
    found = re.findall(r"(\d+(?:\.\d+)?)(us|ms|s|m|h)", text)
    return sum(float(amount) * _UNITS[unit] for amount, unit in found) if found else None
