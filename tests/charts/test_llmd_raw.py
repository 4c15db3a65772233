"""Raw keys of the picker's configuration are linted: `vllm-phases check` says what the picker would say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from vllm_phases.cli import run

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Found = Callable[..., set[str]]

PLUGINS: list[dict[str, Any]] = [
    {"type": "prefill-filter"},
    {"type": "decode-filter"},
    {"type": "queue-scorer"},
    {"type": "max-score-picker"},
    {"type": "always-disagg-pd-decider"},
    {"type": "disagg-profile-handler", "parameters": {"deciders": {"prefill": "always-disagg-pd-decider"}}},
]
PROFILES: list[dict[str, Any]] = [
    {"name": role, "plugins": [{"pluginRef": f"{role}-filter"}, {"pluginRef": "queue-scorer"}]}
    for role in ("prefill", "decode")
]
RAW = {"plugins": PLUGINS, "schedulingProfiles": PROFILES}


def without(*types: str) -> list[dict[str, Any]]:
    return [plugin for plugin in PLUGINS if plugin["type"] not in types]


# What a user writes, the rule that finds it, and what the picker ends with.
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a plugin that nobody knows": (
        {**RAW, "plugins": [*PLUGINS, {"type": "semantic-scorer"}]},
        "LLMD041",
        "plugin type 'semantic-scorer' is not registered",
    ),
    "a plugin that is not defined": (
        {**RAW, "plugins": without("queue-scorer")},
        "LLMD042",
        "references undefined plugin 'queue-scorer'",
    ),
    "a decider that is not defined": (
        {**RAW, "plugins": without("always-disagg-pd-decider")},
        "LLMD042",
        "always-disagg-pd-decider",
    ),
    "an index that is not defined": (
        {
            **RAW,
            "plugins": [
                *PLUGINS,
                {"type": "prefix-cache-scorer", "parameters": {"prefixMatchInfoProducerName": "precise"}},
            ],
        },
        "LLMD042",
        "no default producer",
    ),
    "a detector that is not defined": (
        {"flowControl": {"saturationDetector": {"pluginRef": "concurrency-detector"}}},
        "LLMD042",
        "saturation detector references undefined plugin 'concurrency-detector'",
    ),
    "a policy that is not defined": (
        {
            "featureGates": ["flowControl"],
            "flowControl": {
                "priorityBands": [{"priority": 10, "fairnessPolicyRef": "round-robin-fairness-policy"}]
            },
        },
        "LLMD042",
        "round-robin-fairness-policy",
    ),
    "a key that nobody knows": ({"featureGate": ["flowControl"]}, "LLMD043", 'unknown field "featureGate"'),
    "nor below": (
        {"featureGates": ["flowControl"], "flowControl": {"maxRequest": 10}},
        "LLMD043",
        'unknown field "flowControl.maxRequest"',
    ),
    "a parameter that nobody knows": (
        {**RAW, "plugins": [*PLUGINS, {"type": "load-aware-scorer", "parameters": {"treshold": 1}}]},
        "LLMD043",
        'unknown field "treshold"',
    ),
    "a gate that nobody knows": (
        {"featureGates": ["prepareDataPlugins"]},
        "LLMD044",
        "feature gate 'prepareDataPlugins' is unknown",
    ),
    "a plugin twice": ({**RAW, "plugins": [*PLUGINS, PLUGINS[0]]}, "LLMD044", "duplicate plugin name"),
}
# What the picker starts with, and then does nothing that a user of prefill wants.
SILENT: dict[str, tuple[dict[str, Any], str]] = {
    "no decider": (
        {**RAW, "plugins": [*without("disagg-profile-handler"), {"type": "disagg-profile-handler"}]},
        "LLMD045",
    ),
    "a decider that never sends": (
        {
            **RAW,
            "plugins": [
                *without("disagg-profile-handler"),
                {"type": "prefix-based-pd-decider", "parameters": {"nonCachedTokens": 0}},
                {
                    "type": "disagg-profile-handler",
                    "parameters": {"deciders": {"prefill": "prefix-based-pd-decider"}},
                },
            ],
        },
        "LLMD045",
    ),
    "no profile of prefill": ({**RAW, "schedulingProfiles": PROFILES[1:]}, "LLMD045"),
    "no profile of decode": ({**RAW, "schedulingProfiles": PROFILES[:1]}, "LLMD046"),
    "a role that is not looked at": (
        {
            **RAW,
            "schedulingProfiles": [
                PROFILES[0],
                {"name": "decode", "plugins": [{"pluginRef": "queue-scorer"}]},
            ],
        },
        "LLMD047",
    ),
    "an index that nobody reads": (
        {
            **RAW,
            "plugins": [*PLUGINS, {"type": "precise-prefix-cache-producer"}, {"type": "prefix-cache-scorer"}],
        },
        "LLMD051",
    ),
}


@pytest.fixture
def found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Found:
    """The rules of the picker's configuration that `check` tells."""

    def check(config: dict[str, Any], parameters: dict[str, Any] | None = None) -> set[str]:
        picker = {"extraConfig": config, "extraPluginParameters": parameters or {}}
        values = tmp_path / "values.yaml"
        values.write_text(yaml.safe_dump({"llmd": {"endpointPicker": picker}}))
        files = ("-f", str(ROOT / "values/phase2-llmd.yaml"), "-f", str(values))
        code = run(["check", "--chart", str(ROOT / "charts/vllm-stack"), *files])
        told = capsys.readouterr().out
        assert code in (0, 1), told
        return set(re.findall(r"\[(LLMD0[45]\d) ", told))

    return check


def test_what_the_picker_takes_is_left_alone(found: Found) -> None:
    assert found({**RAW, "flowControl": {"defaultRequestTTL": "2m"}}) == set()


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_picker_refuses_is_found(found: Found, name: str) -> None:
    config, rule, _ = REFUSED[name]
    assert rule in found(config)


@pytest.mark.parametrize("name", SILENT)
def test_what_the_picker_takes_in_vain_is_found(found: Found, name: str) -> None:
    config, rule = SILENT[name]
    assert rule in found(config)


def test_parameters_of_ones_own_are_looked_at_too(found: Found) -> None:
    parameters = {
        "prefix-based-pd-decider": {"nonCachedTokens": 0},
        "utilization-detector": {"queueDepth": 5},
    }
    assert found({}, parameters) == {"LLMD043", "LLMD045"}
