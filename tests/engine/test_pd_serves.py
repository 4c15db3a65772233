"""Prefill, decode and router from the rendered pods: KV moves, and where it does not, `helm test` says which link broke.

The engines, NIXL and the router are real. What cannot be true of one pair is made true by changing one role's arguments.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import pods
from tests.engine.disaggregated import ADDRESSES, Disaggregated, with_arguments
from tests.engine.process import Server
from tests.engine.service import MODEL
from tests.engine.test_pd_arguments import TALK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Render
    from tests.engine.service import Machine

    Pod = dict[str, Any]

pytestmark = pytest.mark.engine

PROMPT = "red green blue " * 40
IMPATIENT = 12
"""Seconds that a test may take which will not pass."""


@pytest.fixture(scope="module")
def pair(render: Render, machine: Machine) -> Iterator[Disaggregated]:
    pair = Disaggregated(render, machine)
    yield pair
    pair.stop()


def transfer_config(pod: Pod, **fields: object) -> Pod:
    """A pod whose --kv-transfer-config has other fields, or no such option without any."""
    flag = "--kv-transfer-config="

    def change(words: list[str]) -> list[str]:
        (own,) = (word for word in words if word.startswith(flag))
        other = [flag + json.dumps(json.loads(own.removeprefix(flag)) | fields)] if fields else []
        return [word for word in words if word != own] + other

    return with_arguments(pod, change)


def without_connector(pod: Pod) -> Pod:
    return transfer_config(pod)


def from_another_path(pod: Pod) -> Pod:
    """The same weights under another name: what NIXL's two sides compare is the text."""
    return with_arguments(pod, lambda words: [words[0] + "/.", *words[1:]])


def failed(done: Any) -> list[str]:
    """The lines in which a test that has failed says what is broken."""
    lines = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert (done.returncode, bool(lines)) == (1, True), done.stdout
    return lines


def refusal(pair: Disaggregated, pod: Pod) -> str:
    """What an engine says that does not start."""
    folder = pair.machine.folder / "refused"
    folder.mkdir(exist_ok=True)
    engine = Server(pod, pair.machine.binaries, folder, {})
    try:
        assert engine.ended() != 0
    finally:
        if engine.running:
            engine.stop()
    return engine.log.read_text()


def test_the_engine_refuses_the_talks_json(pair: Disaggregated) -> None:
    pod = transfer_config(pods.deployment(pair.objects(), "demo-prefill"), **TALK)
    assert "Unexpected keyword argument" in refusal(pair, pod)


def test_the_engine_refuses_an_unknown_connector_when_it_starts(pair: Disaggregated) -> None:
    """Its parser takes any name, so what a parser takes proves nothing here."""
    pod = transfer_config(pods.deployment(pair.objects(), "demo-prefill"), kv_connector="NixlConector")
    assert "Unsupported connector type: NixlConector" in refusal(pair, pod)


def test_a_completion_moves_kv_from_prefill_to_decode(pair: Disaggregated) -> None:
    pair.become()
    counters = ("vllm:nixl_xfer_time_seconds_count", "vllm:nixl_bytes_transferred_sum")
    decode = pair.servers["decode"]
    before = [decode.count(name) for name in counters]
    body = {"model": MODEL, "prompt": PROMPT, "max_tokens": 8, "temperature": 0}
    answer = pair.servers["router"].post("/v1/completions", body)
    assert answer["usage"]["completion_tokens"] == 8
    after = [decode.count(name) for name in counters]
    assert [late > early for early, late in zip(before, after, strict=True)] == [True, True]
    assert decode.count("vllm:nixl_num_failed_transfers_total") == 0


def test_helm_test_proves_the_transfer(pair: Disaggregated) -> None:
    pair.become()
    done = pair.helm_test()
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "PASSED"), done.stdout
    assert "from prefill to decode, none failed" in done.stdout


def test_helm_test_names_prefill_while_it_is_gone(pair: Disaggregated) -> None:
    pair.become(prefill=None)
    assert failed(pair.helm_test(IMPATIENT))[0].startswith(
        f"FAILED prefill: no ready engine behind {ADDRESSES['prefill']}:8000"
    )


def test_helm_test_names_decode_while_it_is_gone(pair: Disaggregated) -> None:
    pair.become(decode=None)
    assert failed(pair.helm_test(IMPATIENT))[0].startswith(
        f"FAILED decode: no ready engine behind {ADDRESSES['decode']}:8000"
    )


def test_helm_test_sees_that_decode_computes_again(pair: Disaggregated) -> None:
    """Decode without a connector answers every request: only the counters tell."""
    pair.become(decode=without_connector)
    *_, said = failed(pair.helm_test())
    assert "prefill to decode: prefill saw the prompt, but no KV was moved" in said


def test_helm_test_sees_a_handshake_that_fails(pair: Disaggregated) -> None:
    """The first answer may take half a minute: prefill still waits for the decode engine that was there before."""
    pair.become(decode=from_another_path)
    done = pair.helm_test(60)
    link = failed(done)[0]
    assert link.startswith("FAILED prefill to decode: "), done.stdout
    assert link.endswith("transfers failed since the engines started; their logs say why")
    assert "NIXL compatibility hash mismatch" in pair.servers["decode"].log.read_text()
