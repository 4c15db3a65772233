"""Fixtures of the control plane tier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .control_plane import CommandError, ControlPlane, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .release import Get, Helm


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One control plane for all tests of this folder."""
    with running(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A new namespace. Its Pod Security level is `restricted`, or what an indirect parameter names."""
    level = getattr(request, "param", "restricted")
    with control_plane.namespace({"pod-security.kubernetes.io/enforce": level}) as name:
        yield name


@pytest.fixture(params=[4, 3], ids=["helm4", "helm3"])
def helm(control_plane: ControlPlane, namespace: str, request: pytest.FixtureRequest) -> Helm:
    """Helm in the test's namespace; a test that takes it runs once with Helm 4 and once with Helm 3."""

    def run(*args: str | Path) -> str:
        try:
            return control_plane.helm(*args, "--namespace", namespace, version=request.param)
        except CommandError as error:  # Helm says that a Deployment is not ready; the events say why
            events = control_plane.kubectl("events", "--types=Warning", "--namespace", namespace)
            raise CommandError(f"{error}\n{events}") from None

    return run


@pytest.fixture
def get(control_plane: ControlPlane, namespace: str) -> Get:
    """`kubectl get` in the test's namespace."""

    def run(*args: str) -> Any:
        return control_plane.get(*args, "--namespace", namespace)

    return run
