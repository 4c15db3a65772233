"""Twenty pods of simulators behind llm-d's own picker and sidecars and a real Envoy, all as the chart configures them.

Every pod has a network and an address of its own, so ports, sidecars and configurations stay as they are rendered. What
is replaced: paths of programs and files, and in Envoy's configuration the names of Services, since nobody serves DNS.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import pytest

from .network import Pod
from .path import ENVOY, SECONDS
from .simulator import command

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tests.cluster.control_plane import ControlPlane
    from tests.conftest import Objects

PICKER, SIDECAR = os.environ.get("LLMD_EPP", ""), os.environ.get("LLMD_SIDECAR", "")
ABSENT = not (PICKER and SIDECAR) or os.geteuid() != 0
METRIC = "vllm:e2e_request_latency_seconds_count"


def needs_llmd(what: str) -> list[pytest.MarkDecorator]:
    """The marks of tests with llm-d's own programs, which say what is not tested without them."""
    names = "LLMD_EPP and LLMD_SIDECAR must name them, and root makes the pods' networks"
    return [pytest.mark.cluster, pytest.mark.skipif(ABSENT, reason=f"NOT TESTED: {what}; {names}")]


@dataclass(frozen=True)
class Answer:
    """What came back of one request: its status, its text and the engine that wrote it."""

    status: int
    text: str
    engine: str


