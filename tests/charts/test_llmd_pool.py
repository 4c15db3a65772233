"""Objects that belong to an InferencePool: priorities of requests, and other names for a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.charts.test_llmd import LLMD, layer, refused, vllm

if TYPE_CHECKING:
    from tests.conftest import Render

REFERENCE = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "demo-pool"}
LORA = {"lora": {"modules": {"support": {"path": "/adapters/support"}}}}
OLD_PICKER = {"image": {"repository": "registry.example.com/picker"}}


def pool(**values: Any) -> dict[str, Any]:
    return layer(inferencePool={"enabled": True, **values})


class TestObjectives:
    def test_each_has_a_priority(self, render: Render) -> None:
        objects = render(LLMD, values=pool(objectives={"premium": 10, "usual": 0, "batch": -1}))
        for name, priority in (("premium", 10), ("usual", 0), ("batch", -1)):
            found = objects.get(f"InferenceObjective/{name}")
            assert found["apiVersion"] == "llm-d.ai/v1alpha2"
            assert found["spec"] == {"priority": priority, "poolRef": REFERENCE}

    def test_an_overlay_takes_one_away(self, render: Render) -> None:
        ids = render(LLMD, values=pool(objectives={"premium": 10, "batch": None})).ids
        assert [name for name in ids if name.startswith("InferenceObjective/")] == [
            "InferenceObjective/premium"
        ]

    def test_the_oldest_release_reads_another_group(self, render: Render) -> None:
        values = {
            **vllm(llmd={"version": "0.8.0"}),
            **layer(
                endpointPicker=OLD_PICKER,
                inferencePool={
                    "enabled": True,
                    "objectives": {"batch": -1},
                    "rewrites": {"chat": {"targets": {"Qwen/Qwen3-8B": 1}}},
                },
            ),
        }
        objects = render(LLMD, values=values)
        versions = {
            objects.get(name)["apiVersion"]
            for name in ("InferenceObjective/batch", "InferenceModelRewrite/demo-rewrite-chat")
        }
        assert versions == {"inference.networking.x-k8s.io/v1alpha2"}


class TestRewrites:
    def test_names_become_those_that_engines_serve(self, render: Render) -> None:
        targets = {"Qwen/Qwen3-8B": 90, "support": 10}
        rewrites = {"chat": {"models": ["chat", "gpt-4"], "targets": targets}}
        objects = render(LLMD, values={**vllm(**LORA), **pool(rewrites=rewrites)})
        found = objects.get("InferenceModelRewrite/demo-rewrite-chat")
        assert found["apiVersion"] == "llm-d.ai/v1alpha2"
        assert found["spec"] == {
            "poolRef": REFERENCE,
            "rules": [
                {
                    "matches": [{"model": {"type": "Exact", "value": name}} for name in ("chat", "gpt-4")],
                    "targets": [
                        {"modelRewrite": "Qwen/Qwen3-8B", "weight": 90},
                        {"modelRewrite": "support", "weight": 10},
                    ],
                }
            ],
        }

    def test_one_may_take_every_name(self, render: Render) -> None:
        objects = render(LLMD, values=pool(rewrites={"rest": {"targets": {"Qwen/Qwen3-8B": 1}}}))
        (rule,) = objects.get("InferenceModelRewrite/demo-rewrite-rest")["spec"]["rules"]
        assert rule == {"targets": [{"modelRewrite": "Qwen/Qwen3-8B", "weight": 1}]}

    def test_an_overlay_takes_one_away(self, render: Render) -> None:
        rewrites = {"rest": {"targets": {"Qwen/Qwen3-8B": 1}}, "chat": None}
        ids = render(LLMD, values=pool(rewrites=rewrites)).ids
        assert [name for name in ids if "Rewrite" in name] == ["InferenceModelRewrite/demo-rewrite-rest"]

    def test_engines_keep_to_their_own_name(self, render: Render) -> None:
        """A precise index knows one name; requests for others get to it by a rewrite."""
        values = pool(rewrites={"chat": {"models": ["chat"], "targets": {"Qwen/Qwen3-8B": 1}}})
        objects = render(LLMD, "values/overlays/precise-prefix.yaml", values=values)
        assert "InferenceModelRewrite/demo-rewrite-chat" in objects.ids


TO_MODEL = {"targets": {"Qwen/Qwen3-8B": 1}}
REFUSED = {
    "priorities without a pool": (
        layer(inferencePool={"objectives": {"batch": -1}}),
        "llmd.inferencePool.objectives: given, but they belong to an InferencePool; set llmd.inferencePool.enabled to true",
    ),
    "rewrites without a pool": (
        layer(inferencePool={"rewrites": {"all": TO_MODEL}}),
        "llmd.inferencePool.rewrites: given, but they belong to an InferencePool; set llmd.inferencePool.enabled to true",
    ),
    "a name twice": (
        pool(rewrites={"a": {"models": ["chat"], **TO_MODEL}, "b": {"models": ["code", "chat"], **TO_MODEL}}),
        "llmd.inferencePool.rewrites.b.models: chat is that of a as well; leave it to one",
    ),
    "every name twice": (
        pool(rewrites={"a": TO_MODEL, "b": TO_MODEL}),
        "llmd.inferencePool.rewrites.b.models: every name is that of a as well; leave it to one",
    ),
    "a target that nobody serves": (
        {**vllm(**LORA), **pool(rewrites={"a": {"targets": {"gpt-4": 1}}})},
        "llmd.inferencePool.rewrites.a.targets: no engine serves gpt-4; set one of Qwen/Qwen3-8B, support",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_refused(render: Render, name: str) -> None:
    values, message = REFUSED[name]
    assert refused(render, values) == [message]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"objectives": {"batch": 0.5}}, "at '/llmd/inferencePool/objectives/batch': got number"),
        ({"objectives": {"Batch": 1}}, "invalid propertyName 'Batch'"),
        ({"rewrites": {"a": {"models": ["chat"]}}}, "missing property 'targets'"),
        ({"rewrites": {"a": {"targets": {}}}}, "/rewrites/a/targets': minProperties: got 0, want 1"),
    ],
)
def test_what_the_api_would_refuse_the_schema_refuses(
    render: Render, values: dict[str, Any], message: str
) -> None:
    assert message in render.error(LLMD, values=pool(**values))
