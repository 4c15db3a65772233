"""llm-d's own picker hears vLLM's own events: what the chart gives to both fits together.

The engines are fakes that turn a prompt's bytes into tokens; LLMD_EPP names the picker, as in test_picker.
"""

from __future__ import annotations

import json
import re
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from tests.charts.test_llmd_precise import OVERLAY, events, flags
from tests.cluster.control_plane import CACHE

from . import path as parts
from .path import ADDRESSES, HERE, SECONDS, DataPath, here, request
from .test_picker import PICKER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.control_plane import ControlPlane
    from tests.conftest import Render

VLLM = CACHE / "engine/bin/python"
IMPORT_SECONDS = 300  # of vLLM, on a cold disk
HITS = re.compile(r"^llm_d_\w*kv_cache_index_lookup_hits_total (\S+)", re.MULTILINE)
PROMPT = "An engine that has read this before need not read it again. " * 8

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not PICKER, reason="NOT TESTED: llm-d's own picker; LLMD_EPP must name it"),
]


class PrecisePath(DataPath):
    """The path with llm-d's picker, and with what an engine publishes of its cache."""

    def start_picker(self) -> None:
        config = self.folder / "picker.yaml"
        config.write_text(here(self.objects.get("ConfigMap/demo-picker")["data"]["picker.yaml"]))
        (container,) = self.objects.get("Deployment/demo-picker")["spec"]["template"]["spec"]["containers"]
        args = (arg.replace("/config/picker.yaml", str(config)) for arg in container["args"])
        self._run("picker", PICKER, *args)

    def publish(self, prompt: str) -> None:
        """Have an engine's events say that the prompt is in its cache."""
        config = json.dumps(events(self.objects, "decode")).replace("$(POD_IP)", ADDRESSES["llmd-decode"])
        size = flags(self.objects, "decode")["--block-size"]
        self._run("publisher", VLLM, HERE / "publisher.py", config, json.dumps(list(prompt.encode())), size)

    def hits(self) -> float:
        """How many blocks of prompts the picker has found in an engine's cache."""
        with urllib.request.urlopen("http://127.0.0.1:9090/metrics", timeout=SECONDS) as answer:
            found = HITS.search(answer.read().decode())
        return float(found[1]) if found else 0


@pytest.fixture
def path(
    render: Render, api_server: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PrecisePath]:
    counted = {"indexerConfig": {"kvBlockIndexConfig": {"enableMetrics": True}}}
    # Speculation would count the prompt itself, once it was sent somewhere.
    picker = {
        "prefixCache": {"speculative": False},
        "extraPluginParameters": {"precise-prefix-cache-producer": counted},
    }
    values: dict[str, Any] = {"llmd": {"inferencePool": {"enabled": True}, "endpointPicker": picker}}
    objects = render("values/phase2-llmd.yaml", OVERLAY, values=values)
    api_server.apply(objects.get("InferencePool/demo-pool"))
    monkeypatch.setattr(parts, "for_this_picker", str)
    found = PrecisePath(api_server, objects, tmp_path)
    try:
        found.start()
        found.until_ready()
        yield found
    finally:
        found.stop()


def test_the_picker_learns_what_engines_have_in_their_caches(path: PrecisePath) -> None:
    def asked() -> float:
        status, text = request("POST", "/v1/completions", {"model": "Qwen/Qwen3-8B", "prompt": PROMPT})
        assert status == 200, f"{text}\n{path.logs()}"
        return path.hits()

    path.until_served()
    assert asked() == 0
    path.publish(PROMPT)
    deadline = time.monotonic() + IMPORT_SECONDS
    while asked() == 0:
        assert path.running["publisher"].poll() is None, path.logs()
        assert time.monotonic() < deadline, path.logs()
        time.sleep(1)
