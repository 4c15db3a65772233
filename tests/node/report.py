"""What one wants to see of a cluster after a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cluster.control_plane import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.control_plane import ControlPlane

OVERVIEW = (
    ("get", "pods", "-A", "-o", "wide"),
    ("get", "events", "-A", "--sort-by=.lastTimestamp", "--field-selector=type!=Normal"),
)


def cluster_report(cluster: ControlPlane) -> str:
    """Return pods, warnings, the end of each test pod's logs, and of the logs of the node's own parts."""
    return "\n\n".join([*outputs(cluster), *logs(cluster)])


def outputs(cluster: ControlPlane) -> Iterator[str]:
    """Yield kubectl's commands with their output, or with the error where that is all there is."""
    for command in (*OVERVIEW, *(("logs", "--all-containers", "--tail=30", *pod) for pod in pods(cluster))):
        try:
            yield f"$ kubectl {' '.join(command)}\n{cluster.kubectl(*command)}"
        except CommandError as error:
            yield str(error)


def pods(cluster: ControlPlane) -> list[tuple[str, str, str]]:
    """Name the pods of the tests, and any that is not Ready, as arguments of kubectl."""
    try:
        found = cluster.get("pods", "-A")
    except CommandError:
        return []
    names = [(pod["metadata"]["name"], "-n", pod["metadata"]["namespace"]) for pod in found]
    return [
        name for name, pod in zip(names, found, strict=True) if name[2].startswith("test-") or not ready(pod)
    ]


def ready(pod: Any) -> bool:
    """Whether a pod is Ready."""
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def logs(cluster: ControlPlane) -> Iterator[str]:
    """Yield the ends of the logs that the programs of a cluster of the test's own wrote."""
    for log in sorted(cluster.folder.glob("*.log")):
        yield f"{log.name}:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-10:])
