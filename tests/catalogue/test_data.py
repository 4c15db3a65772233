"""The data files: each says a fact once, in order; the hand-written ones agree with the generated ones."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from vllm_phases.catalogue import facts, load, store, versions

if TYPE_CHECKING:
    from pathlib import Path

    from vllm_phases.catalogue import EngineRelease

GENERATED = (*store.KINDS, "releases")


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue that a test may change."""
    shutil.copytree(store.DATA, tmp_path / "data")
    monkeypatch.setattr(store, "DATA", tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize("version", [versions()[0], "0.20.0", versions()[-1]])
def test_to_add_a_release_again_changes_no_byte(copy: Path, version: str) -> None:
    before = {name: (copy / f"{name}.json").read_bytes() for name in GENERATED}
    store.add(version, {kind: store.at(kind, version) for kind in store.KINDS})
    assert {name: (copy / f"{name}.json").read_bytes() for name in GENERATED} == before


def test_a_release_that_brings_nothing_changes_nothing_but_the_list(copy: Path) -> None:
    before = {kind: (copy / f"{kind}.json").read_bytes() for kind in store.KINDS}
    store.add("0.99.0", {kind: store.at(kind, versions()[-1]) for kind in store.KINDS})
    assert {kind: (copy / f"{kind}.json").read_bytes() for kind in store.KINDS} == before
    assert store.releases()[-1] == "0.99.0"


def test_spans_name_the_releases_that_have_an_entry(copy: Path) -> None:
    nothing: dict[str, store.Records] = {kind: {} for kind in store.KINDS}
    for version in versions():
        store.add(version, nothing)
    for version in ("0.11.0", "0.11.1", "0.13.0", "0.14.0", versions()[-1]):
        store.add(version, {**nothing, "env": {"VLLM_A": {}}})
    store.add("0.12.0", {**nothing, "env": {"VLLM_B": {"default": 1}}})
    entries = json.loads((copy / "env.json").read_text())["entries"]
    assert entries == {
        "VLLM_A": f"0.11.0-0.11.1, 0.13.0-0.14.0, {versions()[-1]}-",
        "VLLM_B": [{"in": "0.12.0", "default": 1}],
    }


@pytest.mark.parametrize("kind", store.KINDS)
def test_names_are_sorted(kind: str) -> None:
    names = list(json.loads((store.DATA / f"{kind}.json").read_text())["entries"])
    assert names == sorted(names)


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_file_says_how_it_was_made(name: str) -> None:
    about = json.loads((store.DATA / f"{name}.json").read_text())["about"]
    assert about.startswith("Made by `vllm-phases catalogue add`")


def test_no_default_is_the_text_of_an_object() -> None:
    for version in versions():
        odd = [flag.name for flag in load(version).flags.values() if "<" in str(flag.default)]
        assert odd == []


@pytest.mark.parametrize("name", ["features", "metrics"])
def test_hand_written_facts_are_sorted_and_have_a_source(name: str) -> None:
    assert list(facts(name)) == sorted(facts(name))
    assert [entry for entry, fact in facts(name).items() if not fact["source"] or not fact["what"]] == []


@pytest.mark.parametrize("name", ["features", "images", "metrics"])
def test_hand_written_windows_begin_and_end_at_releases(name: str) -> None:
    ends = {fact.get(key) for fact in facts(name).values() for key in ("since", "until", "nonRootSince")}
    assert ends - {None} <= set(versions())


PROVEN = {name: fact for name, fact in facts("features").items() if {"flag", "env", "field"} & fact.keys()}


@pytest.mark.parametrize("feature", PROVEN)
def test_a_feature_is_where_the_generated_data_has_its_proof(feature: str) -> None:
    fact = PROVEN[feature]
    known = versions()
    until = known.index(fact["until"]) if "until" in fact else len(known)
    window = known[known.index(fact["since"]) : until]
    assert tuple(version for version in known if _proves(load(version), fact)) == window


def _proves(release: EngineRelease, fact: dict[str, Any]) -> bool:
    if "env" in fact:
        return fact["env"] in release.env
    entries: dict[str, Any] = {**release.flags, **release.kv_transfer_fields}
    entry = entries.get(f"--{fact['flag']}" if "flag" in fact else fact["field"])
    return entry is not None and entry.default == fact.get("default", entry.default)


def test_the_shutdown_timeout_came_with_0_18() -> None:
    assert "--shutdown-timeout" not in load("0.17.1").flags
    assert "--shutdown-timeout" in load("0.18.0").flags


@pytest.mark.parametrize(
    ("connector", "first", "last"),
    [
        ("P2pNcclConnector", "0.11.0", "0.23.0"),
        ("SharedStorageConnector", "0.11.0", "0.12.0"),
        ("MooncakeConnector", "0.13.0", versions()[-1]),
        ("NixlConnector", "0.11.0", versions()[-1]),
        ("NixlPushConnector", "0.24.0", versions()[-1]),
    ],
)
def test_a_connector_is_in_the_releases_that_register_it(connector: str, first: str, last: str) -> None:
    having = [version for version in versions() if connector in load(version).connectors]
    assert (having[0], having[-1]) == (first, last)
    assert len(having) == versions().index(last) - versions().index(first) + 1


def test_a_kv_transfer_field_says_its_default_or_that_the_engine_computes_it() -> None:
    assert load("0.31.0").kv_transfer_fields["kv_ip"].default == "127.0.0.1"
    assert "kv_ip" not in load("0.32.0").kv_transfer_fields
    assert load("0.17.1").kv_transfer_fields["kv_buffer_device"].default == "cuda"
    assert load("0.18.0").kv_transfer_fields["kv_buffer_device"].computed


def test_every_accelerator_has_an_image() -> None:
    images = facts("images")
    assert list(images) == ["nvidia", "amd", "intel", "cpu"]
    assert {name: image["gpuResource"] for name, image in images.items()} == {
        "nvidia": "nvidia.com/gpu",
        "amd": "amd.com/gpu",
        "intel": "gpu.intel.com/i915",
        "cpu": None,
    }
    assert all("{version}" in image["tag"] and image["source"] for image in images.values())


def test_a_config_says_whether_it_refuses_other_keys() -> None:
    assert load("0.33.0").configs["kv-events-config"].closed
    assert not load("0.13.0").configs["kv-events-config"].closed
    assert load("0.13.0").configs["compilation-config"].closed


def test_the_keys_of_a_config_belong_to_a_release() -> None:
    assert "kv_rank" in load("0.31.0").configs["kv-transfer-config"].fields
    assert "kv_rank" not in load("0.32.0").configs["kv-transfer-config"].fields
    assert load("0.33.0").configs["kv-events-config"].fields["hwm"] == "int"
