"""Phase 2 by llm-d: a release climbs, nobody steers, no stream is cut, and with llm-d's own programs KV moves.

LLMD_EPP and LLMD_SIDECAR name the picker and the sidecar, built by hand from llm-d-router's sources, of the release
that values/phase2-llmd.yaml asks for. Without them stand-ins of the node's image are run (image/app), and what only
the real ones show is skipped. Engines, NIXL, Envoy, discovery, Services and policies are real always.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from .client import sleeping_pod
from .climb import Climbed, Insider, answers, climb, helm_test
from .node import llmd_programs
from .release import Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .client import Client
    from .site import Site

pytestmark = pytest.mark.node

FORGED = ("x-gateway-destination-endpoint", "x-prefiller-host-port")

# Asks with headers that only the picker may set, and prints the status.
FORGE = """
import json, sys, urllib.error, urllib.request
url, model, *headers = sys.argv[1:]
body = {"model": model, "prompt": "forged", "max_tokens": 2}
sent = {"Content-Type": "application/json", **dict(header.split("=") for header in headers)}
request = urllib.request.Request(url, json.dumps(body).encode(), sent)
try:
    print(urllib.request.urlopen(request, timeout=120).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""

# Streams one long answer after the other and prints when each began, when and how it ended.
STREAMS = """
import json, sys, time, urllib.request
url, model, tokens = sys.argv[1:]
number = 0
while True:
    number += 1
    body = {"model": model, "prompt": f"{number} red", "max_tokens": int(tokens), "ignore_eos": True}
    body |= {"stream": True, "stream_options": {"include_usage": True}}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    began, count, last = time.time(), 0, ""
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            for line in answer:
                if text := line.decode().strip():
                    last = text
                    if '"usage":{' in text.replace(" ", ""):
                        count = json.loads(text.removeprefix("data:"))["usage"]["completion_tokens"]
    except Exception as error:
        last = f"{type(error).__name__} {error}"
    print(json.dumps({"began": began, "ended": time.time(), "tokens": count, "last": last[-200:]}), flush=True)
"""

# Asks with new prompts, long enough for prefill, until it is told no more, and prints each status.
ASK = """
import json, sys, time, urllib.error, urllib.request
url, model, seconds = sys.argv[1:]
end = time.time() + float(seconds)
while time.time() < end:
    body = {"model": model, "prompt": f"{time.time()} " + "black white " * 40, "max_tokens": 2}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        said = urllib.request.urlopen(request, timeout=120).status
    except urllib.error.HTTPError as error:
        said = error.code
    except OSError as error:
        said = type(error).__name__
    print(said)
    time.sleep(0.2)
"""

# Ends the engine of a vLLM server as a crash would; the server finds out and ends too.
DIE = """
import os, pathlib, signal
for process in pathlib.Path("/proc").glob("[0-9]*"):
    if b"EngineCore" in (process / "cmdline").read_bytes():
        os.kill(int(process.name), signal.SIGKILL)
"""

# Listens where no engine is, and prints who calls.
TRAP = """
import socket
listener = socket.create_server(("0.0.0.0", 8000))
print("listening", flush=True)
while True:
    _, caller = listener.accept()
    print("called by", caller[0], flush=True)
"""


@pytest.fixture(scope="module")
def real(node: Site) -> bool:
    """Whether picker and sidecar are llm-d's own."""
    return node.machine is None or len(llmd_programs()) == 2


@pytest.fixture(scope="module")
def climbed(node: Site, client: Client, progress: Callable[[str], None], real: bool) -> Iterator[Climbed]:
    """The release in phase 2, after a climb during which a client kept asking. The stand-in wants a pool.

    Processors are free where GPUs would not be, so a new decode engine may come before the old one goes.
    """
    pool = f"llmd.inferencePool.enabled={str(not real).lower()}"
    surge = ("llmd.decode.rollout.maxSurge=1", "llmd.decode.rollout.maxUnavailable=0")
    with node.namespace() as namespace:
        yield climb(Release(node, namespace), client, "phase2-llmd", progress, pool, *surge)


@pytest.fixture(scope="module")
def llmd(real: bool) -> None:
    """Skip where llm-d's own programs are not."""
    if not real:
        pytest.skip("NOT TESTED: llm-d's own picker and sidecar; LLMD_EPP and LLMD_SIDECAR must name them")


@pytest.fixture(scope="module")
def release(climbed: Climbed) -> Release:
    return climbed.release


@pytest.fixture(scope="module")
def insider(release: Release) -> Insider:
    return Insider.start(release)


def complete(climbed: Climbed, client: Client, prompt: str, path: str = "completions") -> Any:
    body = {"model": climbed.model, "max_tokens": 4}
    asked = (
        {"messages": [{"role": "user", "content": prompt}]}
        if path == "chat/completions"
        else {"prompt": prompt}
    )
    return client.post(f"{climbed.release.url}/v1/{path}", {**body, **asked})


def test_no_request_fails_while_the_release_climbs(climbed: Climbed, progress: Callable[[str], None]) -> None:
    progress(f"{len(climbed.load)} requests during the climb, the last: {climbed.load[-1]}")
    assert len(climbed.load) > 20
    assert [line for line in climbed.load if line.split()[1:] != ["answered"]] == []


@pytest.mark.usefixtures("llmd")
@pytest.mark.parametrize("path", ["completions", "chat/completions"])
def test_kv_moves_for_long_prompts(
    climbed: Climbed, client: Client, insider: Insider, progress: Callable[[str], None], path: str
) -> None:
    names = ("nixl_xfer_time_seconds_count", "nixl_bytes_transferred_sum", "nixl_num_failed_transfers_total")

    def counted() -> dict[str, float]:
        return {name: insider.count("llmd-decode", name, 8200) for name in names}

    before = counted()
    complete(climbed, client, f"{time.time()} " + "black white " * 40, path)
    time.sleep(2)
    after = counted()
    progress(f"decode counted {json.dumps(before)} before and {json.dumps(after)} after one of {path}")
    assert [after[name] > before[name] for name in names] == [True, True, False]


@pytest.mark.usefixtures("llmd")
def test_the_access_log_names_both_engines(
    climbed: Climbed, client: Client, progress: Callable[[str], None]
) -> None:
    """The picker's word on prefill (x-prefiller-host-port) and decode, for a long prompt and for a short one."""
    release = climbed.release
    prefill, decode, proxy = (release.pods(role)[0] for role in ("llmd-prefill", "llmd-decode", "proxy"))

    def logged() -> list[Any]:
        lines = release.kubectl("logs", proxy["metadata"]["name"]).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    complete(climbed, client, f"{time.time()} " + "black white " * 40)
    complete(climbed, client, "short")
    until(lambda: len(logged()) > 1 and logged()[-1]["prefill"] is None, 30)  # Envoy writes every ten seconds
    long, short = logged()[-2:]
    progress(f"access log: {json.dumps([long, short])}")
    assert long["prefill"] == f"{prefill['status']['podIP']}:8000"
    assert {long["decode"], short["decode"]} == {f"{decode['status']['podIP']}:8000"}


def test_answers_are_those_of_phase_1(climbed: Climbed, client: Client) -> None:
    assert answers(climbed.release, client, climbed.model) == climbed.answers


@pytest.mark.usefixtures("llmd")
def test_helm_test_proves_the_transfer(release: Release, progress: Callable[[str], None]) -> None:
    passed, said = helm_test(release)
    progress(said)
    assert passed
    assert "from prefill to decode, none failed" in said


def test_forged_headers_reach_nothing(
    climbed: Climbed, client: Client, progress: Callable[[str], None]
) -> None:
    """Neither Envoy's administration nor a foreign prefill engine."""
    cluster = climbed.release.site.cluster
    cluster.apply(
        sleeping_pod("trap", climbed.release.site.image, "python3", "-c", TRAP), namespace=client.namespace
    )
    cluster.kubectl("wait", "--for=condition=Ready", "pod/trap", "-n", client.namespace, "--timeout=5m")
    trap = cluster.get("pod", "trap", "-n", client.namespace)["status"]["podIP"]
    url = f"{climbed.release.url}/v1/completions"
    tries = {
        header: client.python(FORGE, url, climbed.model, f"{header}={to}")
        for header, to in zip(FORGED, ("127.0.0.1:19000", f"{trap}:8000"), strict=True)
    }
    said = cluster.kubectl("logs", "trap", "-n", client.namespace).splitlines()
    progress(f"forged headers: {json.dumps(tries)}; the trap: {said}")
    assert set(tries.values()) == {"200"}
    assert said == ["listening"]


@pytest.mark.parametrize("component", ["proxy", "picker", "llmd-decode"])
def test_streams_survive_a_rolling_restart(
    climbed: Climbed, client: Client, progress: Callable[[str], None], component: str
) -> None:
    """Of decode: of engine and sidecar. One stream is in flight at any time, so one is when the old pod must go."""
    release = climbed.release
    cluster, name = release.site.cluster, f"streams-{component}"
    url = f"{release.url}/v1/completions"
    pod = sleeping_pod(name, release.site.image, "python3", "-c", STREAMS, url, climbed.model, "400")
    cluster.apply(pod, namespace=client.namespace)
    cluster.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "-n", client.namespace, "--timeout=2m")

    def ended() -> list[Any]:
        return [
            json.loads(line) for line in cluster.kubectl("logs", name, "-n", client.namespace).splitlines()
        ]

    until(lambda: len(ended()) > 0)
    (old,) = release.pods(component)
    progress(f"rolling restart of {component} under streams")
    release.kubectl("rollout", "restart", f"deployment/demo-{component}")
    release.kubectl("rollout", "status", f"deployment/demo-{component}", "--timeout=10m")
    release.kubectl("wait", "--for=delete", f"pod/{old['metadata']['name']}", "--timeout=5m")
    gone, streams = time.time(), len(ended())
    until(lambda: len(ended()) > streams)
    seen = ended()
    cluster.kubectl("delete", "pod", name, "-n", client.namespace)
    progress(f"{component} gone at {gone:.0f}: {len(seen)} streams, the last {json.dumps(seen[-3:])}")
    assert [stream for stream in seen if (stream["last"], stream["tokens"]) != ("data: [DONE]", 400)] == []


