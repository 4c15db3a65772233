"""What holds for any document: `validate` answers, and it is never more lenient than kubernetes-validate."""

from __future__ import annotations

import datetime
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vllm_phases.objects import validate

from tests.objects.examples import ACCEPTED, CRON_JOB, DEPLOYMENT, ROLE, SECRET, SERVICE, STATEFUL_SET, Object

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# A busy machine is no failure.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

BUILT_IN = [DEPLOYMENT, STATEFUL_SET, SERVICE, SECRET, CRON_JOB, ROLE]
KINDS = [(document["apiVersion"], document["kind"]) for document in ACCEPTED]
FIELDS = st.sampled_from(
    ["metadata", "spec", "name", "labels", "template", "containers", "resources", "limits"]
)
WORDS = st.sampled_from(["", "a", "A b", "1", "-1", "1e999", "500m", "10Gi", "100%", "http", "a/b/c", "é"])

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | WORDS
alien = plain | st.binary() | st.dates() | st.just(datetime.datetime(2026, 12, 1)) | st.sets(st.integers())
keys = st.text() | FIELDS | st.integers() | st.none() | st.tuples(st.integers())


def nested(leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=20)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


@st.composite
def damaged(draw: st.DrawFn, originals: Sequence[Object], values: st.SearchStrategy[Any]) -> Object:
    """An accepted object with anything at all in one place."""
    document = deepcopy(draw(st.sampled_from(originals)))
    *path, last = draw(
        st.sampled_from([path for path in places(document) if path[0] not in {"apiVersion", "kind"}])
    )
    node: Any = document
    for step in path:
        node = node[step]
    node[last] = draw(values)
    return document


@given(
    st.dictionaries(keys, nested(alien, keys)),
    st.sampled_from([*KINDS, ("x/y/v1", "../Pod"), ("v1", "List")]),
)
def test_any_mapping_gets_an_answer(document: dict[Any, Any], kind: tuple[str, str]) -> None:
    validate(document, "1.34")
    validate({**document, "apiVersion": kind[0], "kind": kind[1]}, "1.34")


@settings(UNHURRIED, max_examples=300)
@given(damaged(ACCEPTED, nested(alien, keys)))
def test_a_damaged_object_gets_an_answer(document: Object) -> None:
    validate(document, "1.34")


def test_a_list_in_itself_gets_an_answer() -> None:
    endless: list[Any] = []
    endless.append(endless)
    (finding,) = validate({**DEPLOYMENT, "spec": {"replicas": endless}}, "1.34")
    assert finding.message == "not JSON: Recursion limit reached"


@UNHURRIED
@given(damaged(BUILT_IN, nested(st.booleans() | st.integers() | st.text() | WORDS, FIELDS)))
def test_what_kubernetes_validate_refuses_is_refused(document: Object) -> None:
    try:
        kubernetes_validate.validate(document, "1.34", strict=True)
    except kubernetes_validate.ValidationError:
        assert validate(document, "1.34")


@pytest.mark.parametrize("version", ["1.25", "1.34", "1.37"])
@pytest.mark.parametrize("document", BUILT_IN, ids=lambda document: document["kind"])
def test_what_is_accepted_here_is_accepted_by_kubernetes_validate(document: Object, version: str) -> None:
    kubernetes_validate.validate(document, version, strict=True)
    assert validate(document, version) == ()
