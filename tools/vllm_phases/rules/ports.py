"""The ports that pods listen on, as far as their commands tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm_phases.model import relations

if TYPE_CHECKING:
    from vllm_phases.model import Engine, Pod, Release, Sidecar

_SIDECAR_PORT = 8000
_UNSEEN = ("configuration", "configuration-file")
_ACTIVE = ("llm-d.ai/active-ports", "inference.networking.k8s.io/active-ports")


def engine_ports(engine: Engine) -> frozenset[int] | None:
    """Where an engine's API servers listen; none when it is headless, None where that cannot be known."""
    if engine.truth("headless"):
        return frozenset()
    if engine.port is None:
        return None
    if not engine.truth("data-parallel-multi-port-external-lb"):
        return frozenset((engine.port,))
    local = "data-parallel-size-local"
    ranks = engine.number(local if local in engine.arguments else "data-parallel-size")
    return None if ranks is None else frozenset(range(engine.port, engine.port + ranks))


def configured_elsewhere(sidecar: Sidecar) -> bool:
    """Whether a sidecar may have options that its command line does not show."""
    return sidecar.arguments.open or any(name in sidecar.arguments for name in _UNSEEN)


def sidecar_ports(sidecar: Sidecar) -> frozenset[int] | None:
    """Where a sidecar listens: a port for each data parallel rank; None where that cannot be known."""
    given = sidecar.arguments
    if "port" not in given and configured_elsewhere(sidecar):
        return None
    port = given.number("port") if "port" in given else _SIDECAR_PORT
    ranks = given.number("data-parallel-size") if "data-parallel-size" in given else 1
    return None if port is None or ranks is None else frozenset(range(port, port + ranks))


def sidecar_in(release: Release, pod: Pod) -> Sidecar | None:
    """The routing sidecar of a pod."""
    return next(iter(release.index.sidecars_by_pod.get(id(pod), ())), None)


def served(release: Release, pod: Pod) -> frozenset[int] | None:
    """Every port on which a pod takes requests; None where that cannot be known.

    Of containers that are neither engine nor sidecar, the ports that they declare.
    """
    engines = relations.engines_in(release, pod)
    sidecar = sidecar_in(release, pod)
    if not engines and sidecar is None:
        return None
    found = [engine_ports(engine) for engine in engines]
    if sidecar is not None:
        found.append(sidecar_ports(sidecar))
    taken = {id(engine.container) for engine in engines}
    if sidecar is not None:
        taken.add(id(sidecar.container))
    others = (container for container in pod.containers if id(container) not in taken)
    declared = frozenset(port.number for other in others for port in other.ports if port.number is not None)
    known = [ports for ports in found if ports is not None]
    return declared.union(*known) if len(known) == len(found) else None


def wanted(pod: Pod, pool_ports: frozenset[int]) -> frozenset[int]:
    """The ports of a pool on which a pod must listen: those that its annotation names, or all."""
    named = next((pod.annotations[name] for name in _ACTIVE if name in pod.annotations), None)
    if named is None:
        return pool_ports
    return frozenset(int(part) for part in named.split(",") if part.strip().isdecimal())
