"""The clusters that the tests of this folder run on: a node of their own, any cluster, or one that kind makes."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tests.cluster.control_plane import ControlPlane

from . import node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from .machine import Machine


@dataclass(frozen=True)
class Site:
    """A cluster, and what tests must know about it.

    `image` has Python, and the nodes have it or can pull it. `values` are what engines need there beyond the values
    file under test. `model` is a folder of the nodes with weights, which each namespace gets as the claim `model`;
    without it the values say where the weights come from. `machine` is the node where it is the tests' own.
    """

    cluster: ControlPlane
    image: str
    values: tuple[Path, ...]
    model: str = ""
    machine: Machine | None = None

    @contextmanager
    def namespace(self, level: str = "restricted") -> Iterator[str]:
        """Make a namespace with that Pod Security level, and delete it at the end."""
        with self.cluster.namespace({"pod-security.kubernetes.io/enforce": level}) as name:
            if self.model:
                self.cluster.apply(*model_claim(self.model, name), namespace=name)
            yield name


class Provider(Protocol):
    """Makes a cluster in a folder of its own, telling of its progress, and ends it at the end of the block."""

    def __call__(self, folder: Path, progress: Callable[[str], None]) -> AbstractContextManager[Site]: ...


def provider(config: pytest.Config) -> Provider:
    """Return what makes the cluster that the command line asks for."""
    values: tuple[Path, ...] = tuple(config.getoption("--cluster-values", ()))
    if kubeconfig := config.getoption("--kubeconfig", None):
        return partial(given_cluster, kubeconfig, values)
    if config.getoption("--kind", False):
        return partial(kind_cluster, values)
    return own_node


@contextmanager
def own_node(folder: Path, progress: Callable[[str], None]) -> Iterator[Site]:
    """A real node, made for the tests."""
    with node.running(folder, progress) as (cluster, machine):
        yield Site(cluster, node.IMAGE, (node.VALUES,), "/run/node/model", machine)


@contextmanager
def given_cluster(
    kubeconfig: Path, values: tuple[Path, ...], folder: Path, _: Callable[[str], None]
) -> Iterator[Site]:
    """A cluster that runs already."""
    cluster = ControlPlane(folder)
    flat = cluster.kubectl("config", "view", "--raw", "--flatten", f"--kubeconfig={kubeconfig}")
    (folder / "kubeconfig").write_text(flat)
    yield Site(cluster, "python:3.12-slim", values)


@contextmanager
def kind_cluster(values: tuple[Path, ...], folder: Path, progress: Callable[[str], None]) -> Iterator[Site]:
    """A cluster that kind makes of Docker containers."""
    if missing := [program for program in ("kind", "docker") if not shutil.which(program)]:
        pytest.skip(f"--kind needs {' and '.join(missing)} on the PATH")
    kubeconfig = folder / "kind"
    command = ["kind", "--name=vllm-phases", f"--kubeconfig={kubeconfig}"]
    progress("kind create cluster")
    subprocess.run([*command, "create", "cluster", "--wait=5m"], check=True)
    try:
        with given_cluster(kubeconfig, values, folder, progress) as site:
            yield site
    finally:
        subprocess.run([*command, "delete", "cluster"], check=True)


def model_claim(folder: str, namespace: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a volume that is a folder of the node, and the claim `model` on it in a namespace."""
    volume = f"model-{namespace}"
    common = {"accessModes": ["ReadOnlyMany"], "storageClassName": ""}
    return (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                **common,
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": folder},
                "claimRef": {"namespace": namespace, "name": "model"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "model"},
            "spec": {**common, "volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}},
        },
    )
