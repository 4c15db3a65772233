"""Fixtures of llm-d's data path."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.cluster.control_plane import (
    BIN,
    ControlPlane,
    Programs,
    make_custom_resources,
    require_programs,
    start_api_server,
)

from .fleet import Fleet
from .network import own_network
from .path import ENVOY, DataPath

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Objects, Render

VALUES = {"llmd": {"inferencePool": {"enabled": True}, "proxy": {"drain": {"preStopSeconds": 1}}}}


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server for all tests that share a network."""
    with started(tmp_path_factory.mktemp("api-server")) as plane:
        yield plane


@contextmanager
def started(folder: Path) -> Iterator[ControlPlane]:
    """etcd and an API server that knows InferencePools. Nothing acts on its objects but the picker."""
    require_programs()
    if missing := [program for program in (BIN / "lwepp", ENVOY) if not program.exists()]:
        pytest.fail(f"no {', '.join(map(str, missing))}: run `make llmd`")
    plane = ControlPlane(folder)
    with Programs(plane.folder) as programs:
        start_api_server(plane, programs, "--disable-admission-plugins=ServiceAccount")
        make_custom_resources(plane)
        programs.wait(
            lambda: plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=9s")
        )
        yield plane


@contextmanager
def running_fleet(
    objects: Objects, tmp_path_factory: pytest.TempPathFactory, certificate: dict[str, str] | None = None
) -> Iterator[Fleet]:
    """A fleet that answers, in a network and with an API server of its own."""
    with own_network(), started(tmp_path_factory.mktemp("api-server")) as plane:
        fleet = Fleet(plane, objects, tmp_path_factory.mktemp("fleet"), certificate or {})
        try:
            fleet.start()
            yield fleet
        finally:
            fleet.stop()


@pytest.fixture(scope="session")
def objects(render: Render, api_server: ControlPlane) -> Objects:
    """The release, of which the API server has the pool."""
    objects = render("values/phase2-llmd.yaml", values=VALUES)
    api_server.apply(objects.get("InferencePool/demo-pool"))
    return objects


@pytest.fixture
def path(api_server: ControlPlane, objects: Objects, tmp_path: Path) -> Iterator[DataPath]:
    """The path, ready."""
    path = DataPath(api_server, objects, tmp_path)
    try:
        path.start()
        path.until_ready()
        path.until_served()
        yield path
    finally:
        path.stop()
