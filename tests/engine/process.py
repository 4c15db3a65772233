"""A pod that serves HTTP, an engine or the router, as a process of this machine."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.pods import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.engine.pods import Secrets

_log = logging.getLogger(__name__)


class Server:
    """One running pod; `wait` returns once it serves, `stop` ends it as the kubelet does."""

    def __init__(
        self,
        pod: Mapping[str, Any],
        binaries: Path,
        folder: Path,
        secrets: Secrets,
        address: str = "127.0.0.1",
    ) -> None:
        self._pod = pod
        self._container = pod["containers"][0]
        self._probe = self._container.get("startupProbe") or self._container["readinessProbe"]
        self.port: int = self._named_port(self._probe["httpGet"]["port"])
        self.url = f"{self._probe['httpGet'].get('scheme', 'HTTP').lower()}://{address}:{self.port}"
        self.log = folder / f"{self._container['name']}.log"
        started = command(pod, folder, secrets, address)
        env = {"PATH": f"{binaries}:{os.defpath}", **started.env}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                started.argv, env=env, cwd=folder, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> None:
        """Ask the probe's path until it answers, as long as a startup probe's budget lasts, else a minute."""
        budget = self._probe["periodSeconds"] * self._probe.get("failureThreshold", 12)
        start = time.monotonic()
        while not self._serves():
            if not self.running or time.monotonic() - start > budget:
                ended = f"ended with {self._process.poll()}" if not self.running else "does not serve"
                pytest.fail(
                    f"{self._container['name']} {ended} after {time.monotonic() - start:.0f} s; its log:\n{self.tail()}"
                )
            _log.info("waiting %.0f s: %s", time.monotonic() - start, self.tail(1)[:160])
            time.sleep(2)

    def ended(self) -> int:
        """Wait for it to end by itself; its exit code."""
        return self._process.wait(self._probe["periodSeconds"] * self._probe["failureThreshold"])

    def tail(self, lines: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def post(self, path: str, body: Mapping[str, Any], key: str = "") -> Any:
        """The JSON answer to a JSON request."""
        with self._open(path, body, key) as answer:
            return json.load(answer)

    def stream(self, path: str, body: Mapping[str, Any]) -> Iterator[Any]:
        """The events of a streamed answer as they come, "[DONE]" the last."""
        with self._open(path, {**body, "stream": True}) as answer:
            for line in answer:
                if event := line.decode().removeprefix("data: ").strip():
                    yield event if event == "[DONE]" else json.loads(event)

    def count(self, sample: str) -> float:
        """The sum of a sample in /metrics over its labels."""
        with self._open("/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(rf"{sample}[{{ ]", line))

    def terminate(self) -> None:
        """Send the signal with which the kubelet asks a container to end."""
        self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Ask it to end; when the pod's grace period is over, kill it and all that it started."""
        self.terminate()
        try:
            self._process.wait(self._pod["terminationGracePeriodSeconds"])
        finally:
            if self.running:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def _named_port(self, port: int | str) -> int:
        named = {entry["name"]: entry["containerPort"] for entry in self._container["ports"]}
        return int(named.get(port, port))

    def _serves(self) -> bool:
        try:
            with self._open(self._probe["httpGet"]["path"], timeout=self._probe["timeoutSeconds"]) as answer:
                return bool(answer.status < 400)
        except OSError:
            return False

    def _open(
        self, path: str, body: Mapping[str, Any] | None = None, key: str = "", timeout: float = 120
    ) -> Any:
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers)
        context = ssl._create_unverified_context() if self.url.startswith("https:") else None
        return urllib.request.urlopen(request, timeout=timeout, context=context)
