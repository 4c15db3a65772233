"""Phase 2 with real engines: a release climbs while a client keeps asking, and its KV really moves.

The steps are those of docs/climbing.md. Engines, NIXL, the router, discovery, Services and policies are real.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.control_plane import CommandError

from .client import sleeping_pod
from .release import Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .client import Client
    from .site import Site

pytestmark = pytest.mark.node

PROMPTS = [f"{number}: " + " ".join(["red green blue"[: 5 + number]] * 12) for number in range(20)]

# Asks all the time, a new connection each time, and prints one line for each answer. The pause leaves the machine's
# few cores to the engines that start meanwhile.
LOAD = """
import json, sys, time, urllib.request
url, model = sys.argv[1:]
number = 0
while True:
    number += 1
    body = {"model": model, "prompt": f"{number} one two three", "max_tokens": 4, "temperature": 0}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            said = "answered" if json.load(answer)["usage"]["completion_tokens"] else "empty"
    except Exception as error:
        said = f"{type(error).__name__} {error}"
    print(f"{time.time():.0f} {said}", flush=True)
    time.sleep(0.5)
"""

# Sums a metric over the pods of a role, from inside the cluster.
COUNT = """
import sys, urllib.request
pods, names = sys.argv[1].split(","), sys.argv[2].split(",")
total = 0.0
for pod in pods:
    for line in urllib.request.urlopen(f"http://{pod}:8000/metrics", timeout=30).read().decode().splitlines():
        if line.split("{")[0].split(" ")[0] in names:
            total += float(line.rsplit(" ", 1)[1])
