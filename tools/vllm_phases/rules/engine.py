"""The containers that run `vllm serve`, wherever they stand in an object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vllm_phases.manifests import Manifest

_COMPONENT = "app.kubernetes.io/component"


@dataclass(frozen=True)
class Engine:
    """One engine container: the words after `vllm serve`, its variables, and the role label of its pod."""

    manifest: Manifest
    container: str
    arguments: tuple[str, ...]
    environment: tuple[str, ...]
    component: str


def engines(manifest: Manifest) -> Iterator[Engine]:
    """Every engine container of an object, in whatever kind of workload its pod template stands."""
    for metadata, spec in _pods(manifest.document):
        for container in spec["containers"]:
            arguments = _arguments(container)
            if arguments is not None:
                environment = tuple(str(variable.get("name", "")) for variable in container.get("env") or ())
                component = str((metadata.get("labels") or {}).get(_COMPONENT, ""))
                yield Engine(manifest, str(container.get("name", "")), arguments, environment, component)


def _pods(node: Any) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Metadata and specification of a pod and of every pod template inside an object."""
    if isinstance(node, dict):
        spec = node.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield node.get("metadata") or {}, spec
        for below in node.values():
            yield from _pods(below)
    elif isinstance(node, list):
        for below in node:
            yield from _pods(below)


def _arguments(container: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The words after `vllm serve`; None for a container that runs something else.

    A container without a command that is named `vllm` runs its image's entrypoint, `vllm serve` since 0.11.
    """
    command = [str(word) for word in container.get("command") or ()]
    words = command + [str(word) for word in container.get("args") or ()]
    if start := _start(words):
        return tuple(words[start:])
    return tuple(words) if not command and container.get("name") == "vllm" else None


def _start(words: Sequence[str]) -> int:
    """The position after the words that start the server; 0 when they do not."""
    for position, word in enumerate(words):
        if word == "vllm.entrypoints.openai.api_server":
            return position + 1
        if PurePath(word).name == "vllm" and words[position + 1 : position + 2] == ["serve"]:
            return position + 2
    return 0
