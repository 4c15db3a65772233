"""Requests really flow through Envoy, as the chart configures it, and a real endpoint picker."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from contextlib import suppress
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from .path import ADDRESSES, ENVOY, DataPath, request, stream

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.control_plane import ControlPlane
    from tests.conftest import Objects, Render

pytestmark = pytest.mark.cluster

PROMPT = {"model": "a-model", "prompt": "One, two,"}


def asked(body: object = PROMPT, headers: dict[str, str] | None = None) -> Any:
    """What reached the engine."""
    status, text = request("POST", "/v1/completions", body, headers)
    assert status == 200, text
    return json.loads(text)


@pytest.mark.usefixtures("path")
def test_a_completion_reaches_an_engine_of_the_pool() -> None:
    answers = [asked() for _ in range(4)]
    assert {answer["engine"] for answer in answers} == {"llmd-prefill", "llmd-decode"}
    assert [answer["asked"] for answer in answers] == [PROMPT] * 4


@pytest.mark.usefixtures("path")
def test_a_large_body_arrives_whole() -> None:
    body = {**PROMPT, "prompt": "red green blue " * 200_000}
    assert asked(body)["asked"] == body


FORGED = {
    "x-gateway-destination-endpoint": f"{ADDRESSES['proxy']}:19000",
    "x-prefiller-host-port": "203.0.113.1:8000",
    "x-encoder-hosts-ports": "203.0.113.1:8000",
    "x-data-parallel-host-port": "203.0.113.1:8000",
    "x-kv-cache-source-host-port": "203.0.113.1:8000",
}


@pytest.mark.usefixtures("path")
def test_no_client_steers() -> None:
    """Of the headers only the destination arrives, and it is the picker's: not Envoy's own administration."""
    headers = {name.lower(): text for name, text in asked(headers=FORGED)["headers"].items()}
    engines = {f"{ADDRESSES[role]}:8000" for role in ("llmd-prefill", "llmd-decode")}
    assert {name: text for name, text in headers.items() if name in FORGED} == {
        "x-gateway-destination-endpoint": headers["x-gateway-destination-endpoint"]
    }
    assert headers["x-gateway-destination-endpoint"] in engines


def test_a_stream_in_flight_ends_whole_when_the_proxy_must_go(path: DataPath) -> None:
    events = stream(40)
    assert next(events) == "0"
    drain = threading.Thread(target=path.drain_proxy)
    drain.start()
    path.until_ready(False)
    assert list(events) == [*map(str, range(1, 40)), "[DONE]"]
    drain.join()
    assert "proxy" not in path.running


def test_without_the_hook_the_stream_would_be_cut(path: DataPath) -> None:
    """Why the hook is there."""
    events = stream(40)
    assert next(events) == "0"
    path.running["proxy"].terminate()
    rest: list[str] = []
    with suppress(OSError, HTTPException):
        rest.extend(events)
    assert "[DONE]" not in rest


def test_without_a_picker_nothing_is_served_and_the_proxy_is_not_ready(path: DataPath) -> None:
    path.kill("picker")
    path.until_ready(False)
    status, _ = request("POST", "/v1/completions", PROMPT, FORGED)
    assert status == 500
    assert request("GET", "/v1/models", headers=FORGED)[0] == 500
    path.start_picker()
    path.until_ready()
    path.until_served()
    assert asked()["asked"] == PROMPT


@pytest.mark.parametrize("role", ["llmd-prefill", "llmd-decode"])
def test_without_a_role_the_proxy_is_not_ready(
    api_server: ControlPlane, objects: Objects, tmp_path: Path, role: str
) -> None:
    path = DataPath(api_server, objects, tmp_path)
    try:
        path.start(role)
        time.sleep(5)
        path.until_ready(False)
    finally:
        path.stop()


SETTINGS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "other ports": {"prefill": {"port": 9000}, "decode": {"port": 9001}},
    "a log": {"proxy": {"accessLog": True, "requestTimeoutSeconds": 5, "maxRequests": 10}},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_envoy_accepts_every_configuration(render: Render, tmp_path: Path, name: str) -> None:
    objects = render("values/phase2-llmd.yaml", values={"llmd": SETTINGS[name]})
    file = tmp_path / "envoy.yaml"
    file.write_text(objects.get("ConfigMap/demo-proxy")["data"]["envoy.yaml"])
    done = subprocess.run(
        [ENVOY, "--mode", "validate", "--config-path", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stderr


def test_envoy_is_the_release_that_the_chart_pins(objects: Objects) -> None:
    said = subprocess.run([ENVOY, "--version"], capture_output=True, text=True, check=True).stdout
    (container,) = objects.get("Deployment/demo-proxy")["spec"]["template"]["spec"]["containers"]
    assert f"/{container['image'].rpartition(':v')[2]}/" in said


def test_envoy_accepts_what_istio_is_given(render: Render, tmp_path: Path) -> None:
    """Istio puts the filter of the EnvoyFilter before all others, as the chart's own configuration has it."""
    objects = render("values/phase2-llmd.yaml", "values/overlays/gateway-istio.yaml")
    (found,) = (each for each in objects.by_id.values() if each["kind"] == "EnvoyFilter")
    (patch,) = found["spec"]["configPatches"]
    plain = render("values/phase2-llmd.yaml").get("ConfigMap/demo-proxy")["data"]["envoy.yaml"]
    config = yaml.safe_load(plain)
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    assert manager["http_filters"][0] == patch["patch"]["value"]
    manager["http_filters"].insert(0, patch["patch"]["value"])
    file = tmp_path / "envoy.yaml"
    file.write_text(yaml.safe_dump(config))
    done = subprocess.run(
        [ENVOY, "--mode", "validate", "--config-path", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
