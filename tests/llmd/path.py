"""llm-d's data path as processes of this machine: client, Envoy, endpoint picker, engines.

Real are the API server, Envoy with the rendered configuration, and the picker: that of the Gateway API inference
extension, which finds the engines through the rendered InferencePool and chooses in turns. It knows neither roles nor
sidecars; llm-d's own picker and sidecar are run in tests/node. The engines are fakes (engine.py).

One thing in Envoy's configuration is replaced: this picker wants a request's body in one piece, and knows nothing of
the full-duplex streams that llm-d's own wants.

Each pod has a loopback address of its own. In the rendered texts these stand for the names of Services, and the
proxy's own for the addresses on which Envoy listens.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cluster.control_plane import BIN, CACHE
from tests.engine import pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.cluster.control_plane import ControlPlane
    from tests.conftest import Objects

HERE = Path(__file__).parent
ENVOY = CACHE / "engine/bin/envoy"
NETWORK = f"127.{64 + os.getpid() // 256 % 64}.{os.getpid() % 256}"  # two runs on one machine do not meet
ADDRESSES = {
    name: f"{NETWORK}.{host}" for host, name in enumerate(("proxy", "llmd-prefill", "llmd-decode"), 2)
}
SCRIPT = HERE.parent / "node/image/usr/local/share/envoy-lwepp.sed"
NOBODY = "nobody.invalid"
SECONDS = 30


@dataclass
class DataPath:
    """What runs of release `demo`, and its folder."""

    plane: ControlPlane
    objects: Objects
    folder: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, *absent: str) -> None:
        """Start all parts and wait until they serve; the Services of `absent` roles lead to nobody."""
        for role in ("llmd-prefill", "llmd-decode"):
            self._run(role, sys.executable, HERE / "engine.py", ADDRESSES[role], "8000", role)
            self.register(role)
        self.start_picker()
        self.start_proxy(*absent)

    def start_picker(self) -> None:
        pool = self.objects.get("InferencePool/demo-pool")["metadata"]
        flags = {"pool-name": pool["name"], "pool-namespace": pool["namespace"], "secure-serving": "false"}
        self._run("picker", BIN / "lwepp", "--health-checking", *(f"--{k}={v}" for k, v in flags.items()))

    def start_proxy(self, *absent: str) -> None:
        """Start Envoy as the rendered container does, with its files where it looks for them."""
        place = self.folder / "config"
        place.mkdir(exist_ok=True)
        for name, text in self.objects.get("ConfigMap/demo-proxy")["data"].items():
            local = here(text, absent)
            (place / name).write_text(for_this_picker(local) if name == "envoy.yaml" else local)
        self._run("proxy", *self._command(pods.words(self._container)))

    def drain_proxy(self) -> None:
        """End Envoy as the kubelet does: the preStop hook, then the signal."""
        hook = self._container["lifecycle"]["preStop"]["exec"]["command"]
        subprocess.run(self._command(hook), check=True, timeout=SECONDS)
        self.running["proxy"].send_signal(signal.SIGTERM)
        self.running.pop("proxy").wait(SECONDS)

    def register(self, role: str) -> None:
        """Tell the API server of a Ready pod of a role, at the role's address."""
        template = self.objects.get(f"Deployment/demo-{role}")["spec"]["template"]
        spec = {**template["spec"], "nodeName": "here", "automountServiceAccountToken": False}
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": spec}
        # The API server is shared, and the pod of another rendering cannot be changed into this one.
        self.plane.kubectl(
            "delete", "pod", f"demo-{role}", "--ignore-not-found", "--force", "--grace-period=0"
        )
        self.plane.apply({**pod, "metadata": {**template["metadata"], "name": f"demo-{role}"}})
        status = {
            "phase": "Running",
            "podIP": ADDRESSES[role],
            "podIPs": [{"ip": ADDRESSES[role]}],
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        patch = json.dumps({"status": status})
        self.plane.kubectl("patch", "pod", f"demo-{role}", "--subresource=status", "--patch", patch)

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running.pop(name).wait()

    def stop(self) -> None:
        for name in list(self.running):
            self.kill(name)

    def until_ready(self, wanted: bool = True) -> None:
        """Wait until the proxy's readiness probe says so."""
        probe = self._container["readinessProbe"]["httpGet"]
        deadline = time.monotonic() + SECONDS
        while ready(probe["path"]) != wanted:
            dead = wanted and any(part.poll() is not None for part in self.running.values())
            if dead or time.monotonic() > deadline:
                raise AssertionError(f"ready never was {wanted}:\n{self.logs()}")
            time.sleep(0.2)

    def until_served(self) -> None:
        """Wait until the picker knows the engines; it answers health checks before."""
        deadline = time.monotonic() + SECONDS
        while request("GET", "/v1/models")[0] != 200:
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.2)

    def logs(self) -> str:
        """The end of every part's log."""
        return "\n".join(
            f"--- {log.stem}\n{log.read_text(errors='replace')[-2000:]}" for log in self.folder.glob("*.log")
        )

    @property
    def _container(self) -> Any:
        return self.objects.get("Deployment/demo-proxy")["spec"]["template"]["spec"]["containers"][0]

    def _command(self, words: list[str]) -> list[str]:
        """A command of the proxy's container on this machine."""
        program = str(ENVOY) if words[0] == "envoy" else words[0]
        return [program, *(word.replace("/etc/envoy", str(self.folder / "config")) for word in words[1:])]

    def _run(self, name: str, *command: str | Path) -> None:
        env = {**os.environ, "KUBECONFIG": str(self.plane.folder / "kubeconfig")}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(command, env=env, stdout=log, stderr=log)


def here(text: str, absent: tuple[str, ...] = ()) -> str:
    """A rendered text with this machine's addresses."""
    for role in ("llmd-prefill", "llmd-decode"):
        name = rf"demo-{role}\.default\.svc(\.cluster\.local\.)?"
        text = re.sub(name, NOBODY if role in absent else ADDRESSES[role], text)
    text = text.replace("demo-picker.default.svc.cluster.local.", "127.0.0.1")
    for own in ("0.0.0.0", "127.0.0.1, port_value: 19000", "127.0.0.1/19000"):
        text = text.replace(own, own.replace(own.split(",")[0].split("/")[0], ADDRESSES["proxy"]))
    return text


def for_this_picker(text: str) -> str:
    """Envoy's configuration, with bodies given to the picker in one piece."""
    return subprocess.run(
        ["sed", "-f", SCRIPT], input=text, capture_output=True, text=True, check=True
    ).stdout


def ready(path: str) -> bool:
    try:
        return request("GET", path, port=19001)[0] == 200
    except OSError:
        return False


def request(
    method: str,
    path: str,
    body: object = None,
    headers: Mapping[str, str] | None = None,
    port: int = 8081,
) -> tuple[int, str]:
    """Ask the proxy; status and text of the answer."""
    with connection(port) as client:
        data = None if body is None else json.dumps(body).encode()
        client.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        answer = client.getresponse()
        return answer.status, answer.read().decode()


def listening(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@contextmanager
def connection(port: int = 8081) -> Iterator[http.client.HTTPConnection]:
    client = http.client.HTTPConnection(ADDRESSES["proxy"], port, timeout=SECONDS)
    try:
        yield client
    finally:
        client.close()


def stream(tokens: int) -> Iterator[str]:
    """The events of a streamed completion as they come."""
    with connection() as client:
        body = json.dumps({"stream": True, "max_tokens": tokens})
        client.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        answer = client.getresponse()
        assert answer.status == 200
        while line := answer.readline():
            if event := line.decode().removeprefix("data: ").strip():
                yield event
