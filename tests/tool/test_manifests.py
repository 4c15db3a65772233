"""Rendered text becomes objects as the API server would read them."""

from __future__ import annotations

import pytest
from vllm_phases.manifests import parse
from vllm_phases.render import RenderError, Rendering


def objects(text: str) -> list[tuple[int, object]]:
    return [(found.line, found.document) for found in parse(Rendering({"c/templates/a.yaml": text}))]


def test_documents_know_their_line_and_empty_ones_are_skipped() -> None:
    text = "# only a comment\n---\nkind: A\n---\n\n---  # next\nkind: B\nv: |\n  x\n  --- y\n"
    assert objects(text) == [(2, {"kind": "A"}), (6, {"kind": "B", "v": "x\n--- y\n"})]


def test_notes_are_no_objects_and_templates_come_in_order() -> None:
    templates = {
        "c/templates/b.yaml": "kind: B",
        "c/templates/NOTES.txt": "Hello",
        "c/templates/a.yaml": "kind: A",
    }
    assert [found.template for found in parse(Rendering(templates))] == [
        "c/templates/a.yaml",
        "c/templates/b.yaml",
    ]


def test_an_object_is_called_by_kind_and_name() -> None:
    (found,) = parse(Rendering({"a.yaml": "kind: Service\nmetadata: {name: demo-server}"}))
    assert (found.kind, found.name, found.id) == ("Service", "demo-server", "Service/demo-server")


def test_an_object_without_metadata_has_no_name() -> None:
    (found,) = parse(Rendering({"a.yaml": "kind: Service\nmetadata: oops"}))
    assert found.id == "Service/"


def test_scalars_are_what_the_api_server_takes_them_for() -> None:
    """A commit such as 1e3 is a number and y a boolean, which PyYAML would hide."""
    assert objects("a: 1e3\nb: y\nc: 0o17\nd: 2030-01-01\n") == [
        (1, {"a": 1000, "b": True, "c": 15, "d": "2030-01-01"})
    ]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        (
            "kind: A\n---\nkind: B\na: [1\n",
            "the template renders what is not a Kubernetes object: did not find expected ',' or ']'",
            "c/templates/a.yaml:4:1: ",
        ),
        (
            "kind: A\n---\n- kind: B\n",
            "the template renders what is not a Kubernetes object: it is not a mapping",
            "c/templates/a.yaml:2:1: ",
        ),
    ],
    ids=["broken", "list"],
)
def test_anything_else_is_refused_with_its_place(text: str, message: str, place: str) -> None:
    with pytest.raises(RenderError) as caught:
        objects(text)
    assert (str(caught.value), caught.value.place) == (message, place)
