"""A real Kubernetes control plane on loopback, for tests.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler are the real programs, built by `make tools`.
Nodes, and the life of the pods on them, are faked by kwok: a pod that was scheduled becomes Ready without
running anything. So these tests prove what the API server admits, what controllers and scheduler do with it,
and how Helm fares. What an engine makes of its arguments is proved in tests/engine.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .definitions import definitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

CACHE = Path(__file__).parents[2] / ".cache"
BIN = CACHE / "bin"
CRDS = CACHE / "crds"
STAGES = CACHE / "kwok"
FAKES = Path(__file__).parent / "fakes"

HELM = {4: "helm", 3: "helm3"}
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl")
MADE = (*(BIN / name for name in (*PROGRAMS, *HELM.values())), CRDS / ".ready", STAGES / ".ready")
START_SECONDS = 60


class CommandError(AssertionError):
    """kubectl or helm exited with an error. The message is the command and all that it said."""


class StartError(RuntimeError):
    """The control plane did not come up. The message says which part failed and ends with its log."""


@dataclass(frozen=True)
class ControlPlane:
    """A running control plane as its administrator sees it.

    All its files lie in `folder`. It listens on `address`. kubectl and Helm are started by the command `enter`
    where it runs in a network of its own.
    """

    folder: Path
    address: str = "127.0.0.1"
    enter: tuple[str, ...] = ()

    def kubectl(self, *args: str, stdin: str = "") -> str:
        """Run kubectl and return what it printed; raise CommandError when it fails."""
        return self._run("kubectl", *args, stdin=stdin)

    def helm(self, *args: str | Path, version: int = 4) -> str:
        """Run Helm 4 or 3 and return what it printed; raise CommandError when it fails."""
        return self._run(HELM[version], *map(str, args))

    def get(self, *args: str) -> Any:
        """`kubectl get`, as Python objects: one object by its name, else the list of those found."""
        found = json.loads(self.kubectl("get", *args, "-o", "json"))
        return found.get("items", found)

    def apply(self, *objects: Mapping[str, Any], namespace: str = "default") -> None:
        """Create or update objects, as a server-side apply."""
        manifest = "\n---\n".join(map(json.dumps, objects))
        self.kubectl("apply", "--server-side", "--namespace", namespace, "-f", "-", stdin=manifest)

    @contextmanager
    def namespace(self, labels: Mapping[str, str]) -> Iterator[str]:
        """Make a namespace of a new name, and delete it at the end."""
        name = f"test-{secrets.token_hex(4)}"
        metadata = {"name": name, "labels": dict(labels)}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        # Pods are refused until the controllers have made the namespace's service account.
        self.kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=30s")
        try:
            yield name
        finally:
            self.kubectl("delete", "namespace", name, "--wait=false")

    def _run(self, program: str, *args: str, stdin: str = "") -> str:
        done = subprocess.run(
            [*self.enter, BIN / program, *args],
            input=stdin,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CommandError(f"$ {program} {' '.join(args)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def _environment(self) -> dict[str, str]:
        """The test's own, which a kubeconfig's credential plugins may need, without its settings of the programs."""
        mine = {
            "KUBECONFIG": str(self.folder / "kubeconfig"),
            "KUBECACHEDIR": str(self.folder / "kubectl"),
            "KUBERC": "off",
            **{f"HELM_{kind}_HOME": str(self.folder / "helm") for kind in ("CACHE", "CONFIG", "DATA")},
        }
        others = {name: text for name, text in os.environ.items() if not name.startswith(("HELM_", "KUBE"))}
        return others | mine


@dataclass(frozen=True)
class Program:
    """One part of the control plane as a process, and its log."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def stop(self) -> None:
        """End the process; by force if it takes longer than five seconds."""
        self.process.terminate()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def failure(self, what: str) -> StartError:
        """What happened to the program, with the end of its log."""
        tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
        return StartError(f"{self.name} {what}; the end of its log:\n{tail}")


