"""llm-d's own picker takes every configuration that the chart can render.

LLMD_EPP names it, built by hand from llm-d-router's sources.
"""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.charts.test_llmd_raw import REFUSED

from .path import SECONDS, listening

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.control_plane import ControlPlane
    from tests.conftest import Objects, Render

PICKER = os.environ.get("LLMD_EPP", "")

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not PICKER, reason="NOT TESTED: llm-d's own picker; LLMD_EPP must name it"),
]

SCORERS = ("kv-cache-utilization-scorer", "lora-affinity-scorer", "token-load-scorer", "load-aware-scorer")
SETTINGS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "with a pool": {"inferencePool": {"enabled": True}},
    "always by way of prefill": {"endpointPicker": {"decider": {"type": "always"}}},
    "with a queue": {"endpointPicker": {"flowControl": {"enabled": True}}},
    "with guarded metrics": {"endpointPicker": {"metricsAuthentication": True}},
    "with other scorers": {
        "endpointPicker": {"profiles": {"decode": {"scorers": dict.fromkeys(SCORERS, 1.5)}}}
    },
    "with an experimental scorer": {
        "endpointPicker": {
            "args": {"allow-experimental-plugins": True},
            "profiles": {"decode": {"scorers": {"session-affinity-scorer": 1}}},
        }
    },
    "with a precise index": {"endpointPicker": {"prefixCache": {"type": "precise"}}},
    "with a precise index and all that may read it": {
        "endpointPicker": {
            "prefixCache": {"type": "precise", "speculative": False},
            "profiles": {
                "prefill": {
                    "filters": ["prefix-cache-affinity-filter"],
                    "scorers": {"no-hit-lru-scorer": 1, "token-load-scorer": 1},
                },
                "decode": {"picker": "weighted-random-picker"},
            },
        },
        "inferencePool": {"enabled": True},
    },
    "with other ways to pick": {
        "endpointPicker": {
            "profiles": {
                "prefill": {"picker": "random-picker"},
                "decode": {"picker": "weighted-random-picker"},
            }
        }
    },
    "with parameters of one's own": {
        "endpointPicker": {
            "extraPluginParameters": {
                "prefix-based-pd-decider": {"promptTokens": 1024},
                "utilization-detector": {"queueDepthThreshold": 10},
                "concurrency-detector": {"maxConcurrency": 64},
            },
            "flowControl": {"enabled": True},
            "extraConfig": {"flowControl": {"saturationDetector": {"pluginRef": "concurrency-detector"}}},
        }
    },
    "with priorities and rewrites": {
        "endpointPicker": {"flowControl": {"enabled": True}},
        "inferencePool": {
            "enabled": True,
            "objectives": {"premium": 10, "batch": -1},
            "rewrites": {"chat": {"models": ["chat"], "targets": {"Qwen/Qwen3-8B": 1}}},
        },
    },
}


def started(objects: Objects, api_server: ControlPlane, folder: Path) -> tuple[bool, str]:
    """Whether the rendered picker comes up, and what it says."""
    (container,) = objects.get("Deployment/demo-picker")["spec"]["template"]["spec"]["containers"]
    config = folder / "picker.yaml"
    config.write_text(objects.get("ConfigMap/demo-picker")["data"]["picker.yaml"])
    args = [arg.replace("/config/picker.yaml", str(config)) for arg in container["args"]]
    env = {"POD_NAME": "demo-picker-5d8f7c9b6-abcde", "NAMESPACE": "default"}
    env["KUBECONFIG"] = str(api_server.folder / "kubeconfig")
    with (folder / "log").open("wb") as log:
        picker = subprocess.Popen([PICKER, *args], env=env, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + SECONDS
        while picker.poll() is None and not listening(9002) and time.monotonic() < deadline:
            time.sleep(0.1)
        return picker.poll() is None and listening(9002), (folder / "log").read_text()
    finally:
        picker.kill()
        picker.wait()


@pytest.mark.parametrize("name", SETTINGS)
def test_it_starts_with_what_the_chart_renders(
    render: Render, api_server: ControlPlane, tmp_path: Path, name: str
) -> None:
    objects = render("values/phase2-llmd.yaml", values={"llmd": SETTINGS[name]})
    up, said = started(objects, api_server, tmp_path)
    assert up, said


@pytest.mark.parametrize("name", REFUSED)
def test_it_refuses_what_the_linter_finds(
    render: Render, api_server: ControlPlane, tmp_path: Path, name: str
) -> None:
    config, _, message = REFUSED[name]
    objects = render("values/phase2-llmd.yaml", values={"llmd": {"endpointPicker": {"extraConfig": config}}})
    up, said = started(objects, api_server, tmp_path)
    assert not up
    assert message in said.replace('\\"', '"')
