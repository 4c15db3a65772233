"""Every `charts/*/ci/*-values.yaml` on a real API server: the same steps as `ct install`, with Helm 4 and Helm 3."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .release import eventually, left

if TYPE_CHECKING:
    from .control_plane import ControlPlane
    from .release import Get, Helm

pytestmark = pytest.mark.cluster

CI_VALUES = sorted((Path(__file__).parents[2] / "charts").glob("*/ci/*-values.yaml"))
RELEASE = ("--selector", "app.kubernetes.io/instance=demo")


@pytest.mark.parametrize("namespace", ["baseline"], indirect=True)
@pytest.mark.parametrize("values", CI_VALUES, ids=[f"{path.parts[-3]}-{path.stem}" for path in CI_VALUES])
def test_it_installs_tests_and_uninstalls(
    helm: Helm, get: Get, control_plane: ControlPlane, namespace: str, values: Path
) -> None:
    before = left(control_plane, namespace)
    control_plane.apply(shared_volume(namespace))
    # Without --wait, since nobody gives a LoadBalancer its address here.
    helm("install", "demo", values.parents[1], "-f", values)
    control_plane.kubectl("rollout", "status", "deployment", *RELEASE, "--timeout=60s", "-n", namespace)
    helm("test", "demo")
    stays = kept(get)
    helm("uninstall", "demo", "--wait", "--timeout=60s")
    eventually(partial(left, control_plane, namespace), before | stays)


def shared_volume(namespace: str) -> dict[str, object]:
    """A volume for the claims of storage class `shared`."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"shared-{namespace}"},
        "spec": {
            "storageClassName": "shared",
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "1Ti"},
            "hostPath": {"path": "/shared"},
        },
    }


def kept(get: Get) -> set[str]:
    """What an uninstall leaves: the pods of `helm test`, for their logs, and claims whose values say so."""
    reasons = {("helm.sh/hook", "test"), ("helm.sh/resource-policy", "keep")}
    return {
        f"{each['kind'].lower()}/{each['metadata']['name']}"
        for each in get("pods,persistentvolumeclaims")
        if reasons & each["metadata"].get("annotations", {}).items()
    }
