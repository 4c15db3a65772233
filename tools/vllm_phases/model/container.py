"""Containers, from whichever kind of file they come."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vllm_phases.model.arguments import Arguments
    from vllm_phases.model.command import Invocation
    from vllm_phases.sources.document import Node
    from vllm_phases.sources.shell import Word

ProbeKind = Literal["startup", "liveness", "readiness"]

_IMAGE = re.compile(r"(?P<path>[^@]*?)(?::(?P<tag>[\w][\w.-]*))?(?:@(?P<digest>.+))?")
_SLEEP = re.compile(r"(?:^|[\s;&])sleep\s+(\d+)(s|m|h)?\b")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Image:
    """An image reference: "registry/path/name:tag@digest"; name is the last part of the path."""

    text: str
    path: str
    name: str
    tag: str
    digest: str
    node: Node


@dataclass(frozen=True)
class Variable:
    """An environment variable.

    value   its text with $(…) references resolved; None where something else decides it
    source  "value", or what decides it: "field status.podIP", "secret NAME KEY", "configMap NAME KEY",
            "resource limits.cpu", "host" (docker takes it from the shell)
    word    where a command line sets it
    """

    name: str
    value: str | None
    source: str
    node: Node
    word: Word | None = None


@dataclass(frozen=True)
class Port:
    """A port that a container declares."""

    name: str
    number: int | None
    host_port: int | None
    node: Node


@dataclass(frozen=True)
class Mount:
    """A volume at a path of the container; volume is the pod volume's name, or the host path for docker."""

    volume: str
    path: str
    sub_path: str
    read_only: bool
    node: Node


@dataclass(frozen=True)
class Probe:
    """A probe; kind of action is "httpGet", "tcpSocket", "exec" or "grpc". Times are in seconds."""

    kind: ProbeKind
    action: str
    path: str
    port: int | None
    initial_delay: int
    period: int
    timeout: int
    failures: int
    node: Node

    @property
    def budget(self) -> int:
        """Seconds after the start of the container until the probe gives up."""
        return self.initial_delay + self.period * self.failures


@dataclass(frozen=True)
class PreStop:
    """The preStop hook; seconds is how long it sleeps, None where that cannot be seen."""

    seconds: int | None
    node: Node


@dataclass(frozen=True, eq=False, repr=False)
class Container:
    """A container.

    words        command and args, or entrypoint and command, with $(…) references resolved
    has_command  whether the image's entrypoint is replaced
    variables    by name; complete is False where more may come from something that is not here (envFrom)
    init         an init container; with restartPolicy Always it is a native sidecar
    options      of `docker run`, where that starts it
    invocation   the command of a script, where that starts it
    """

    node: Node
    name: str
    image: Image
    words: tuple[Word, ...]
    has_command: bool
    variables: Mapping[str, Variable]
    complete: bool
    ports: tuple[Port, ...]
    mounts: tuple[Mount, ...]
    init: bool = False
    options: Arguments | None = None
    invocation: Invocation | None = None

    @property
    def native_sidecar(self) -> bool:
        """Whether it is an init container that keeps running beside the others."""
        return self.init and self.node.text("restartPolicy") == "Always"

    def value(self, variable: str) -> str | None:
        """The known value of a variable; None where it has none."""
        found = self.variables.get(variable)
        return found.value if found else None

    def limits(self) -> Mapping[str, Node]:
        """resources.limits, by resource name."""
        return self._resources["limits"]

    def requests(self) -> Mapping[str, Node]:
        """resources.requests, by resource name."""
        return self._resources["requests"]

    @functools.cached_property
    def _resources(self) -> dict[str, dict[str, Node]]:
        return {part: dict(self.node.entries("resources", part)) for part in ("limits", "requests")}

    def probe(self, kind: ProbeKind) -> Probe | None:
        """One of its probes, with the defaults of Kubernetes filled in."""
        return self._probes[kind]

    @functools.cached_property
    def _probes(self) -> dict[ProbeKind, Probe | None]:
        kinds: tuple[ProbeKind, ...] = ("startup", "liveness", "readiness")
        return {kind: self._probe(kind) for kind in kinds}

    def _probe(self, kind: ProbeKind) -> Probe | None:
        node = self.node.at(f"{kind}Probe")
        actions = [name for name in ("httpGet", "tcpSocket", "exec", "grpc") if node.at(name)]
        if not actions:
            return None
        seconds = {
            field: node.number(field) if node.at(field) else default
            for field, default in (
                ("initialDelaySeconds", 0),
                ("periodSeconds", 10),
                ("timeoutSeconds", 1),
                ("failureThreshold", 3),
            )
        }
        delay, period, timeout, failures = (value or 0 for value in seconds.values())
        port = self.port_number(node.text(actions[0], "port"))
        path = node.text(actions[0], "path")
        return Probe(kind, actions[0], path, port, delay, period, timeout, failures, node)

    @functools.cached_property
    def pre_stop(self) -> PreStop | None:
        """Its preStop hook."""
        node = self.node.at("lifecycle", "preStop")
        if not node:
            return None
        if node.at("sleep"):
            return PreStop(node.number("sleep", "seconds"), node)
        script = " ".join(item.text() for item in node.items("exec", "command"))
        sleeps = _SLEEP.findall(script)
        return PreStop(sum(int(count) * _SECONDS[unit] for count, unit in sleeps) if sleeps else None, node)

    def port_number(self, port: str) -> int | None:
        """The number of a port that is given by name or number; None for a name that is not declared."""
        if port.isdecimal():
            return int(port)
        return next((declared.number for declared in self.ports if declared.name == port), None)


def image(text: str, node: Node) -> Image:
    """Read an image reference; whatever it is, something comes out."""
    match = _IMAGE.fullmatch(text)
    path = match["path"] if match else text
    tag, digest = (match["tag"] or "", match["digest"] or "") if match else ("", "")
    return Image(text, path, path.rsplit("/", 1)[-1], tag, digest, node)
