"""No dead value: for every leaf of every chart's values, some release looks different when it is set differently."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from vllm_phases.render import RenderError
from vllm_phases.schema.generation import load
from vllm_phases.schema.tree import Key, keys

from tests.conftest import ROOT, Render

# Releases in which a value can show itself: the engines' common values, a role's, a layer's and the front door's.
CONTEXTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "pvc": {"vllm": {"model": {"source": {"type": "pvc", "pvc": {"claimName": "weights"}}}}},
    "oci": {"vllm": {"model": {"source": {"type": "oci", "oci": {"reference": "registry.example.com/m:1"}}}}},
    "hostPath": {"vllm": {"model": {"source": {"type": "hostPath", "hostPath": {"path": "/m"}}}}},
    "secrets": {
        "vllm": {
            "auth": {"apiKeySecret": {"name": "a"}},
            "huggingface": {"tokenSecret": {"name": "b"}},
            "lora": {"modules": {"a": {"path": "b"}}},
            "monitoring": {"kind": "podMonitor"},
            "networkPolicy": {"egress": "dns"},
        },
        "role": {"cache": {"type": "pvc"}, "shm": {"mode": "always"}},
        "router": {"clientAuth": "gateway", "autoscaling": {"enabled": True}},
    },
    "key": {"vllm": {"auth": {"apiKeySecret": {"name": "a"}}}},
    "hpa": {"role": {"autoscaling": {"type": "hpa"}, "cache": {"type": "ephemeral"}}},
    "keda": {"role": {"autoscaling": {"type": "keda", "minReplicas": 1}}},
    "door": {
        "door": {
            "type": "LoadBalancer",
            "ingress": {"enabled": True},
            "httpRoute": {"enabled": True, "gateways": [{"name": "g"}]},
        }
    },
    "tiers": {"vllm": {"kvTiers": {"lmcache": {"enabled": True}, "mooncakeStore": {"enabled": True}}}},
    "abort": {"vllm": {"version": "0.20.0"}},
    "llm-d": {
        "vllm": {"monitoring": {"kind": "podMonitor"}},
        "llmd": {
            "endpointPicker": {"metricsAuthentication": True, "metricsTokenSecret": {"name": "a"}},
            "proxy": {"autoscaling": {"enabled": True}},
            "inferencePool": {"enabled": True},
        },
    },
    "precise": {"llmd": {"endpointPicker": {"prefixCache": {"type": "precise"}}}},
    # vllm-router speaks no TLS.
    "llm-d by TLS": {"vllm": {"tls": {"secretName": "a"}}, "llmd": {}, "router": None},
    "llm-d alone": {"llmd": {"endpointPicker": {"flowControl": {"enabled": True}}}},
    "a Gateway": {
        "llmd": {
            "enabled": True,
            "inferencePool": {"enabled": True},
            "proxy": {"type": "gateway", "gateway": {"parentRefs": [{"name": "g"}]}},
        },
        "door": {"to": "llmd"},
    },
    "a Gateway of the release": {
        "llmd": {
            "inferencePool": {"enabled": True},
            "proxy": {
                "type": "gateway",
                "gateway": {"create": True, "infrastructure": {"parametersRef": {"name": "p"}}},
            },
        },
    },
    "another Gateway": {
        "llmd": {
            "inferencePool": {"enabled": True},
            "proxy": {
                "type": "gateway",
                "gateway": {
                    "implementation": "other",
                    "parentRefs": [{"name": "g"}],
                    "address": "g.example.com",
                },
            },
        },
    },
    "mooncake": {"vllm": {"kvTransfer": {"connector": "mooncake"}}},
    "simulator": {"vllm": {"simulator": {"enabled": True}, "test": {"enabled": False}}},
    "p2pNccl": {"vllm": {"version": "0.23.0", "kvTransfer": {"connector": "p2pNccl"}}},
    "custom": {
        "vllm": {"kvTransfer": {"connector": "custom", "custom": {"name": "Mine", "modulePath": "mine"}}}
    },
}

# Values that only a second value beside them makes visible.
BESIDE: dict[tuple[str, ...], dict[str, Any]] = {
    ("rollout", "maxUnavailable"): {"rollout": {"maxSurge": 1}},
    ("prefill", "rollout", "maxUnavailable"): {"prefill": {"rollout": {"maxSurge": 1}}},
    ("decode", "rollout", "maxUnavailable"): {"decode": {"rollout": {"maxSurge": 1}}},
    ("prefill", "drain", "preStopSeconds"): {
        "global": {"vllm": {"kvTransfer": {"nixl": {"leaseSeconds": 10}}}}
    },
    ("global", "vllm", "simulator", "enabled"): {"global": {"vllm": {"test": {"enabled": False}}}},
    ("frontDoor", "httpRoute", "enabled"): {"frontDoor": {"httpRoute": {"gateways": [{"name": "g"}]}}},
    ("global", "vllm", "model", "source", "type"): {
        "global": {"vllm": {"model": {"source": {"pvc": {"claimName": "weights"}}}}}
    },
}


def leaves(key: Key, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Key]]:
    if not key.printed:
        return [(path, key)]
    return [leaf for child in key.printed for leaf in leaves(child, (*path, child.name))]


OTHERS = {
    "interval": "7s",
    "requestTimeout": "7s",
    "size": "7Gi",
    "cpu": "6",
    "memory": "31Gi",
    "path": "/other",
}


def other(key: Key) -> Any:
    """A valid value that differs from the default."""
    schema, default = key.schema, key.default
    if written := key.written.schema.get("examples") or schema.get("examples"):
        return written[0]
    if "enum" in schema:
        return next(choice for choice in schema["enum"] if choice != default)
    if isinstance(default, bool):
        return not default
    if isinstance(default, (int, float)):
        return default + 1
    return {"example": "x"} if isinstance(default, dict) else text(key)


def text(key: Key) -> str:
    if str(key.default).startswith("http"):
        return "http://other"
    return "/other" if key.name == "mountPath" else OTHERS.get(key.name, "other")


def tree(context: dict[str, Any], chart: str) -> dict[str, Any]:
    """The values of a chart in a context."""
    common = {"global": {"vllm": context.get("vllm", {})}}
    role = context.get("role", {})
    roles = {"prefill": role, "decode": role}
    layers = {
        "vllm-base": role,
        "vllm-pd-nccl": {**roles, "router": context.get("router") or {}},
        "vllm-llmd": {**roles, **context.get("llmd", {})},
    }
    if chart in layers:
        return {**common, **layers[chart]}
    enabled = {"enabled": bool(context) and context.get("router", {}) is not None}
    return {
        **common,
        "base": role,
        "pdNccl": {**enabled, **layers["vllm-pd-nccl"]},
        "llmd": {"enabled": "llmd" in context, **layers["vllm-llmd"]},
        "frontDoor": context.get("door", {}),
    }


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
    # What is common to all charts shows itself in the umbrella.
    if chart == "vllm-stack" or path[0] != "global"
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


def judged(outcome: Any) -> bool:
    """Whether templates have spoken, be it by a refusal; not so where the schema refuses."""
    return not isinstance(outcome, str) or "These values cannot work" in outcome


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
        if changed != plain and judged(changed) and judged(plain):
            return
    pytest.fail(f"no release looks different with {'.'.join(path)}={value!r}: {changed}")
