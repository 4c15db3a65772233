"""What the tests of this folder do with a release, and read of it from the API server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .control_plane import ControlPlane


class Helm(Protocol):
    """One of the two Helms, acting in the namespace of the test."""

    def __call__(self, *args: str | Path) -> str: ...


class Get(Protocol):
    """`kubectl get` in the namespace of the test."""

    def __call__(self, *args: str) -> Any: ...


def eventually(read: Callable[[], Any], expected: Any, seconds: float = 30) -> None:
    """Read until the value is the expected one: controllers act a moment after Helm returns."""
    deadline = time.monotonic() + seconds
    while (value := read()) != expected and time.monotonic() < deadline:
        time.sleep(0.2)
    assert value == expected, f"{value} is not {expected}, even after {seconds} s"


def pods(get: Get, release: str = "demo") -> list[Any]:
    """The engine pods of a release, but for those about to end."""
    selector = f"app.kubernetes.io/instance={release},app.kubernetes.io/component=server"
    return [pod for pod in get("pods", "-l", selector) if "deletionTimestamp" not in pod["metadata"]]


def arguments(get: Get) -> list[str]:
    """What the engine of release `demo` is started with."""
    containers = get("deployment", "demo-server")["spec"]["template"]["spec"]["containers"]
    args: list[str] = next(each["args"] for each in containers if each["name"] == "vllm")
    return args


def endpoints(get: Get, service: str) -> set[str]:
    """The addresses behind a Service."""
    slices = get("endpointslices", "-l", f"kubernetes.io/service-name={service}")
    return {
        address for each in slices for target in each["endpoints"] or () for address in target["addresses"]
    }


def selectors(get: Get) -> dict[str, Any]:
    """Everything that selects pods, by kind and name."""
    found = get("deployments,services,networkpolicies,poddisruptionbudgets")
    keys = ("selector", "podSelector")
    return {
        f"{each['kind']}/{each['metadata']['name']}": {key: each["spec"].get(key) for key in keys}
        for each in found
    }


def left(control_plane: ControlPlane, namespace: str) -> set[str]:
    """Everything in the namespace, but for the events of the past."""
    kinds = control_plane.kubectl("api-resources", "--namespaced", "--verbs=list,create", "-o", "name")
    wanted = ",".join(kind for kind in kinds.split() if not kind.startswith("events"))
    return set(control_plane.kubectl("get", wanted, "--namespace", namespace, "-o", "name").split())
