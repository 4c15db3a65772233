"""An engine started from the rendered container answers, and the pod of `helm test` tells whether it does."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.engine.service import MODEL, Machine, Service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Render
    from tests.engine.process import Server

pytestmark = pytest.mark.engine

COMPLETION = {"model": MODEL, "prompt": "Count: one, two,", "temperature": 0, "ignore_eos": True}
KEY = "correct horse"
IMPATIENT = "global.vllm.test.timeoutSeconds=5"


@pytest.fixture(scope="module")
def guarded(render: Render, machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Service:
    """A release that wants an API key and speaks HTTPS."""
    sets = ("global.vllm.auth.apiKeySecret.name=api-key", "global.vllm.tls.secretName=tls")
    certificate = self_signed(tmp_path_factory.mktemp("certificate"))
    return Service(render, machine, sets, {"api-key": {"token": KEY}, "tls": certificate})


def self_signed(folder: Path) -> dict[str, str]:
    """A TLS Secret's data."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=demo"]
    files = ["-keyout", f"{folder}/tls.key", "-out", f"{folder}/tls.crt"]
    subprocess.run([*command, *files], check=True, capture_output=True)
    return {file.name: file.read_text() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def engine(guarded: Service) -> Iterator[Server]:
    engine = guarded.start()
    yield engine
    engine.stop()


def test_a_completion_is_answered_under_the_models_public_name(engine: Server) -> None:
    answer = engine.post("/v1/completions", {**COMPLETION, "max_tokens": 8}, KEY)
    assert (answer["model"], answer["usage"]["completion_tokens"]) == (MODEL, 8)


def test_a_chat_is_answered(engine: Server) -> None:
    messages = [{"role": "user", "content": "hello"}]
    answer = engine.post("/v1/chat/completions", {"model": MODEL, "messages": messages, "max_tokens": 8}, KEY)
    assert answer["choices"][0]["message"]["role"] == "assistant"


@pytest.mark.usefixtures("engine")
def test_helm_test_passes(guarded: Service) -> None:
    done = guarded.helm_test()
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "PASSED"), done.stdout
    assert done.stdout.splitlines()[0] == f"models: {MODEL}"


@pytest.mark.usefixtures("engine")
def test_helm_test_fails_on_another_model(guarded: Service) -> None:
    done = guarded.helm_test("global.vllm.model.servedNames={other}")
    assert done.returncode == 1
    assert (
        done.stdout
        == f"FAILED https://127.0.0.1:{guarded.port}: the service offers ['{MODEL}'], not 'other'\n"
    )


@pytest.mark.usefixtures("engine")
def test_helm_test_fails_on_a_wrong_key(guarded: Service) -> None:
    done = guarded.helm_test(secrets={"api-key": {"token": "wrong"}})
    assert done.returncode == 1
    assert done.stdout == (
        f'FAILED https://127.0.0.1:{guarded.port}: /v1/models answered 401: {{"error":"Unauthorized"}}\n'
        "global.vllm.auth.apiKeySecret must name the Secret and key that the engines were started with\n"
    )


def test_helm_test_fails_without_a_server(render: Render, machine: Machine) -> None:
    nobody = Service(render, machine)
    done = nobody.helm_test(IMPATIENT)
    problem = "/v1/models did not answer: <urlopen error [Errno 111] Connection refused>"
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == f"waiting: {problem}"
    assert done.stdout.splitlines()[-1] == f"FAILED http://127.0.0.1:{nobody.port}: {problem}"


def test_a_stream_in_flight_ends_whole_when_the_pod_must_go(render: Render, machine: Machine) -> None:
    """Without --shutdown-timeout, which the chart renders, vLLM aborts it or leaves the client waiting."""
    service = Service(render, machine)
    engine = service.start()
    try:
        assert service.helm_test().returncode == 0
        request = {**COMPLETION, "max_tokens": 4000, "stream_options": {"include_usage": True}}
        events = engine.stream("/v1/completions", request)
        first = next(events)
        engine.terminate()
        rest = list(events)
    finally:
        engine.stop()
    assert first["choices"][0]["finish_reason"] is None
    *_, last, usage, done = rest
    assert last["choices"][0]["finish_reason"] == "length"
    assert usage["usage"]["completion_tokens"] == 4000
    assert done == "[DONE]"
