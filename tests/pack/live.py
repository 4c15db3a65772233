"""HAMi's own scheduler with a real kube-scheduler before a real API server: what they decide of scenarios.

The nodes are fakes: objects without a machine, so nothing ever runs. HAMi is built outside this repository and
named by HAMI_SCHEDULER. Between kube-scheduler and HAMi stands a listener that passes every request on, since
only there each node's reason is told whole.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import threading
import time
from contextlib import closing, contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.cluster.control_plane import (
    CommandError,
    ControlPlane,
    Program,
    Programs,
    free_ports,
    start_api_server,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .scenarios import Json, Scenario

ALLOCATED = "hami.io/vgpu-devices-allocated"
WAIT_SECONDS = 600
_RESOURCES = ("gpu", "gpumem", "gpumem-percentage", "gpucores", "priority")
# The part of HAMi's device configuration that its chart installs for NVIDIA's cards.
_DEVICES = {
    "nvidia": {
        "resourceCountName": "nvidia.com/gpu",
        "resourceMemoryName": "nvidia.com/gpumem",
        "resourceMemoryPercentageName": "nvidia.com/gpumem-percentage",
        "resourceCoreName": "nvidia.com/gpucores",
        "resourcePriorityName": "nvidia.com/priority",
        "overwriteEnv": False,
        "defaultMemory": 0,
        "defaultCores": 0,
        "defaultGPUNum": 1,
        "memoryFactor": 1,
        "deviceSplitCount": 10,
        "deviceMemoryScaling": 1,
        "deviceCoreScaling": 1,
        "gpuCorePolicy": "default",
        "libCudaLogLevel": 1,
    }
}

Decisions = list["Json"]
"""For each pod of a scenario {"node", "cards"}, {"refused": reason by node} or {"error": message}."""


class Listener(BaseHTTPRequestHandler):
    """Passes what kube-scheduler asks on to HAMi, and keeps the first answer about each pod."""

    target = 0
    answers: dict[str, Json] = {}  # noqa: RUF012  # of one run; each test process has one

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with closing(http.client.HTTPConnection("127.0.0.1", self.target, timeout=60)) as connection:
            connection.request("POST", self.path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
        if self.path == "/filter":
            # The Go types have no JSON names, so keys may start with either case.
            pod = {key.lower(): value for key, value in json.loads(body).items()}["pod"]
            told = {key.lower(): value for key, value in json.loads(content).items()}
            self.answers.setdefault(pod["metadata"]["name"], told)
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        with suppress(BrokenPipeError):  # kube-scheduler no longer waits for a pod that was taken away
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def decide(binary: Path, folder: Path, scenarios: Sequence[Scenario]) -> list[Decisions]:
    """What the real schedulers decide of each scenario."""
    with running(binary, folder, [node for one in scenarios for node in one.node_objects()]) as plane:
        decisions: list[Decisions] = [[] for _ in scenarios]
        for number in range(max(len(scenario.pods) for scenario in scenarios)):
            come(plane, scenarios, number, decisions)
        return decisions


def come(plane: ControlPlane, scenarios: Sequence[Scenario], turn: int, decisions: list[Decisions]) -> None:
    """Let the next pod of every scenario come, and take those that were refused away again."""
    coming = {
        number: pods[turn]
        for number, scenario in enumerate(scenarios)
        if turn < len(pods := scenario.pod_objects())
    }
    plane.kubectl("create", "-f", "-", stdin="\n---\n".join(map(json.dumps, coming.values())))
    names = {number: pod["metadata"]["name"] for number, pod in coming.items()}
    known = _settled(plane, set(names.values()))
    for number, name in names.items():
        decisions[number].append(_decision(name, known[name]))
    refused = [name for number, name in names.items() if "node" not in decisions[number][-1]]
    if refused:
        plane.kubectl("delete", "pod", *refused, "--grace-period=0", "--force", "--wait=true")


def _settled(plane: ControlPlane, names: set[str]) -> dict[str, Json]:
    """The pods once each is bound, or HAMi has refused it."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        pods = {pod["metadata"]["name"]: pod for pod in plane.get("pods") if pod["metadata"]["name"] in names}
        waiting = sorted(name for name in names if not _settles(name, pods[name]))
        if not waiting:
            return pods
        if time.monotonic() > deadline:
            raise AssertionError(f"not decided after {WAIT_SECONDS} s: {', '.join(waiting[:5])}")
        time.sleep(0.3)


