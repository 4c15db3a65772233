"""A whole Kubernetes cluster of one real node: its pods are processes, and an engine in one is a real vLLM.

The control plane is that of tests/cluster, without its fake nodes. Beside it, in a machine of the test's own, run
containerd, kubelet, kube-proxy, CoreDNS and NetworkPolicy enforcement. Two things are fakes: the node's GPUs, and
the image, which goes by the name of every image that the values files ask for. In it runs the CPU build of vLLM
that `make engine` installs, mounted by the container runtime.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.control_plane import (
    BIN,
    CACHE,
    CRDS,
    CommandError,
    ControlPlane,
    StartError,
    start_api_server,
    start_controllers,
)

from .image import images_of, write_archive
from .machine import HERE, ROOT, Machine
from .report import cluster_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ADDRESS = "10.10.0.1"
IMAGE = "vllm-phases/node:test"
LAYER = CACHE / "node/layer.tar"
MODEL = CACHE / "node/model"
ENGINE = CACHE / "engine/lib/python3.11"  # the image's Python
PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "kubelet", "kube-proxy", "gpu-device-plugin")
POD_PROGRAMS = ("ptp", "host-local", "loopback", "coredns", "kube-network-policies", "lwepp")
MADE = (
    *(BIN / name for name in (*PROGRAMS, *POD_PROGRAMS)),
    LAYER,
    MODEL / ".ready",
    ENGINE,
    CRDS / ".ready",
)
VALUES = HERE / "values/cpu-build.yaml"


@contextmanager
def running(folder: Path, progress: Callable[[str], None]) -> Iterator[tuple[ControlPlane, Machine]]:
    """Start the node, telling of its progress; end it on leaving, with all that it made."""
    require()
    with Machine(folder, ADDRESS) as machine:
        plane = ControlPlane(folder, ADDRESS, machine.network)
        try:
            start(plane, machine, progress)
        except CommandError as error:
            raise StartError(f"{error}\n\n{cluster_report(plane)}") from error
        yield plane, machine


def start(plane: ControlPlane, machine: Machine, progress: Callable[[str], None]) -> None:
    """Start all parts, each when those it needs are there."""
    progress("etcd and API server")
    start_api_server(
        plane, machine, "--endpoint-reconciler-type=lease", "--kubelet-preferred-address-types=InternalIP"
    )
    progress("controllers and scheduler")
    start_controllers(plane, machine)
    progress("containerd and the image")
    start_runtime(machine)
    progress("kubelet, kube-proxy and GPUs")
    start_node(plane, machine)
    progress("DNS and network policies")
    start_platform(plane)


def require() -> None:
    """Skip where nobody may make a node; raise StartError when something that `make node` makes is missing."""
    if os.geteuid():
        pytest.skip("a real node needs root: run the tests of tests/node as root, or give them --kubeconfig")
    if missing := [str(path.relative_to(ROOT)) for path in MADE if not path.exists()]:
        raise StartError(
            f"the test node is not built (no {', '.join(missing)}): run `make node`;"
            " the engine must be one for Python 3.11"
        )


def start_runtime(machine: Machine) -> None:
    """Start containerd and give it the image under every name."""
    write_runtime_spec(machine)
    machine.start("containerd", "--config=/run/node/config/containerd.toml")
    machine.wait(partial(machine.run, "ctr", "version"))
    names = {
        name
        for phase in sorted((ROOT / "values").glob("phase*.yaml"))
        for name in images_of(ROOT / "charts/vllm-stack", (phase, VALUES))
    }
    archive = machine.folder / "image.tar"
    write_archive(archive, LAYER, [IMAGE, *sorted(names)])
    machine.run("ctr", "--namespace=k8s.io", "images", "import", archive)
    archive.unlink()


def write_runtime_spec(machine: Machine) -> None:
    """Write what every container starts from: containerd's own default, with the engine and the tools mounted."""
    spec = json.loads(machine.run("ctr", "oci", "spec"))
    del spec["process"]["rlimits"]  # the machine's own; they could not be raised anyway
    mounts = {"/run/node/engine": "/opt/engine/lib", "/run/node/bin": "/opt/tools", **llmd_programs()}
    for source, destination in mounts.items():
        options = ["rbind", "ro", "nosuid", "nodev"]
        mount = {"destination": destination, "type": "bind", "source": source, "options": options}
        spec["mounts"].append(mount)
    (machine.folder / "runtime-spec.json").write_text(json.dumps(spec))


def llmd_programs() -> dict[str, str]:
    """The programs of llm-d that were built by hand, and where its images have them; empty where none is given."""
    given = {os.environ.get("LLMD_EPP"): "/app/epp", os.environ.get("LLMD_SIDECAR"): "/app/pd-sidecar"}
    return {str(Path(source).resolve()): place for source, place in given.items() if source}


def start_node(plane: ControlPlane, machine: Machine) -> None:
    """Start what makes a machine a node, and wait until it is Ready and has its GPUs."""
    machine.start(
        "kubelet",
        "--kubeconfig=kubeconfig",
        "--config=/run/node/config/kubelet.yaml",
        f"--cgroup-root=/{machine.cgroup}",
        f"--node-ip={ADDRESS}",
        "--hostname-override=node",
    )
    machine.start(
        "kube-proxy",
        "--kubeconfig=kubeconfig",
        "--proxy-mode=iptables",
        "--hostname-override=node",
        "--cluster-cidr=10.244.0.0/16",
        "--conntrack-max-per-core=0",  # the limit is the host's
    )
    machine.wait(partial(plane.kubectl, "wait", "--for=condition=Ready", "node/node", "--timeout=1s"))
    machine.start("gpu-device-plugin", "nvidia.com/gpu", "8")
    gpus = "--for=jsonpath={.status.allocatable.nvidia\\.com/gpu}=8"
    machine.wait(partial(plane.kubectl, "wait", gpus, "node/node", "--timeout=1s"))


def start_platform(plane: ControlPlane) -> None:
    """Give the cluster its custom resources and what a platform team runs on it, as pods."""
    plane.kubectl("apply", "--server-side", "-f", str(CRDS))
    plane.kubectl("apply", "--server-side", "-f", str(HERE / "objects"))
    for owner in ("daemonset/kube-network-policies", "deployment/coredns"):
        plane.kubectl("rollout", "status", owner, "--namespace=kube-system", "--timeout=60s")
