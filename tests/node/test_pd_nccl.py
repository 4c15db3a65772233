"""Phase 2, engine to engine: a release climbs while a client keeps asking, and its KV really moves.

Engines, NIXL, the router, discovery, Services and policies are real.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from .climb import Climbed, Insider, answers, climb, helm_test
from .release import Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .client import Client
    from .site import Site

pytestmark = pytest.mark.node


@pytest.fixture(scope="module")
def climbed(node: Site, client: Client, progress: Callable[[str], None]) -> Iterator[Climbed]:
    """The release in phase 2, after a climb during which a client kept asking."""
    with node.namespace() as namespace:
        yield climb(Release(node, namespace), client, "phase2-nccl", progress)


@pytest.fixture(scope="module")
def release(climbed: Climbed) -> Release:
    return climbed.release


@pytest.fixture(scope="module")
def insider(release: Release) -> Insider:
    return Insider.start(release)


def test_no_request_fails_while_the_release_climbs(climbed: Climbed, progress: Callable[[str], None]) -> None:
    progress(f"{len(climbed.load)} requests during the climb, the last: {climbed.load[-1]}")
    assert len(climbed.load) > 20
    assert [line for line in climbed.load if line.split()[1:] != ["answered"]] == []


def test_kv_moves_for_completions_through_the_front_door(
    climbed: Climbed, client: Client, insider: Insider, progress: Callable[[str], None]
) -> None:
    names = ("nixl_xfer_time_seconds_count", "nixl_bytes_transferred_sum", "nixl_num_failed_transfers_total")
    before = {name: insider.count("decode", name) for name in names}
    prompt = f"{time.time()} " + "black white " * 40
    body = {"model": climbed.model, "prompt": prompt, "max_tokens": 4}
    client.post(f"{climbed.release.url}/v1/completions", body)
    time.sleep(2)
    after = {name: insider.count("decode", name) for name in names}
    progress(f"decode counted {json.dumps(before)} before and {json.dumps(after)} after one completion")
    assert after["nixl_xfer_time_seconds_count"] > before["nixl_xfer_time_seconds_count"]
    assert after["nixl_bytes_transferred_sum"] > before["nixl_bytes_transferred_sum"]
    assert after["nixl_num_failed_transfers_total"] == before["nixl_num_failed_transfers_total"]


def test_answers_are_those_of_phase_1(climbed: Climbed, client: Client) -> None:
    assert answers(climbed.release, client, climbed.model) == climbed.answers


def test_helm_test_proves_the_transfer(release: Release, progress: Callable[[str], None]) -> None:
    passed, said = helm_test(release)
    progress(said)
    assert passed
    assert "from prefill to decode, none failed" in said


def test_clients_reach_the_front_door_and_no_engine(
    release: Release, client: Client, progress: Callable[[str], None]
) -> None:
    assert client.connect(f"demo-front-door.{release.namespace}", 80) == "connected"
    attempts = {
        f"{component}:{port}": client.connect(pod["status"]["podIP"], port)
        for component in ("prefill", "decode")
        for pod in release.pods(component)
        for port in (8000, 5600)
    }
    progress(f"a pod of another namespace: {json.dumps(attempts)}")
    assert set(attempts.values()) == {"TimeoutError timed out"}


def test_helm_test_names_prefill_while_it_is_gone(release: Release, progress: Callable[[str], None]) -> None:
    (pod,) = release.pods("prefill")
    release.kubectl(
        "scale", "deployment/demo-prefill", "--replicas=0"
    )  # or it may be back before the test ends
    release.kubectl("delete", "pod", pod["metadata"]["name"], "--ignore-not-found", "--wait=false")
    passed, said = helm_test(release)
    progress(said)
    assert not passed
    assert "FAILED prefill: no ready engine behind demo-prefill:8000" in said
    progress("until prefill is Ready again")
    release.kubectl("scale", "deployment/demo-prefill", "--replicas=1")
    release.kubectl("rollout", "status", "deployment/demo-prefill", "--timeout=10m")
    passed, said = helm_test(release)
    progress(said)
    assert passed, said


def test_uninstall_ends_everything(release: Release) -> None:
    release.helm("uninstall", "demo", "--wait", "--timeout=5m")
    for component in ("prefill", "decode", "router"):
        release.until_gone(component)
    left: list[Any] = release.get("deployments,services,networkpolicies")
    assert left == []
