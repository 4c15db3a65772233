"""A real API server takes and refuses the same objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.control_plane import (
    CRDS,
    CommandError,
    ControlPlane,
    Programs,
    require_programs,
    start_api_server,
)
from tests.objects.examples import ACCEPTED, REFUSED, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server that knows the charts' custom resources; no controller runs."""
    require_programs()
    plane = ControlPlane(tmp_path_factory.mktemp("api-server"))
    with Programs(plane.folder) as programs:
        start_api_server(plane, programs)
        plane.kubectl("apply", "--server-side", "-f", str(CRDS))
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        yield plane


def apply(plane: ControlPlane, document: Any) -> None:
    """A server-side apply, as Helm 4 does it, of which nothing is stored."""
    flags = ("--server-side", "--dry-run=server", "--validate=strict")
    plane.kubectl("apply", *flags, "-f", "-", stdin=json.dumps(document))


@pytest.mark.parametrize("document", ACCEPTED, ids=lambda document: document["kind"])
def test_it_takes_what_is_accepted_here(api_server: ControlPlane, document: Any) -> None:
    apply(api_server, document)


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_it_refuses_what_is_refused_here(api_server: ControlPlane, case: Refused) -> None:
    with pytest.raises(CommandError):
        apply(api_server, case.object)