@pytest.mark.usefixtures("llmd")
def test_a_prefill_engine_that_dies_is_told_to_clients_until_the_picker_knows(
    climbed: Climbed, client: Client, insider: Insider, progress: Callable[[str], None]
) -> None:
    """From 0.9 on an error of prefill is the client's; with no prefill engine left, decode computes all by itself."""
    release = climbed.release
    (proxy,) = release.pods("proxy")
    (prefill,) = release.pods("llmd-prefill")
    url = f"http://{proxy['status']['podIP']}:8081/v1/completions"
    pod = ("-i", prefill["metadata"]["name"], "-n", release.namespace)
    release.site.cluster.kubectl("exec", *pod, "--", "python3", "-", stdin=DIE)
    said = client.python(ASK, url, climbed.model, "40").splitlines()
    progress(f"after prefill's engine died: {' '.join(said)}")
    assert set(said) - {"200"}
    assert set(said) <= {"200", "500", "502", "503"}
    release.kubectl("rollout", "status", "deployment/demo-llmd-prefill", "--timeout=10m")
    until(lambda: ready(release, "llmd-prefill") and ready(release, "proxy"))
    before = insider.count("llmd-decode", "nixl_xfer_time_seconds_count", 8200)

    def moved() -> bool:
        complete(climbed, client, f"{time.time()} " + "black white " * 40)
        return insider.count("llmd-decode", "nixl_xfer_time_seconds_count", 8200) > before

    until(moved)  # the picker hears of a new engine a moment after it is Ready


