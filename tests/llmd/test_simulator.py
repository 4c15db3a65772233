"""The real simulator takes what the overlay renders, and nothing else would do."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from vllm_phases import catalogue

from tests.engine.service import free_port

from .simulator import SIMULATOR, command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Render

pytestmark = pytest.mark.cluster

SIM = "values/overlays/sim.yaml"
PHASE1, LLMD = "values/phase1.yaml", "values/phase2-llmd.yaml"
SECONDS = 30

# Values, the Deployment that is started, and the models that it then offers.
SETTINGS: dict[str, tuple[str, dict[str, Any], str, list[str]]] = {
    "phase 1": (PHASE1, {}, "demo-server", ["Qwen/Qwen3-8B"]),
    "prefill": (LLMD, {}, "demo-llmd-prefill", ["Qwen/Qwen3-8B"]),
    "decode": (LLMD, {}, "demo-llmd-decode", ["Qwen/Qwen3-8B"]),
    "engine to engine": ("values/phase2-nccl.yaml", {}, "demo-decode", ["Qwen/Qwen3-8B"]),
    "Mooncake": ("values/phase2-mooncake.yaml", {}, "demo-prefill", ["Qwen/Qwen3-8B"]),
    "names, adapters and what only an engine has": (
        PHASE1,
        {
            "model": {"servedNames": ["chat", "other"]},
            "lora": {"modules": {"sql": {"path": "example/sql"}}},
            "args": {"enforce-eager": True, "enable-prefix-caching": False, "gpu-memory-utilization": 0.8},
            "kvTiers": {"offload": {"gibPerPod": 16}},
            "simulator": {"args": {"enable-kvcache": True, "log-http": False, "time-to-first-token": "1ms"}},
        },
        "demo-server",
        ["chat", "other", "sql"],
    ),
}


@contextmanager
def running(argv: list[str], env: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, env=env, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def fetch(url: str, body: object = None) -> tuple[Any, dict[str, str]]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        text = answer.read().decode()
        return json.loads(text or "null"), {name.lower(): value for name, value in answer.headers.items()}


def until_healthy(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            fetch(f"{url}/health")
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        else:
            return


@pytest.mark.parametrize("name", SETTINGS)
def test_it_serves_what_the_overlay_renders(render: Render, tmp_path: Path, name: str) -> None:
    phase, values, deployment, models = SETTINGS[name]
    objects = render(phase, SIM, values={"global": {"vllm": values}})
    found = command(objects, deployment, tmp_path, "demo-1", "127.0.0.1")
    port = free_port()
    argv = [re.sub(r"^--port=\d+$", f"--port={port}", word) for word in found.argv]
    assert f"--port={port}" in argv
    with running(argv, dict(found.env), tmp_path) as process:
        url = f"http://127.0.0.1:{port}"
        until_healthy(url, process, tmp_path / "log")
        assert [model["id"] for model in fetch(f"{url}/v1/models")[0]["data"]] == models
        answer, headers = fetch(f"{url}/v1/completions", {"model": models[0], "prompt": "One, two,"})
        assert answer["choices"][0]["text"]
        assert headers["x-inference-pod"] == "demo-1"


def test_it_would_end_at_a_flag_of_the_engine(render: Render, tmp_path: Path) -> None:
    """Why they are left out: it says so and ends with 0, so nothing looks wrong but that nobody serves."""
    found = command(render(PHASE1, SIM), "demo-server", tmp_path, "demo-1", "127.0.0.1")
    argv = [*found.argv, "--gpu-memory-utilization=0.8"]
    done = subprocess.run(argv, env=found.env, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0
    assert "unknown flag: --gpu-memory-utilization" in done.stdout + done.stderr


def test_the_catalogue_knows_its_options() -> None:
    """All but those of the logging library, of which two are of use."""
    done = subprocess.run([SIMULATOR, "--help"], capture_output=True, text=True, check=False)
    told = set(re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+) ", done.stdout + done.stderr, re.MULTILINE))
    logging = {"alsologtostderr", "alsologtostderrthreshold", "logtostderr", "stderrthreshold"}
    assert set(catalogue.facts("simulator")["options"]) == told - logging
