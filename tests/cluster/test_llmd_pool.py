"""What an API server makes of the objects of a pool: priorities, rewrites, and the scaling on the picker's count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .test_llmd import LLMD, POOL, STACK, WAIT

if TYPE_CHECKING:
    from .release import Get, Helm

pytestmark = pytest.mark.cluster

POOL_OBJECTS = (
    "--set",
    "llmd.inferencePool.objectives.premium=10,llmd.inferencePool.objectives.batch=-1",
    "--set",
    "llmd.inferencePool.rewrites.chat.models={chat,gpt-4},llmd.inferencePool.rewrites.chat.targets.Qwen/Qwen3-8B=7",
)
SCALED = ("-f", STACK.parent.parent / "values/overlays/picker-queue.yaml")
PRECISE = ("-f", STACK.parent.parent / "values/overlays/precise-prefix.yaml")


def test_priorities_and_rewrites_are_taken_and_go(helm: Helm, get: Get) -> None:
    helm("install", "demo", STACK, *LLMD, *POOL, *POOL_OBJECTS, *WAIT)
    found = {
        item["metadata"]["name"]: item["spec"]["priority"] for item in get("inferenceobjectives.llm-d.ai")
    }
    assert found == {"premium": 10, "batch": -1}
    (rewrite,) = get("inferencemodelrewrites.llm-d.ai")
    assert rewrite["spec"]["poolRef"]["name"] == get("inferencepool", "demo-pool")["metadata"]["name"]
    (rule,) = rewrite["spec"]["rules"]
    assert rule["targets"] == [{"modelRewrite": "Qwen/Qwen3-8B", "weight": 7}]
    helm("upgrade", "demo", STACK, *LLMD, *POOL, *WAIT)
    assert get("inferenceobjectives.llm-d.ai") == []
    assert get("inferencemodelrewrites.llm-d.ai") == []


def test_a_running_release_turns_to_events_and_back(helm: Helm, get: Get) -> None:
    """The port of events comes and goes with the engines that have it; nothing that cannot change is touched."""

    def ports() -> set[str]:
        return {
            port["name"]
            for pod in get("pods", "-l", "app.kubernetes.io/component in (llmd-prefill, llmd-decode)")
            if "deletionTimestamp" not in pod["metadata"]
            for port in pod["spec"]["containers"][0]["ports"]
        }

    helm("install", "demo", STACK, *LLMD, *WAIT)
    assert ports() == {"http"}
    helm("upgrade", "demo", STACK, *LLMD, *PRECISE, *SCALED, *WAIT)
    assert ports() == {"http", "kv-events"}
    helm("rollback", "demo", "1", *WAIT)
    assert ports() == {"http"}
