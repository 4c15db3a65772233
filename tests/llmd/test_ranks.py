"""A port for each data-parallel rank, as llm-d's own programs see it. The engines are fakes that note what they are asked."""

from __future__ import annotations

import os
import subprocess
import threading
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from .path import ADDRESSES, SECONDS, DataPath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cluster.control_plane import ControlPlane
    from tests.conftest import Objects, Render

PICKER = os.environ.get("LLMD_EPP", "")
SIDECAR = os.environ.get("LLMD_SIDECAR", "")
POOL, ENGINE, RANKS = 18000, 18200, 4  # ports that other tests of this folder do not use
DECODE = {"port": ENGINE, "parallelism": {"data": RANKS, "expert": True, "loadBalancing": "external"}}

pytestmark = pytest.mark.cluster


class Engine(BaseHTTPRequestHandler):
    """Answers with its port and notes every path."""

    asked: ClassVar[set[tuple[str, int, str]]] = set()

    def do_GET(self) -> None:
        assert isinstance(self.server, ThreadingHTTPServer)
        address, port = self.server.server_address[:2]
        self.asked.add((str(address), port, self.path))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(port).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def ranked(render: Render) -> Objects:
    """The release, with four ranks in each decode pod."""
    return render("values/phase2-llmd.yaml", values={"llmd": {"prefill": {"port": POOL}, "decode": DECODE}})


@contextmanager
def serving(address: str, port: int) -> Iterator[None]:
    with ThreadingHTTPServer((address, port), Engine) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield
        finally:
            server.shutdown()


@contextmanager
def running(*command: str | Path, log: Path, **env: str) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, env={**os.environ, **env}, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def eventually(read: Callable[[], Any], expected: Any, log: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while (found := read()) != expected:
        assert time.monotonic() < deadline, f"{found} is not {expected}:\n{log.read_text()}"
        time.sleep(0.2)


def answer(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=SECONDS) as said:
            return str(said.read().decode())
    except OSError:
        return ""


@pytest.mark.skipif(not SIDECAR, reason="NOT TESTED: llm-d's own sidecar; LLMD_SIDECAR must name it")
def test_each_port_of_the_sidecar_leads_to_a_rank(ranked: Objects, tmp_path: Path) -> None:
    (sidecar,) = ranked.get("Deployment/demo-llmd-decode")["spec"]["template"]["spec"]["initContainers"]
    log = tmp_path / "sidecar.log"
    with ExitStack() as stack:
        for rank in range(RANKS):
            stack.enter_context(serving("127.0.0.1", ENGINE + rank))
        stack.enter_context(running(SIDECAR, *sidecar["args"], log=log))
        for rank in range(RANKS):
            eventually(partial(answer, POOL + rank), str(ENGINE + rank), log)


@pytest.mark.skipif(not PICKER, reason="NOT TESTED: llm-d's own picker; LLMD_EPP must name it")
def test_the_picker_knows_a_rank_on_each_port_that_a_pod_has(
    ranked: Objects, api_server: ControlPlane, tmp_path: Path
) -> None:
    """It asks each for its metrics. Prefill says by its annotation that it has the first port only."""
    path = DataPath(api_server, ranked, tmp_path)
    (container,) = ranked.get("Deployment/demo-picker")["spec"]["template"]["spec"]["containers"]
    config, log = tmp_path / "picker.yaml", tmp_path / "picker.log"
    config.write_text(ranked.get("ConfigMap/demo-picker")["data"]["picker.yaml"])
    args = [arg.replace("/config/picker.yaml", str(config)) for arg in container["args"]]
    env = {"POD_NAME": "demo-picker-5d8f7c9b6-abcde", "NAMESPACE": "default"}
    env["KUBECONFIG"] = str(api_server.folder / "kubeconfig")
    servers = {"llmd-prefill": 1, "llmd-decode": RANKS}
    expected = {(ADDRESSES[role], POOL + rank) for role, count in servers.items() for rank in range(count)}
    with ExitStack() as stack:
        for role in servers:
            path.register(role)
            for rank in range(RANKS):
                stack.enter_context(serving(ADDRESSES[role], POOL + rank))
        stack.enter_context(running(PICKER, *args, log=log, **env))
        eventually(scraped, expected, log)
        time.sleep(1)
        assert scraped() == expected


def scraped() -> set[tuple[str, int]]:
    """Address and port of each engine that was asked for its metrics."""
    return {(address, port) for address, port, path in Engine.asked if path == "/metrics"}
