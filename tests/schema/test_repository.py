"""The schemas of this repository, and what is generated from them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import helm_python
import jsonschema_rs
import pytest
import re2  # type: ignore[import-untyped]
import yaml
from vllm_phases.cli import run
from vllm_phases.schema.sources import read
from vllm_phases.schema.tree import Key, keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Render

ROOT = Path(__file__).parent.parent.parent
SOURCES = read(ROOT / "schemas")

every_chart = pytest.mark.parametrize("chart", SOURCES.charts)


def schema_of(chart: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((ROOT / "charts" / chart / "values.schema.json").read_text())
    return schema


def schemas_in(node: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema below a place in a bundle, with the name of the nearest key around it."""
    if isinstance(node, list):
        for item in node:
            yield from schemas_in(item, name)
    elif isinstance(node, dict):
        yield name, node
        for keyword, value in node.items():
            if keyword in ("properties", "definitions"):
                for key, below in value.items():
                    yield from schemas_in(below, key)
            elif keyword not in ("default", "enum", "const"):
                yield from schemas_in(value, name)


def test_the_generated_files_match_the_schemas(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    code = run(["schema", "check"])
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, ""), captured.out + captured.err


@every_chart
def test_the_bundle_is_draft_07_and_refers_only_to_itself(chart: str) -> None:
    schema = schema_of(chart)
    jsonschema_rs.meta.validate(schema)
    references = [found["$ref"] for _, found in schemas_in(schema) if "$ref" in found]
    assert references
    assert [reference for reference in references if not reference.startswith("#/definitions/")] == []


@every_chart
def test_objects_are_closed_but_for_the_named_places(chart: str) -> None:
    schema = schema_of(chart)
    free_json = {"kubernetes.argument"}
    may_be_open = {"global", "vllm-common"} | free_json
    left_open = {
        name
        for name, found in schemas_in(schema)
        if "object" in found.get("type", ()) and found.get("additionalProperties", True) is True
    }
    assert {name for name in left_open if not name.startswith("extra")} <= may_be_open
    assert "global" in left_open
    assert schema["definitions"]["global"]["properties"]["vllm"]["additionalProperties"] is False


@every_chart
def test_every_pattern_compiles_with_re2(chart: str) -> None:
    patterns = [found["pattern"] for _, found in schemas_in(schema_of(chart)) if "pattern" in found]
    assert patterns
    for pattern in patterns:
        re2.compile(pattern)


def leaves(key: Key, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of every key that values.yaml should show, down to where a default stands."""
    if not key.printed:
        yield path
    for child in key.printed:
        yield from leaves(child, (*path, child.name))


def paths_in(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from paths_in(value, (*path, key))


@every_chart
def test_values_yaml_shows_every_key_and_no_other(chart: str) -> None:
    tree = yaml.safe_load((ROOT / "charts" / chart / "values.yaml").read_text())
    root = keys(SOURCES, SOURCES.chart(chart))
    shown = set(paths_in(tree))
    assert set(leaves(root)) <= shown
    assert tree == root.default


@every_chart
def test_every_key_of_values_yaml_has_a_comment_above(chart: str) -> None:
    lines = (ROOT / "charts" / chart / "values.yaml").read_text().splitlines()
    uncommented = [
        line
        for above, line in pairwise(lines)
        if ":" in line and not line.lstrip().startswith(("#", "-")) and not above.lstrip().startswith("#")
    ]
    assert uncommented == []


@every_chart
def test_helm_renders_the_chart_with_its_own_values(chart: str, render: Render) -> None:
    assert render(chart=f"charts/{chart}").ids
    with helm_python.Chart.load(ROOT / "charts" / chart) as loaded:
        assert loaded.values == yaml.safe_load((ROOT / "charts" / chart / "values.yaml").read_text())


@every_chart
def test_helm_refuses_a_misspelt_key(chart: str, render: Render) -> None:
    error = render.error(chart=f"charts/{chart}", values={"replicsa": 2})
    assert "additional properties 'replicsa' not allowed" in error


def test_helm_refuses_a_misspelt_key_of_a_layer(render: Render) -> None:
    assert "at '/base': additional properties 'replicsa' not allowed" in render.error(set=["base.replicsa=2"])


def test_helm_hands_on_the_globals_of_other_charts(render: Render) -> None:
    assert render(set=["global.imageRegistry=registry.example.com"]).ids
