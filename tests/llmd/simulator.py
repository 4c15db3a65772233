"""llm-d-inference-sim as a process of this machine, started from a rendered container."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.control_plane import BIN
from tests.engine import pods

if TYPE_CHECKING:
    from tests.conftest import Objects

SIMULATOR = Path(os.environ.get("LLMD_SIM") or BIN / "llm-d-inference-sim")


def command(
    objects: Objects,
    deployment: str,
    folder: Path,
    name: str,
    address: str,
    *,
    secrets: pods.Secrets | None = None,
) -> pods.Command:
    """The simulator of a rendered Deployment as the pod `name` with an address."""
    assert SIMULATOR.exists(), f"no {SIMULATOR}: run `make llmd`"
    found = pods.command(pods.deployment(objects, deployment), folder, secrets or {}, address)
    assert found.argv[0] == "/app/llm-d-inference-sim"
    return replace(found, argv=(str(SIMULATOR), *found.argv[1:]), env={**found.env, "POD_NAME": name})
