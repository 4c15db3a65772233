"""Plugins of the picker that the user chooses beside the scorers, and their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.charts.test_llmd import LLMD, config, layer, refused, vllm

if TYPE_CHECKING:
    from tests.conftest import Render


def picker(**values: Any) -> dict[str, Any]:
    return layer(endpointPicker=values)


def test_filters_stand_after_that_of_the_role(render: Render) -> None:
    filters = ["prefix-cache-affinity-filter"]
    found = config(render(LLMD, values=picker(profiles={"prefill": {"filters": filters}})))
    prefill, decode = found["schedulingProfiles"]
    assert prefill["plugins"][:2] == [
        {"pluginRef": "prefill-filter"},
        {"pluginRef": "prefix-cache-affinity-filter"},
    ]
    assert {"pluginRef": "prefix-cache-affinity-filter"} not in decode["plugins"]
    assert found["plugins"].count({"type": "prefix-cache-affinity-filter"}) == 1


def test_each_role_may_pick_in_its_own_way(render: Render) -> None:
    profiles = {"decode": {"picker": "weighted-random-picker"}}
    found = config(render(LLMD, values=picker(profiles=profiles)))
    last = {profile["name"]: profile["plugins"][-1] for profile in found["schedulingProfiles"]}
    assert last == {
        "prefill": {"pluginRef": "max-score-picker"},
        "decode": {"pluginRef": "weighted-random-picker"},
    }
    types = [plugin["type"] for plugin in found["plugins"]]
    assert types.count("max-score-picker") == types.count("weighted-random-picker") == 1


def test_parameters_win_over_the_built_ones(render: Render) -> None:
    parameters = {
        "prefix-based-pd-decider": {"promptTokens": 1024},
        "approx-prefix-cache-producer": {"lruCapacityPerServer": 1000},
        "utilization-detector": {"queueDepthThreshold": 10},
    }
    found = config(render(LLMD, values=picker(extraPluginParameters=parameters)))
    given = {plugin["type"]: plugin.get("parameters") for plugin in found["plugins"]}
    assert given["prefix-based-pd-decider"] == {"nonCachedTokens": 256, "promptTokens": 1024}
    assert given["approx-prefix-cache-producer"] == {
        "lruCapacityPerServer": 1000,
        "maxPrefixTokensToMatch": 131072,
    }
    assert given["utilization-detector"] == {"queueDepthThreshold": 10}
    assert len(given) == len(found["plugins"])


ALPHA = "set llmd.endpointPicker.args.allow-experimental-plugins to true as well, or leave it out"
REFUSED = {
    "a filter that nobody knows": (
        picker(profiles={"decode": {"filters": ["semantic-filter"]}}),
        "llmd.endpointPicker.profiles.decode.filters: llm-d has no such filter semantic-filter",
    ),
    "a scorer among the filters": (
        picker(profiles={"decode": {"filters": ["queue-scorer"]}}),
        "llmd.endpointPicker.profiles.decode.filters: llm-d has no such filter queue-scorer",
    ),
    "an experimental filter": (
        picker(profiles={"decode": {"filters": ["session-affinity-filter"]}}),
        f"llmd.endpointPicker.profiles.decode.filters: session-affinity-filter experimental; {ALPHA}",
    ),
    "parameters of nobody": (
        picker(extraPluginParameters={"semantic-scorer": {}}),
        "llmd.endpointPicker.extraPluginParameters.semantic-scorer: llm-d has no such plugin",
    ),
    "parameters of a later release": (
        {
            **vllm(llmd={"version": "0.9.0"}),
            **picker(extraPluginParameters={"dcgm-extractor": {}}),
        },
        "llmd.endpointPicker.extraPluginParameters.dcgm-extractor: llm-d 0.9.0 has no such plugin",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_picker_does_not_know_is_refused(render: Render, name: str) -> None:
    values, message = REFUSED[name]
    assert refused(render, values) == [message]