print(total)
"""


@pytest.fixture(scope="module")
def release(node: Site) -> Iterator[Release]:
    with node.namespace() as namespace:
        yield Release(node, namespace)


@pytest.fixture(scope="module")
def model(release: Release, client: Client, progress: Callable[[str], None]) -> str:
    """Phase 1, up and asked for its model."""
    progress("helm install of phase 1, until its engine is Ready")
    release.apply("install", "phase1")
    (only,) = client.get(f"{release.url}/v1/models")["data"]
    return str(only["id"])


@pytest.fixture(scope="module")
def answers_of_phase_1(release: Release, client: Client, model: str) -> list[str]:
    return answers(release, client, model)


@pytest.fixture(scope="module")
def load(climbed: tuple[Release, list[str]]) -> list[str]:
    """What the client was told during the climb, a line for each request."""
    return climbed[1]


@pytest.fixture(scope="module")
def climbed(
    release: Release,
    client: Client,
    model: str,
    answers_of_phase_1: list[str],
    progress: Callable[[str], None],
) -> tuple[Release, list[str]]:
    """The release in phase 2, after a climb during which a client kept asking."""
    url = f"{release.url}/v1/completions"
    pod = sleeping_pod("load", release.site.image, "python3", "-c", LOAD, url, model)
    release.site.cluster.apply(pod, namespace=client.namespace)
    for step, sets in (
        ("both layers up", ("base.enabled=true", "frontDoor.to=base")),
        ("the cut-over", ("base.enabled=true",)),
        ("phase 1 retired", ()),
    ):
        progress(f"helm upgrade to phase 2: {step}")
        release.apply("upgrade", "phase2-nccl", "global.vllm.test.timeoutSeconds=60", *sets)
        time.sleep(5)
    release.until_gone("server")
    said = release.site.cluster.kubectl("logs", "load", "--namespace", client.namespace).splitlines()
    release.site.cluster.kubectl("delete", "pod", "load", "--namespace", client.namespace)
    return release, said


@pytest.fixture(scope="module")
def insider(climbed: tuple[Release, list[str]]) -> Callable[[str, str], float]:
    """Read a role's counters as the release's own test does: from a pod that its policies let in."""
    release, _ = climbed
    pod = sleeping_pod("insider", release.site.image)
    labels = {"app.kubernetes.io/instance": "demo", "app.kubernetes.io/component": "test"}
    pod["metadata"]["labels"] = labels
    release.site.cluster.apply(pod, namespace=release.namespace)
    release.kubectl("wait", "--for=condition=Ready", "pod/insider", "--timeout=5m")

    def count(component: str, metric: str) -> float:
        pods = ",".join(pod["status"]["podIP"] for pod in release.pods(component))
        said = release.site.cluster.kubectl(
            "exec", "-i", "insider", "-n", release.namespace, "--", "python3", "-", pods, metric, stdin=COUNT
        )
        return float(said)

    return count


def answers(release: Release, client: Client, model: str) -> list[str]:
    """Greedy answers to the prompts."""
    url = f"{release.url}/v1/completions"
    body = {"model": model, "max_tokens": 16, "temperature": 0}
    return [client.post(url, {**body, "prompt": prompt})["choices"][0]["text"] for prompt in PROMPTS]


def helm_test(release: Release) -> tuple[bool, str]:
    """Whether `helm test` passes, and what its pod says."""
    try:
        release.helm("test", "demo", "--timeout=5m")
        passed = True
    except CommandError:
        passed = False
    return passed, release.kubectl("logs", "demo-test")


def test_no_request_fails_while_the_release_climbs(load: list[str], progress: Callable[[str], None]) -> None:
    progress(f"{len(load)} requests during the climb, the last: {load[-1]}")
    assert len(load) > 20
    assert [line for line in load if line.split()[1:] != ["answered"]] == []


def test_kv_moves_for_completions_through_the_front_door(
    climbed: tuple[Release, list[str]],
    client: Client,
    model: str,
    insider: Callable[[str, str], float],
    progress: Callable[[str], None],
) -> None:
    release, _ = climbed
    names = ("nixl_xfer_time_seconds_count", "nixl_bytes_transferred_sum", "nixl_num_failed_transfers_total")
    before = {name: insider("decode", f"vllm:{name}") for name in names}
    prompt = f"{time.time()} " + "black white " * 40
    client.post(f"{release.url}/v1/completions", {"model": model, "prompt": prompt, "max_tokens": 4})
    time.sleep(2)
    after = {name: insider("decode", f"vllm:{name}") for name in names}
    progress(f"decode counted {json.dumps(before)} before and {json.dumps(after)} after one completion")
    assert after["nixl_xfer_time_seconds_count"] > before["nixl_xfer_time_seconds_count"]
    assert after["nixl_bytes_transferred_sum"] > before["nixl_bytes_transferred_sum"]
    assert after["nixl_num_failed_transfers_total"] == before["nixl_num_failed_transfers_total"]


def test_answers_are_those_of_phase_1(
    climbed: tuple[Release, list[str]], client: Client, model: str, answers_of_phase_1: list[str]
) -> None:
    assert answers(climbed[0], client, model) == answers_of_phase_1


def test_helm_test_proves_the_transfer(
    climbed: tuple[Release, list[str]], progress: Callable[[str], None]
) -> None:
    passed, said = helm_test(climbed[0])
    progress(said)
    assert passed
    assert "from prefill to decode, none failed" in said


def test_clients_reach_the_front_door_and_no_engine(
    climbed: tuple[Release, list[str]], client: Client, progress: Callable[[str], None]
) -> None:
    release, _ = climbed
    assert client.connect(f"demo-front-door.{release.namespace}", 80) == "connected"
    attempts = {
        f"{component}:{port}": client.connect(pod["status"]["podIP"], port)
        for component in ("prefill", "decode")
        for pod in release.pods(component)
        for port in (8000, 5600)
    }
    progress(f"a pod of another namespace: {json.dumps(attempts)}")
    assert set(attempts.values()) == {"TimeoutError timed out"}


def test_helm_test_names_prefill_while_it_is_gone(
    climbed: tuple[Release, list[str]], progress: Callable[[str], None]
) -> None:
    release, _ = climbed
    (pod,) = release.pods("prefill")
    release.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
    passed, said = helm_test(release)
    progress(said)
    assert not passed
    assert "FAILED prefill: no ready engine behind demo-prefill:8000" in said
    progress("until prefill is Ready again")
    release.kubectl("rollout", "status", "deployment/demo-prefill", "--timeout=10m")
    passed, said = helm_test(release)
    progress(said)
    assert passed, said


def test_uninstall_ends_everything(climbed: tuple[Release, list[str]]) -> None:
    release, _ = climbed
    release.helm("uninstall", "demo", "--wait", "--timeout=5m")
    for component in ("prefill", "decode", "router"):
        release.until_gone(component)
    left: list[Any] = release.get("deployments,services,networkpolicies")
    assert left == []
