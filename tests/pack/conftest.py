"""The command line in this process, and manifests to pack."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from vllm_phases.cli import run

if TYPE_CHECKING:
    from collections.abc import Callable

Pack = Any


@dataclass(frozen=True)
class Outcome:
    """Exit code, standard output and standard error of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def pack(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    """Run `vllm-phases pack` on objects, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str, objects: list[dict[str, Any]] | None = None) -> Outcome:
        given = []
        if objects is not None:
            Path("release.yaml").write_text("\n---\n".join(map(json.dumps, objects)))
            given = ["release.yaml"]
        code = run(["pack", *given, *words])
        return Outcome(code, *capsys.readouterr())

    return call


def deployment(name: str, replicas: int, limits: dict[str, Any], **pod: Any) -> dict[str, Any]:
    """A Deployment of one engine; annotations, labels and the scheduler may be given."""
    metadata = {"annotations": pod.pop("annotations", {}), "labels": pod.pop("labels", {})}
    container = {"name": "engine", "image": "vllm/vllm-openai:v0.33.0", "resources": {"limits": limits}}
    spec = {"schedulerName": "hami-scheduler", "containers": [container], **pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "template": {"metadata": metadata, "spec": spec}},
    }


def decode(replicas: int = 8, policy: str = "binpack") -> dict[str, Any]:
    """Decode on halves of cards."""
    annotations = {"hami.io/gpu-scheduler-policy": policy} if policy else {}
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 39000}
    return deployment("chat-decode", replicas, limits, annotations=annotations)


def prefill(replicas: int = 2) -> dict[str, Any]:
    """Prefill on cards of its own."""
    return deployment("chat-prefill", replicas, {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 100})