class Programs:
    """The processes of one control plane; leaving the `with` block ends them, the last one first.

    `enter` is the command that starts each of them where they run in namespaces of their own.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.enter: tuple[str, ...] = ()
        self.started: list[Program] = []

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        for program in reversed(self.started):
            program.stop()

    def start(self, name: str, *args: str) -> None:
        """Start a program in the folder, with its log beside."""
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            command = [*self.enter, str(BIN / name), *args]
            process = subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=output)
        self.started.append(Program(name, process, log))

    def wait(self, ready: Callable[[], object]) -> None:
        """Call `ready` until it no longer raises CommandError.

        Raises StartError for a program that has ended, or for the newest one when START_SECONDS have passed.
        """
        deadline = time.monotonic() + START_SECONDS
        while True:
            for program in self.started:
                if (code := program.process.poll()) is not None:
                    raise program.failure(f"exited with {code}")
            try:
                ready()
            except CommandError as error:
                if time.monotonic() > deadline:
                    raise self.started[-1].failure(f"was not ready after {START_SECONDS} s") from error
                time.sleep(0.2)
            else:
                return


@contextmanager
def running(folder: Path) -> Iterator[ControlPlane]:
    """Start a control plane with fake GPU nodes and the charts' custom resources; end it on leaving."""
    require_programs()
    plane = ControlPlane(folder)
    with Programs(folder) as programs:
        start_api_server(plane, programs)
        start_controllers(plane, programs)
        start_fake_nodes(plane, programs)
        yield plane


def require_programs() -> None:
    """Raise StartError when something that `make tools` makes is missing."""
    if missing := [str(path.relative_to(CACHE.parent)) for path in MADE if not path.exists()]:
        raise StartError(f"the test control plane is not built (no {', '.join(missing)}): run `make tools`")


def start_api_server(plane: ControlPlane, programs: Programs, *more: str) -> None:
    """Start etcd and kube-apiserver, with more arguments if given, and write the administrator's kubeconfig."""
    etcd, etcd_peer, api = free_ports(3)
    write_credentials(plane.folder, f"https://{plane.address}:{api}")
    programs.start(
        "etcd",
        "--data-dir=etcd",
        "--unsafe-no-fsync",
        f"--listen-client-urls=http://127.0.0.1:{etcd}",
        f"--advertise-client-urls=http://127.0.0.1:{etcd}",
        f"--listen-peer-urls=http://127.0.0.1:{etcd_peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{etcd_peer}",
        f"--initial-cluster=default=http://127.0.0.1:{etcd_peer}",
    )
    programs.start(
        "kube-apiserver",
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        f"--secure-port={api}",
        f"--bind-address={plane.address}",
        f"--advertise-address={plane.address}",
        "--endpoint-reconciler-type=none",  # an EndpointSlice must not hold a loopback address
        "--cert-dir=certificates",
        "--token-auth-file=tokens.csv",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=service-account.key",
        "--service-account-signing-key-file=service-account.key",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--allow-privileged",  # so that only Pod Security stands in the way of a privileged pod
        *more,
    )
    programs.wait(partial(plane.kubectl, "get", "--raw", "/readyz"))


def start_controllers(plane: ControlPlane, programs: Programs) -> None:
    """Start what acts on objects."""
    client = ("--kubeconfig=kubeconfig", "--leader-elect=false", "--secure-port=0")
    programs.start(
        "kube-controller-manager",
        *client,
        "--service-account-private-key-file=service-account.key",
        "--root-ca-file=certificates/apiserver.crt",
    )
    programs.start("kube-scheduler", *client)


def start_fake_nodes(plane: ControlPlane, programs: Programs) -> None:
    """Make the fake nodes and the custom resources, start what fakes their life, and wait for all of it."""
    programs.start(
        "kwok",
        "--kubeconfig=kubeconfig",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=40",
        "--server-address=127.0.0.1:0",
        *(f"--config={stage}" for folder in (STAGES, FAKES / "stages") for stage in folder.glob("*.yaml")),
    )
    plane.kubectl("create", "-f", str(FAKES / "cluster"))
    make_custom_resources(plane)
    for condition, kind in (("Established", "crd"), ("Ready", "node")):
        programs.wait(
            partial(plane.kubectl, "wait", f"--for=condition={condition}", kind, "--all", "--timeout=9s")
        )


def make_custom_resources(plane: ControlPlane) -> None:
    """Let the API server know the kinds that the charts create."""
    plane.kubectl("apply", "--server-side", "-f", str(CRDS))
    plane.apply(*definitions())


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [listener.getsockname()[1] for listener in sockets]


def write_credentials(folder: Path, server: str) -> None:
    """Write the key of service account tokens, the administrator's token and a kubeconfig with it."""
    subprocess.run(
        ["openssl", "genrsa", "-out", folder / "service-account.key"], check=True, capture_output=True
    )
    token = secrets.token_hex(16)
    (folder / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
    authority = str(folder / "certificates" / "apiserver.crt")  # the API server makes and signs its own
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": authority}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }
    (folder / "kubeconfig").write_text(json.dumps(kubeconfig))