def _settles(name: str, pod: Json) -> bool:
    answer = Listener.answers.get(name)
    return bool(pod["spec"].get("nodeName") or (answer is not None and not answer.get("nodenames")))


def _decision(name: str, pod: Json) -> Json:
    answer = Listener.answers[name]
    if node := pod["spec"].get("nodeName"):
        return {"node": node, "cards": pod["metadata"]["annotations"][ALLOCATED]}
    if message := answer.get("error"):
        return {"error": message}
    return {"refused": dict(sorted((answer.get("failednodes") or {}).items()))}


@contextmanager
def running(binary: Path, folder: Path, nodes: Sequence[Json]) -> Iterator[ControlPlane]:
    plane = ControlPlane(folder)
    with Programs(folder) as programs:
        start_api_server(plane, programs, "--disable-admission-plugins=ServiceAccount")
        for start in range(0, len(nodes), 100):
            plane.kubectl(
                "create", "-f", "-", stdin="\n---\n".join(map(json.dumps, nodes[start : start + 100]))
            )
        with _hami(binary, folder, programs):
            yield plane


@contextmanager
def _hami(binary: Path, folder: Path, programs: Programs) -> Iterator[None]:
    """HAMi's scheduler, the listener before it, and the kube-scheduler that asks it."""
    port, metrics = free_ports(2)
    (folder / "devices.yaml").write_text(json.dumps(_DEVICES))
    log = folder / "hami-scheduler.log"
    command = [
        str(binary),
        f"--http_bind=127.0.0.1:{port}",
        f"--metrics-bind-address=127.0.0.1:{metrics}",
        "--device-config-file=devices.yaml",
        "--scheduler-name=hami-scheduler",
        "--node-lock-timeout=0s",  # no device plugin is there to take the lock of a node off
        "--kube-qps=500",
        "--kube-burst=1000",
    ]
    environment = {**os.environ, "KUBECONFIG": str(folder / "kubeconfig")}
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
    programs.started.append(Program("hami-scheduler", process, log))
    programs.wait(partial(_ready, port))
    Listener.target, Listener.answers = port, {}
    with ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        server.daemon_threads = False  # so that leaving waits for what is being asked
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (folder / "scheduler.yaml").write_text(json.dumps(_kube_scheduler(server.server_address[1])))
        programs.start("kube-scheduler", "--config=scheduler.yaml", "--secure-port=0")
        yield
        server.shutdown()


def _ready(port: int) -> None:
    """Raises CommandError until HAMi has registered the nodes."""
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
            connection.request("GET", "/readyz")
            if (status := connection.getresponse().status) != http.client.OK:
                raise CommandError(f"/readyz: {status}")
    except OSError as error:
        raise CommandError(str(error)) from error


def _kube_scheduler(port: int) -> dict[str, Any]:
    """As HAMi's chart configures it, with faster clients."""
    managed = [{"name": f"nvidia.com/{name}", "ignoredByScheduler": True} for name in _RESOURCES]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": "kubeconfig", "qps": 500, "burst": 1000},
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": "hami-scheduler"}],
        "extenders": [
            {
                "urlPrefix": f"http://127.0.0.1:{port}",
                "filterVerb": "filter",
                "bindVerb": "bind",
                "nodeCacheCapable": True,
                "weight": 1,
                "httpTimeout": "30s",
                "managedResources": managed,
            }
        ],
    }