@dataclass
class Fleet:
    """What runs of release `demo`: pods by name, and every process; certificate is the Secret of its TLS."""

    plane: ControlPlane
    objects: Objects
    folder: Path
    certificate: dict[str, str] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self) -> None:
        """Start all of it and wait until a request is answered."""
        (self.folder / "tls").mkdir()
        for name, text in self.certificate.items():
            (self.folder / "tls" / name).write_text(text)
        for role in ("prefill", "decode"):
            for number in range(self._deployment(role)["spec"]["replicas"]):
                self._start_pod(role, f"demo-llmd-{role}-{number}")
        self._register()
        self._start_picker()
        self.start_proxy()
        self._until_served()

    def stop(self) -> None:
        for name in list(self.running):
            self.kill(name)
        for pod in self.pods.values():
            pod.stop()

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running.pop(name).wait()

    def named(self, role: str) -> list[str]:
        """The pods of a role."""
        return [name for name in self.pods if name.startswith(f"demo-llmd-{role}-")]

    def served(self, role: str) -> int:
        """How many requests the engines of a role have answered so far."""
        port = self._engine(role)["ports"][0]["containerPort"]
        texts = (self.fetch(f"{self.pods[name].address}:{port}/metrics") for name in self.named(role))
        lines = (line for text in texts for line in text.splitlines() if line.startswith(METRIC))
        return sum(int(line.rpartition(" ")[2]) for line in lines)

    def ask(self, prompt: str, headers: Mapping[str, str] | None = None) -> Answer:
        """One completion by way of the proxy."""
        body = json.dumps({"model": "Qwen/Qwen3-8B", "prompt": prompt, "max_tokens": 4}).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        request = urllib.request.Request(f"{self._scheme}://127.0.0.1:8081/v1/completions", body, sent)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS, context=self._trust) as answer:
                return Answer(answer.status, answer.read().decode(), answer.headers["x-inference-pod"])
        except HTTPError as error:
            return Answer(error.code, error.read().decode(), "")

    def ask_all(self, prompts: Iterable[str]) -> list[Answer]:
        """Many of them, a few at once."""
        with ThreadPoolExecutor(12) as pool:
            return list(pool.map(self.ask, prompts))

    def logs(self) -> str:
        """The end of the logs of what is not an engine."""
        texts = {
            name: (self.folder / f"{name}.log").read_text(errors="replace") for name in ("picker", "proxy")
        }
        return "\n".join(f"--- {name}\n{text[-3000:]}" for name, text in texts.items())

    def _deployment(self, role: str) -> Any:
        return self.objects.get(f"Deployment/demo-llmd-{role}")

    def _engine(self, role: str) -> Any:
        return self._deployment(role)["spec"]["template"]["spec"]["containers"][0]

    def _start_pod(self, role: str, name: str) -> None:
        pod = self.pods[name] = Pod(len(self.pods) + 1)
        secrets = {"vllm-tls": self.certificate}
        engine = command(
            self.objects, f"demo-llmd-{role}", self.folder / name, name, pod.address, secrets=secrets
        )
        self._run(f"{name}-engine", *pod.enter, *engine.argv, env=engine.env)
        for sidecar in self._deployment(role)["spec"]["template"]["spec"].get("initContainers", ()):
            self._run(f"{name}-sidecar", *pod.enter, SIDECAR, *map(self._here, sidecar["args"]))

    def _register(self) -> None:
        """Tell the API server of Ready pods, at their addresses."""
        manifests, states = [], []
        for role in ("prefill", "decode"):
            template = self._deployment(role)["spec"]["template"]
            spec = {**template["spec"], "nodeName": "here", "automountServiceAccountToken": False}
            for name in self.named(role):
                head = {"apiVersion": "v1", "kind": "Pod"}
                manifests.append({**head, "metadata": {**template["metadata"], "name": name}, "spec": spec})
                states.append({**head, "metadata": {"name": name}, "status": ready(self.pods[name].address)})
        self.plane.apply(*manifests)
        text = "\n---\n".join(map(json.dumps, states))
        self.plane.kubectl("apply", "--server-side", "--subresource=status", "-f", "-", stdin=text)

    def _start_picker(self) -> None:
        config = self.folder / "picker.yaml"
        config.write_text(self.objects.get("ConfigMap/demo-picker")["data"]["picker.yaml"])
        (container,) = self.objects.get("Deployment/demo-picker")["spec"]["template"]["spec"]["containers"]
        args = [self._here(arg).replace("/config/picker.yaml", str(config)) for arg in container["args"]]
        env = {"POD_NAME": "demo-picker-5d8f7c9b6-abcde", "NAMESPACE": "default"}
        self._run("picker", PICKER, *args, env={**env, "KUBECONFIG": str(self.plane.folder / "kubeconfig")})

    def start_proxy(self) -> None:
        text = self.objects.get("ConfigMap/demo-proxy")["data"]["envoy.yaml"]
        names = {"demo-picker": "127.0.0.1"}
        for role in ("prefill", "decode"):
            names[f"demo-llmd-{role}"] = self.pods[self.named(role)[0]].address
        for name, address in names.items():
            text = text.replace(f"{name}.default.svc.cluster.local.", address)
        config = self.folder / "envoy.yaml"
        config.write_text(text.replace("/tls/", f"{self.folder}/tls/"))
        self._run("proxy", ENVOY, "--config-path", config, "--concurrency", "2")

    def _until_served(self) -> None:
        deadline = time.monotonic() + SECONDS
        while self.until_answered() != 200:
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.2)

    def until_answered(self) -> int:
        """The status of the first answer, good or bad, of a proxy that may only just come up."""
        deadline = time.monotonic() + SECONDS
        while not (status := self._status()):
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.2)
        return status

    def _status(self) -> int:
        try:
            return self.ask("One, two,").status
        except OSError:
            return 0

    def _run(self, name: str, *words: str | Path, env: Mapping[str, str] | None = None) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            given = {"PATH": os.environ["PATH"], **(env or {})}
            self.running[name] = subprocess.Popen(words, env=given, stdout=log, stderr=log)

    def fetch(self, place: str, scheme: str = "") -> str:
        """What answers at host:port/path."""
        url = f"{scheme or self._scheme}://{place}"
        context = self._trust if url.startswith("https:") else None
        with urllib.request.urlopen(url, timeout=SECONDS, context=context) as answer:
            return str(answer.read().decode())

    @property
    def _scheme(self) -> str:
        return "https" if self.certificate else "http"

    @property
    def _trust(self) -> ssl.SSLContext | None:
        """The CA of the path, whatever name a certificate has."""
        if not self.certificate:
            return None
        context = ssl.create_default_context(cadata=self.certificate["ca.crt"])
        context.check_hostname = False
        return context

    def _here(self, word: str) -> str:
        return word.replace("=/tls", f"={self.folder}/tls")


def ready(address: str) -> dict[str, Any]:
    """The status of a pod that serves."""
    condition = {"type": "Ready", "status": "True"}
    return {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": [condition]}
