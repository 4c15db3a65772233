"""Documents, and the place of every value in them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from vllm_phases import sources
from vllm_phases.model.objects import object_id
from vllm_phases.sources import Document, scalars, yaml_reader
from vllm_phases.sources.document import embedded


def one(text: str, name: str = "a.yaml") -> Document:
    (found,) = sources.read_text(text, name)
    assert isinstance(found, Document)
    return found


class TestScalars:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("yes", True),
            ("Off", False),
            ("y", True),
            ("~", None),
            ("", None),
            ("0123", 83),
            ("089", 89.0),
            ("0x1F", 31),
            ("0b11", 3),
            ("0o17", 15),
            ("1_000", 1000),
            ("1e3", 1000.0),
            ("-.5", -0.5),
            (".inf", math.inf),
            ("1.2.3", "1.2.3"),
            ("v1", "v1"),
            ("2026-12-01", "2026-12-01"),
            ("--port", "--port"),
            ("9" * 500, "9" * 500),
        ],
    )
    def test_are_what_kubernetes_reads(self, text: str, value: Any) -> None:
        assert scalars.value(text) == value
        assert type(scalars.value(text)) is type(value)

    def test_keys_are_texts(self) -> None:
        assert yaml_reader.documents("{on: 1, 1: 2, ~: 3, 'on': 4}")[0] == [
            {"true": 1, "1": 2, "~": 3, "on": 4}
        ]


class TestReading:
    @pytest.mark.parametrize(
        ("text", "tree"),
        [
            ("a: !!str 1", {"a": "1"}),
            ("a: !!int '1'", {"a": 1}),
            ("a: !custom {b: 1}", {"a": {"b": 1}}),
            ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
            ("base: &b {x: 1, w: 2}\na: {<<: *b, w: 3}", {"base": {"x": 1, "w": 2}, "a": {"w": 3, "x": 1}}),
            ("a: {<<: [{x: 1}, {x: 2, z: 3}]}", {"a": {"x": 1, "z": 3}}),
            ("a: |\n  b\n  c\n", {"a": "b\nc\n"}),
            ("a: 1\na: 2", {"a": 2}),
        ],
    )
    def test_gives_plain_data(self, text: str, tree: Any) -> None:
        assert yaml_reader.documents(text)[0] == [tree]

    def test_tells_repeated_keys(self) -> None:
        assert yaml_reader.documents("a: {b: 1, b: 2}\na: 3")[1] == [("a", "b"), ("a",)]

    def test_several_documents_keep_their_lines(self) -> None:
        text = (
            "# one\n---\nkind: A\napiVersion: v1\n--- # two\nkind: B\napiVersion: v1\n...\n---\n# nothing\n"
        )
        first, second = sources.read_text(text, "a.yaml")
        assert isinstance(first, Document)
        assert isinstance(second, Document)
        assert (str(first.location(("kind",))), str(second.location(("kind",)))) == (
            "a.yaml:3:1",
            "a.yaml:6:1",
        )

    @pytest.mark.parametrize(
        ("name", "text", "kind"),
        [
            ("a.yaml", "apiVersion: v1\nkind: Pod\n", "kubernetes"),
            ("a.json", '{"apiVersion": "v1", "kind": "Pod"}', "kubernetes"),
            ("compose.yaml", "services: {a: {image: b}}\n", "compose"),
            ("run.sh", "vllm serve m\n", "command"),
            ("run", "#!/bin/bash\nvllm serve m\n", "command"),
            ("<stdin>", "vllm serve m --port 1 'x\n", "command"),
        ],
    )
    def test_knows_what_a_file_is(self, name: str, text: str, kind: str) -> None:
        assert one(text, name).kind == kind


class TestPlaces:
    text = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: demo
data:
  flow: {a: 1, "b": [x, y]}
  script: |
    set -e
    vllm serve m --qq
  folded: >-
    one
    two
"""

    @pytest.mark.parametrize(
        ("path", "place"),
        [
            ((), "a.yaml:1:1"),
            (("data", "flow", "a"), "a.yaml:6:10"),
            (("data", "flow", "b", 1), "a.yaml:6:25"),
            (("metadata", "labels", "x"), "a.yaml:3:1"),
            (("data", "script"), "a.yaml:7:3"),
        ],
    )
    def test_of_keys_and_items_or_their_parents(self, path: Any, place: str) -> None:
        assert str(one(self.text).location(path)) == place

    def test_inside_a_block_of_text(self) -> None:
        document = one(self.text)
        assert str(document.location_in(("data", "script"), 1, 13)) == "a.yaml:9:18"
        assert str(document.location_in(("data", "folded"), 1, 0)) == "a.yaml:10:3", (
            "folded lines are no lines"
        )

    def test_of_an_embedded_document(self) -> None:
        document = one("apiVersion: v1\nkind: ConfigMap\ndata:\n  c: |\n    # x\n    a: 1\n    b: {c: 2}\n")
        root = embedded(document.root.at("data", "c"))
        assert root is not None
        assert str(root.at("b", "c").location) == "a.yaml:7:9"
        assert object_id(root.at("b", "c")) == "ConfigMap/"

    def test_of_an_embedded_document_in_quotes(self) -> None:
        document = one('apiVersion: v1\nkind: ConfigMap\ndata:\n  c: "a: 1\\nb: 2"\n')
        root = embedded(document.root.at("data", "c"))
        assert root is not None
        assert str(root.at("b").location) == "a.yaml:4:3"


class TestNode:
    node = one("apiVersion: v1\nkind: X\na: {m: '5', t: true, l: [1, {x: w}], z: null}\n").root

    def test_reads_what_is_there(self) -> None:
        assert (self.node.number("a", "m"), self.node.text("a", "t"), self.node.text("a", "l", 1, "x")) == (
            5,
            "true",
            "w",
        )
        assert [item.value for item in self.node.items("a", "l")] == [1, {"x": "w"}]
        assert self.node.mapping("a") == {"m": "5", "t": "true", "l": "", "z": ""}

    def test_never_raises_for_what_is_not(self) -> None:
        nothing = self.node.at("a", "m", "deeper", 3)
        assert (bool(nothing), nothing.text(), nothing.number(), nothing.mapping()) == (False, "", None, {})
        assert not list(nothing.items()) + list(nothing.entries())
        assert str(nothing.location) == "a.yaml:3:5"
