"""Fixtures of the control plane tier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .control_plane import ControlPlane, running

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One control plane for all tests of this folder."""
    with running(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A new namespace. Its Pod Security level is `restricted`, or the parameter of an indirect parametrization."""
    level = getattr(request, "param", "restricted")
    with control_plane.namespace({"pod-security.kubernetes.io/enforce": level}) as name:
        yield name
