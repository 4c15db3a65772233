"""No dead value: for every leaf of every chart's values, some release looks different when it is set differently."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from tests.conftest import ROOT, Render
from vllm_phases.render import RenderError
from vllm_phases.schema.generation import load
from vllm_phases.schema.tree import Key, keys

CONTEXTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "pvc": {"source": {"type": "pvc", "pvc": {"claimName": "weights"}}},
    "oci": {"source": {"type": "oci", "oci": {"reference": "registry.example.com/m:1"}}},
    "hostPath": {"source": {"type": "hostPath", "hostPath": {"path": "/m"}}},
    "secrets": {
        "vllm": {
            "auth": {"apiKeySecret": {"name": "a"}},
            "huggingface": {"tokenSecret": {"name": "b"}},
            "lora": {"modules": {"a": {"path": "b"}}},
            "monitoring": {"kind": "podMonitor"},
            "networkPolicy": {"egress": "dns"},
        },
        "role": {"cache": {"type": "pvc"}, "shm": {"mode": "always"}},
    },
    "hpa": {"role": {"autoscaling": {"type": "hpa"}, "cache": {"type": "ephemeral"}}},
    "keda": {"role": {"autoscaling": {"type": "keda", "minReplicas": 1}}},
    "door": {
        "door": {
            "type": "LoadBalancer",
            "ingress": {"enabled": True},
            "httpRoute": {"enabled": True, "gateways": [{"name": "g"}]},
        }
    },
}

# Values that only a second value beside them makes visible.
BESIDE: dict[tuple[str, ...], dict[str, Any]] = {
    ("rollout", "maxUnavailable"): {"rollout": {"maxSurge": 1}},
    ("frontDoor", "httpRoute", "enabled"): {"frontDoor": {"httpRoute": {"gateways": [{"name": "g"}]}}},
    ("global", "vllm", "model", "source", "type"): {
        "global": {"vllm": {"model": {"source": {"pvc": {"claimName": "weights"}}}}}
    },
}


def leaves(key: Key, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Key]]:
    if not key.printed:
        return [(path, key)]
    return [leaf for child in key.printed for leaf in leaves(child, (*path, child.name))]


def other(key: Key) -> Any:
    """A valid value that differs from the default."""
    schema, default = key.schema, key.default
    written = key.written.schema.get("examples") or schema.get("examples")
    if written:
        return written[0]
    if "enum" in schema:
        return next(choice for choice in schema["enum"] if choice != default)
    if isinstance(default, bool):
        return not default
    if isinstance(default, (int, float)):
        return default + 1
    if isinstance(default, dict):
        return {"example": "x"}
    if str(default).startswith("http"):
        return "http://other"
    if key.name.lower().endswith("path"):
        return "/other"
    return {"interval": "7s", "requestTimeout": "7s", "size": "7Gi", "cpu": "6", "memory": "31Gi"}.get(key.name, "other")


def tree(context: dict[str, Any], chart: str) -> dict[str, Any]:
    vllm = {**context.get("vllm", {}), "model": {"source": context.get("source", {})}}
    role = context.get("role", {})
    if chart == "vllm-base":
        return {"global": {"vllm": vllm}, **role}
    return {"global": {"vllm": vllm}, "base": role, "frontDoor": context.get("door", {})}


def at(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    return {path[0]: at(path[1:], value)} if path else value


def merged(left: Any, right: Any) -> Any:
    if isinstance(left, dict) and isinstance(right, dict):
        return {**left, **{key: merged(left.get(key), value) for key, value in right.items()}}
    return right


SOURCES = load(ROOT / "schemas")
LEAVES = [
    (chart, path, key)
    for chart, place in ((chart, SOURCES.chart(chart)) for chart in SOURCES.charts)
    for path, key in leaves(keys(SOURCES, place))
]


def outcome(render: Render, chart: str, values: str) -> Any:
    """What becomes of values, given as JSON: the objects and notes, or the refusal."""
    try:
        objects = render(chart=f"charts/{chart}", values=json.loads(values))
    except RenderError as refused:
        return str(refused)
    return objects.by_id, objects.notes


@pytest.fixture(scope="module")
def cached(render: Render) -> Any:
    return functools.cache(functools.partial(outcome, render))


def one_choice(key: Key) -> bool:
    return key.schema.get("enum") == [key.default]


@pytest.mark.parametrize(
    ("chart", "path", "key"),
    [pytest.param(c, p, k, id=f"{c}-{'.'.join(p)}") for c, p, k in LEAVES if not one_choice(k)],
)
def test_it_changes_the_release(cached: Any, chart: str, path: tuple[str, ...], key: Key) -> None:
    value = other(key)
    assert value != key.default
    for context in CONTEXTS.values():
        before = merged(tree(context, chart), BESIDE.get(path, {}))
        plain = cached(chart, json.dumps(before))
        changed = cached(chart, json.dumps(merged(before, at(path, value))))
        judged = not isinstance(changed, str) or "These values cannot work" in changed
        if judged and changed != plain and not isinstance(plain, str):
            return
    pytest.fail(f"no release looks different with {'.'.join(path)}={value!r}: {changed}")
