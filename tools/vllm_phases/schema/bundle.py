"""From the sources to one chart's values.schema.json: Draft-07, closed, and free of outside references.

Helm compiles the schema at every render, and cannot read a second file (a reference to one is resolved
against the root of the file system), so everything is bundled into `definitions`, each thing once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from vllm_phases.schema import kubernetes
from vllm_phases.schema.sources import KUBERNETES, SCHEMA_LISTS, SCHEMA_MAPS, SCHEMAS, Place, Sources

DRAFT = "http://json-schema.org/draft-07/schema#"

# Defaults and descriptions stay for editors and error messages; Helm reads neither.
_DROPPED = frozenset({"definitions", "examples", "title"})
# Below these keywords stand the schemas of values; below all others stand conditions, which stay open.
_OF_VALUES = frozenset({"properties", "items", "additionalProperties"})


def bundle(sources: Sources, chart: str) -> dict[str, Any]:
    """The schema of one chart's values.

    Definitions are sorted by name; all else keeps the order of the sources.
    """
    bundler = Bundler(sources)
    root = bundler.convert(sources.chart(chart), of_values=True)
    title = sources.chart(chart).schema.get("title", chart)
    comment = f"Generated from schemas/charts/{chart}.yaml; do not edit."
    definitions = dict(sorted(bundler.definitions.items()))
    return {"$schema": DRAFT, "$comment": comment, "title": title, **root, "definitions": definitions}


class Bundler:
    """Converts schemas, and collects in `definitions` whatever they refer to."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.definitions: dict[str, Any] = {}

    def convert(self, place: Place, *, of_values: bool) -> dict[str, Any]:
        """One schema as it stands in the bundle; that of a value is closed and takes over its includes."""
        converted: dict[str, Any] = {}
        for keyword, value in place.schema.items():
            if keyword == "$ref":
                converted[keyword] = self.refer(self.sources.target(value, place.file))
            elif keyword == "description":
                converted[keyword] = " ".join(value.split())
            elif keyword == "x-hidden" or not (keyword in _DROPPED or keyword.startswith("x-")):
                converted[keyword] = self._inside(place, keyword, of_values and keyword in _OF_VALUES)
        if of_values and "$ref" not in place.schema:
            self._include(place, converted)
            _close(converted)
        return converted

    def _inside(self, place: Place, keyword: str, of_values: bool) -> Any:
        value = place.schema[keyword]
        if keyword in SCHEMA_MAPS:
            return {name: self.convert(place.child(keyword, name), of_values=of_values) for name in value}
        if keyword in SCHEMA_LISTS:
            return [self.convert(place.child(keyword, str(i)), of_values=False) for i in range(len(value))]
        if keyword in SCHEMAS and isinstance(value, Mapping):
            return self.convert(place.child(keyword), of_values=of_values)
        return value

    def refer(self, target: Place) -> str:
        """The reference to a place inside the bundle; what it refers to is put into `definitions`."""
        if target.file == KUBERNETES:
            self.definitions.update(kubernetes.bundled(target.pointer[0]))
            return f"#/definitions/{kubernetes.short_name(target.pointer[0])}"
        name, holder, rest = PurePosixPath(target.file).stem, self.sources.file(target.file), target.pointer
        if rest[:1] == ("definitions",):
            name, holder, rest = f"{name}.{rest[1]}", holder.child(*rest[:2]), rest[2:]
        if name not in self.definitions:
            self.definitions[name] = {}  # taken, so that a definition may refer to itself
            self.definitions[name] = self.convert(holder, of_values=True)
        return "/".join(["#/definitions", name, *(key.replace("~", "~0").replace("/", "~1") for key in rest)])

    def _include(self, place: Place, converted: dict[str, Any]) -> None:
        """Take over the properties and conditions of included objects, by reference."""
        for included in self.sources.includes(place):
            own = converted.setdefault("properties", {})
            for name in included.schema.get("properties", {}):
                if name not in own:
                    own[name] = {"$ref": self.refer(included.child("properties", name))}
            for index in range(len(included.schema.get("allOf", ()))):
                reference = {"$ref": self.refer(included.child("allOf", str(index)))}
                converted.setdefault("allOf", []).append(reference)
            required = [*converted.get("required", ()), *included.schema.get("required", ())]
            if required:
                converted["required"] = list(dict.fromkeys(required))


def _close(schema: dict[str, Any]) -> None:
    types = schema.get("type", ())
    if "object" in ([types] if isinstance(types, str) else types):
        schema.setdefault("additionalProperties", False)
