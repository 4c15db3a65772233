"""Phase 2 by llm-d, with its own picker and sidecar: a release climbs, KV moves, nobody steers, no stream is cut.

LLMD_EPP and LLMD_SIDECAR name the two programs, built by hand from llm-d-router's sources, of the release that
values/phase2-llmd.yaml asks for. Engines, NIXL, Envoy, discovery, Services and policies are real as well.
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

pytestmark = [
    pytest.mark.node,
    pytest.mark.skipif(
        len(llmd_programs()) < 2,
        reason="NOT TESTED: llm-d's own picker and sidecar; LLMD_EPP and LLMD_SIDECAR must name them",
    ),
]

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

# Streams one long answer and prints how it ended.
STREAM = """
import json, sys, urllib.request
url, model, tokens = sys.argv[1:]
body = {"model": model, "prompt": "a long one", "max_tokens": int(tokens), "stream": True, "ignore_eos": True}
request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
count, last = 0, ""
try:
    with urllib.request.urlopen(request, timeout=600) as answer:
        print("begun", flush=True)
        for line in answer:
            if text := line.decode().strip():
                count, last = count + 1, text
except Exception as error:
    last = f"{type(error).__name__} {error}"
print(json.dumps({"events": count, "last": last[-200:]}), flush=True)
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
def climbed(node: Site, client: Client, progress: Callable[[str], None]) -> Iterator[Climbed]:
    """The release in phase 2, after a climb during which a client kept asking."""
    with node.namespace() as namespace:
        yield climb(Release(node, namespace), client, "phase2-llmd", progress)


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


def test_answers_are_those_of_phase_1(climbed: Climbed, client: Client) -> None:
    assert answers(climbed.release, client, climbed.model) == climbed.answers


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
def test_a_stream_in_flight_survives_a_rolling_restart(
    climbed: Climbed, client: Client, progress: Callable[[str], None], component: str
) -> None:
    release = climbed.release
    cluster, name = release.site.cluster, f"stream-{component}"
    url = f"{release.url}/v1/completions"
    pod = sleeping_pod(name, release.site.image, "python3", "-c", STREAM, url, climbed.model, "1500")
    pod["spec"]["restartPolicy"] = "Never"
    cluster.apply(pod, namespace=client.namespace)
    until(lambda: "begun" in cluster.kubectl("logs", name, "-n", client.namespace))
    progress(f"rolling restart of {component} under a stream")
    release.kubectl("rollout", "restart", f"deployment/demo-{component}")
    release.kubectl("rollout", "status", f"deployment/demo-{component}", "--timeout=10m")
    done = "--for=jsonpath={.status.phase}=Succeeded"
    cluster.kubectl("wait", done, f"pod/{name}", "-n", client.namespace, "--timeout=5m")
    ended = json.loads(cluster.kubectl("logs", name, "-n", client.namespace).splitlines()[-1])
    progress(f"{component}: {ended}")
    assert ended["last"] == "data: [DONE]"
    assert ended["events"] > 1500


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
