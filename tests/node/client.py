"""A pod that uses the Services of the cluster as anybody's pod would."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.cluster.control_plane import CommandError

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane

    from .site import Site

CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3).close()
except OSError as error:
    print(type(error).__name__, error)
else:
    print("connected")
"""

REQUEST = """
import sys, urllib.error, urllib.request
url, *body = sys.argv[1:]
data = body[0].encode() if body else None
request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
try:
    print(urllib.request.urlopen(request, timeout=120).read().decode())
except urllib.error.HTTPError as error:
    sys.exit(f"{url} answered {error.code}: {error.read().decode()}")
"""

RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@dataclass(frozen=True)
class Client:
    """A running pod with Python in it."""

    cluster: ControlPlane
    namespace: str
    name: str

    @classmethod
    def start(cls, site: Site, namespace: str, name: str = "client") -> Client:
        """Start the pod and wait until it is Ready."""
        site.cluster.apply(sleeping_pod(name, site.image), namespace=namespace)
        site.cluster.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "-n", namespace, "--timeout=5m")
        return cls(site.cluster, namespace, name)

    def python(self, script: str, *args: str) -> str:
        """Run a script in the pod and return what it printed; raise CommandError when it fails."""
        command = ("exec", "-i", self.name, "-n", self.namespace, "--", "python3", "-", *args)
        return self.cluster.kubectl(*command, stdin=script).strip()

    def connect(self, host: str, port: int) -> str:
        """Return "connected", or the error of the attempt to connect by TCP within three seconds."""
        return self.python(CONNECT, host, str(port))

    def get(self, url: str) -> Any:
        """GET JSON; raise CommandError with the text of a refusal."""
        return json.loads(self.python(REQUEST, url))

    def first(self, url: str, seconds: float = 60) -> Any:
        """GET JSON from a Service that has just got its pods: kube-proxy sends nothing there for another moment."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.get(url)
            except CommandError as error:
                if "Connection refused" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def post(self, url: str, body: Any) -> Any:
        """POST a JSON body and return the JSON answer; raise CommandError with the text of a refusal."""
        return json.loads(self.python(REQUEST, url, json.dumps(body)))


def sleeping_pod(name: str, image: str, *command: str) -> dict[str, Any]:
    """Return a pod, labelled with its name, that a `restricted` namespace admits; without a command it sleeps."""
    container = {
        "name": "main",
        "image": image,
        "command": list(command or ("sleep", "infinity")),
        "resources": {"requests": {"cpu": "100m"}},  # or spinning engines would leave it nothing
        "securityContext": RESTRICTED,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
