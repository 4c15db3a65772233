"""Proof that the sources keep their own promises: examples, defaults and the generated schemas are valid."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from vllm_phases.schema.bundle import DRAFT, Bundler, bundle
from vllm_phases.schema.tree import keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.schema.sources import Place, Sources


def wrong_values(sources: Sources) -> Iterator[tuple[Place, str]]:
    """Examples and defaults that their own schema refuses.

    All are judged by one schema with a property for each, because compiling is the slow part.
    """
    bundler = Bundler(sources)
    claims = [(place, name, value) for place in sources.places() for name, value in _claims(place)]
    properties = {str(i): {"$ref": bundler.refer(place)} for i, (place, _, _) in enumerate(claims)}
    schema = {"$schema": DRAFT, "properties": properties, "definitions": bundler.definitions}
    instance = {str(i): value for i, (_, _, value) in enumerate(claims)}
    for error in jsonschema_rs.Draft7Validator(schema).iter_errors(instance):
        place, name, value = claims[int(error.instance_path[0])]
        yield place, f"{name} {json.dumps(value, ensure_ascii=False)} breaks the schema: {_reason(error, 1)}"


def _claims(place: Place) -> Iterator[tuple[str, Any]]:
    if "default" in place.schema:
        yield "default", place.schema["default"]
    for index, example in enumerate(place.schema.get("examples", ())):
        yield f"examples[{index}]", example


def wrong_charts(sources: Sources) -> Iterator[tuple[Place, str]]:
    """Charts whose generated schema refuses their own generated defaults."""
    for chart in sources.charts:
        root = sources.chart(chart)
        validator = jsonschema_rs.Draft7Validator(bundle(sources, chart))
        for error in validator.iter_errors(keys(sources, root).default):
            yield root, f"the composed defaults break the schema: {_reason(error, 0)}"


def _reason(error: Any, skip: int) -> str:
    path = ".".join(str(key) for key in list(error.instance_path)[skip:])
    return f"{path}: {error.message}" if path else str(error.message)
