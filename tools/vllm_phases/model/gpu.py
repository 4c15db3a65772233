"""What a container asks of GPUs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from vllm_phases import catalogue

if TYPE_CHECKING:
    from vllm_phases.model.container import Container
    from vllm_phases.model.pod import Pod
    from vllm_phases.sources.document import Node

Kind = Literal["none", "whole", "slice", "hami", "claim", "unknown"]

_HAMI = ("gpumem", "gpumem-percentage", "gpucores", "priority")


@dataclass(frozen=True)
class GpuRequest:
    """The GPUs of one container.

    kind      none; whole cards; slice (MIG, a shared or volcano resource); hami: cards with a share of their
              memory or cores; claim: dynamic resource allocation; unknown: another way, such as compose's
              count: all
    resource  the extended resource's name, "" without one
    count     how many; None where it cannot be known
    node      the number, or where one would stand
    shares    HAMi's resources by the part of their name after the slash, in limits or else requests
    claims    the names under resources.claims
    """

    kind: Kind
    resource: str
    count: int | None
    node: Node
    shares: dict[str, Node]
    claims: tuple[Node, ...]

    @property
    def vendor(self) -> str:
        """The maker of the GPU that the resource belongs to, "" where it is not known."""
        known = _known(self.resource)
        return known[1] if known else ""


def gpu_request(pod: Pod, container: Container) -> GpuRequest:
    """What a container asks for, in whichever way its file says it."""
    if pod.platform == "kubernetes":
        return _kubernetes(container)
    if pod.platform == "compose":
        return _compose(container)
    return _command_line(container)


def _kubernetes(container: Container) -> GpuRequest:
    resources = {**container.requests(), **container.limits()}
    shares = {
        name.rpartition("/")[2]: node
        for name, node in resources.items()
        if name.startswith("nvidia.com/") and name.rpartition("/")[2] in _HAMI
    }
    claims = tuple(container.node.items("resources", "claims"))
    for name, node in resources.items():
        if known := _known(name):
            kind: Kind = "hami" if shares else known[0]
            return GpuRequest(kind, name, node.number(), node, shares, claims)
    where = container.node.at("resources", "limits")
    if shares:  # HAMi adds nvidia.com/gpu itself
        return GpuRequest("hami", "nvidia.com/gpu", 1, next(iter(shares.values())), shares, claims)
    return GpuRequest("claim" if claims else "none", "", None if claims else 0, where, {}, claims)


def _compose(container: Container) -> GpuRequest:
    node = container.node.at("deploy", "resources", "reservations", "devices")
    for device in node.items():
        capabilities = {item.text() for item in device.items("capabilities")}
        if "gpu" in capabilities or "nvidia" in capabilities:
            listed = list(device.items("device_ids"))
            count = len(listed) if listed else device.number("count")
            return GpuRequest("whole" if count else "unknown", "", count, device, {}, ())
    shorthand = container.node.at("gpus")
    runtime = container.node.text("runtime") == "nvidia" or container.node.at("devices")
    if shorthand or runtime:
        return GpuRequest("unknown", "", None, shorthand, {}, ())
    return GpuRequest("none", "", 0, node, {}, ())


def _command_line(container: Container) -> GpuRequest:
    """Without a container every card of the machine is there; `docker run` names them with --gpus."""
    options, node = container.options, container.node
    if options is None:
        return GpuRequest("unknown", "", None, node, {}, ())
    if not {"gpus", "runtime", "device"} & {option.name for option in options.options}:
        return GpuRequest("none", "", 0, node, {}, ())
    count = options.number("gpus")
    return GpuRequest("whole" if count else "unknown", "", count, node, {}, ())


@cache
def _known(resource: str) -> tuple[Kind, str] | None:
    """What a resource gives, and its vendor; None for one that is no GPU."""
    for entry in catalogue.facts("gpu_resources").values():
        if re.fullmatch(entry["pattern"], resource):
            return entry["gives"], entry["vendor"]
    return None