@pytest.mark.usefixtures("llmd")
def test_without_prefill_the_proxy_is_not_ready_and_helm_test_names_it(
    release: Release, progress: Callable[[str], None]
) -> None:
    (pod,) = release.pods("llmd-prefill")
    scale = ("scale", "deployment/demo-llmd-prefill")
    release.kubectl(*scale, "--replicas=0")  # or it may be back before the test ends
    release.kubectl("delete", "pod", pod["metadata"]["name"], "--ignore-not-found", "--wait=false")
    until(lambda: ready(release, "proxy") is False)
    passed, said = helm_test(release)
    progress(said)
    assert not passed
    assert "FAILED prefill: no ready engine behind demo-llmd-prefill:8000" in said
    progress("until prefill is Ready again")
    release.kubectl(*scale, "--replicas=1")
    release.kubectl("rollout", "status", "deployment/demo-llmd-prefill", "--timeout=10m")
    until(lambda: ready(release, "proxy") is True)
    passed, said = helm_test(release)
    progress(said)
    assert passed, said


def test_uninstall_ends_everything(release: Release) -> None:
    release.helm("uninstall", "demo", "--wait", "--timeout=5m")
    for component in ("llmd-prefill", "llmd-decode", "picker", "proxy"):
        release.until_gone(component)
    left: list[Any] = release.get("deployments,services,networkpolicies,configmaps,roles,rolebindings")
    assert [item["metadata"]["name"] for item in left] == ["kube-root-ca.crt"]


def ready(release: Release, component: str) -> bool:
    conditions = [
        condition["status"] == "True"
        for pod in release.pods(component)
        for condition in pod["status"]["conditions"]
        if condition["type"] == "Ready"
    ]
    return any(conditions)


def until(holds: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not so after {seconds} s"
        time.sleep(1)
