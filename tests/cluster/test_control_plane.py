"""The control plane that the other tests of this folder stand on: what is real in it, and what is faked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from . import control_plane as module
from .control_plane import CommandError, ControlPlane, Programs, StartError, running

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.cluster


def pod(
    *, limits: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None, **security: Any
) -> dict[str, Any]:
    """A pod that the `restricted` level admits, unless `security` loosens its container."""
    hardened = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {
        "name": "main",
        "image": "example.com/image:1",
        "resources": {"limits": dict(limits or {})},
        "securityContext": {**hardened, **security},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "annotations": dict(annotations or {})},
        "spec": {
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 2000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        },
    }


def pinned(folder: str, package: str) -> str:
    """The version of a module in one of the go.mod files of this folder."""
    found = re.search(rf"{package} (v\S+)", (Path(__file__).parent / folder / "go.mod").read_text())
    assert found
    return found[1]


def test_programs_report_the_versions_that_are_pinned(control_plane: ControlPlane) -> None:
    server = json.loads(control_plane.kubectl("get", "--raw", "/version"))
    assert server["gitVersion"] == pinned("kubernetes", "k8s.io/kubernetes")
    assert control_plane.helm("version", "--template={{.Version}}", version=4) == pinned(
        "helm4", "helm.sh/helm/v4"
    )
    assert control_plane.helm("version", "--template={{.Version}}", version=3) == pinned(
        "helm3", "helm.sh/helm/v3"
    )


@pytest.mark.parametrize(
    ("resource", "nodes"),
    [
        ("nvidia.com/gpu", ["nvidia-1", "nvidia-2", "nvidia-3"]),
        ("amd.com/gpu", ["amd-1"]),
        ("gpu.intel.com/i915", ["intel-1"]),
    ],
)
def test_a_pod_runs_on_a_node_with_the_gpus_that_it_asks_for(
    control_plane: ControlPlane, namespace: str, resource: str, nodes: list[str]
) -> None:
    control_plane.apply(pod(limits={resource: "8"}), namespace=namespace)
    control_plane.kubectl("wait", "--for=condition=Ready", "pod/pod", "-n", namespace, "--timeout=30s")
    assert control_plane.get("pod", "pod", "-n", namespace)["spec"]["nodeName"] in nodes


def test_a_pod_that_asks_for_more_gpus_than_a_node_has_stays_pending(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.apply(pod(limits={"nvidia.com/gpu": "9"}), namespace=namespace)
    unscheduled = "--for=condition=PodScheduled=False"
    control_plane.kubectl("wait", unscheduled, "pod/pod", "-n", namespace, "--timeout=30s")
    conditions = control_plane.get("pod", "pod", "-n", namespace)["status"]["conditions"]
    assert "6 Insufficient nvidia.com/gpu" in conditions[0]["message"]


def test_a_restricted_namespace_refuses_a_privileged_pod(control_plane: ControlPlane, namespace: str) -> None:
    loose = pod(allowPrivilegeEscalation=True, privileged=True)
    with pytest.raises(CommandError, match='violates PodSecurity "restricted:latest": privileged'):
        control_plane.apply(loose, namespace=namespace)


def test_a_namespace_without_labels_admits_a_privileged_pod(control_plane: ControlPlane) -> None:
    with control_plane.namespace(labels={}) as namespace:
        control_plane.apply(pod(allowPrivilegeEscalation=True, privileged=True), namespace=namespace)


def test_the_pod_of_helm_test_succeeds(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.apply(pod(annotations={"helm.sh/hook": "test"}), namespace=namespace)
    succeeded = "--for=jsonpath={.status.phase}=Succeeded"
    control_plane.kubectl("wait", succeeded, "pod/pod", "-n", namespace, "--timeout=30s")


def test_a_claim_is_bound(control_plane: ControlPlane, namespace: str) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "claim"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    control_plane.apply(claim, namespace=namespace)
    bound = "--for=jsonpath={.status.phase}=Bound"
    control_plane.kubectl("wait", bound, "pvc/claim", "-n", namespace, "--timeout=30s")


@pytest.mark.parametrize(
    "kind",
    [
        "podmonitors.monitoring.coreos.com",
        "servicemonitors.monitoring.coreos.com",
        "scaledobjects.keda.sh",
        "httproutes.gateway.networking.k8s.io",
    ],
)
def test_the_custom_resources_of_the_charts_are_served(control_plane: ControlPlane, kind: str) -> None:
    assert control_plane.get(kind, "--all-namespaces") == []


def test_what_is_not_built_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MADE", (module.BIN / "etcd", module.BIN / "no-such-program"))
    message = r"the test control plane is not built \(no .cache/bin/no-such-program\): run `make tools`"
    with pytest.raises(StartError, match=message), running(tmp_path):
        pass


def test_a_part_that_dies_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    def never() -> None:
        raise CommandError

    with Programs(tmp_path) as programs:
        programs.start("kube-scheduler", "--no-such-flag")
        with pytest.raises(
            StartError, match=r"(?s)^kube-scheduler exited with 1; .*unknown flag: --no-such-flag"
        ):
            programs.wait(never)
