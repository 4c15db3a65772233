"""The house format of schemas/*.yaml: what a source must say beyond being valid Draft-07.

Every check yields a place and what to write there. schemas/README.md is the format in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from vllm_phases.schema import regex
from vllm_phases.schema.bundle import DRAFT
from vllm_phases.schema.sources import (
    KUBERNETES,
    SCHEMA_LISTS,
    SCHEMA_MAPS,
    SCHEMAS,
    BrokenReferenceError,
    Place,
    Sources,
)
from vllm_phases.schema.tree import Key, keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Problem = tuple[Place, str]

_DOCUMENTATION = frozenset({"default", "description", "examples", "x-hidden", "x-unit"})
_LIMITS = frozenset(
    f"{end}{what}" for end in ("min", "max") for what in ("Items", "Length", "Properties", "imum")
)
_OTHERS = frozenset(
    {"const", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "multipleOf", "pattern"}
)
_STRUCTURE = frozenset({"$ref", "required", "title", "type", "uniqueItems", "x-include", "x-subchart"})
_KEYWORDS = _DOCUMENTATION | _LIMITS | _OTHERS | _STRUCTURE | SCHEMA_LISTS | SCHEMA_MAPS | SCHEMAS
_EXTENSIONS = {
    "x-include": "a list of files",
    "x-subchart": "the name of a chart",
    "x-unit": "text",
    "x-hidden": "true",
}
_LONGEST_DESCRIPTION = 400
# An integer is a plain count unless its name says that it measures time, size or share.
_MEASURES = ("Seconds", "Millis", "Minutes", "Hours", "Bytes", "KiB", "MiB", "GiB", "Percent", "Port")
_NUMBERS = frozenset({"integer", "number"})


def malformed(sources: Sources) -> Iterator[Problem]:
    """Files that are not Draft-07 at all; nothing else can be said about them."""
    for name, document in sources.documents.items():
        try:
            jsonschema_rs.meta.validate({**document.schema, "$schema": DRAFT})
        except jsonschema_rs.ValidationError as error:
            pointer = tuple(str(key) for key in error.instance_path)
            yield Place(name, pointer, {}), f"not Draft-07: {error.message}"


def misused(sources: Sources) -> Iterator[Problem]:
    """Keywords with a value that Draft-07 allows and the house does not, or that only the house knows."""
    for place in sources.places():
        if not isinstance(place.schema, Mapping):
            yield place, f"a bare {str(place.schema).lower()} says nothing; write a schema"
            continue
        for keyword, kind in _EXTENSIONS.items():
            if keyword in place.schema and not _is(place.schema[keyword], kind):
                yield place, f"{keyword} must be {kind}"
        if isinstance(place.schema.get("items", {}), list):
            yield place, "items is not one schema; describe all items by one"
        subchart = place.schema.get("x-subchart", sources.charts[0])
        if subchart not in sources.charts:
            yield place, f"x-subchart names {subchart}, which has no charts/{subchart}.yaml"


def broken(sources: Sources) -> Iterator[Problem]:
    """References that lead nowhere, or back to themselves."""
    for place in sources.places():
        try:
            list(sources.includes(sources.effective(place)))
        except BrokenReferenceError as error:
            yield place, str(error)


def endless(sources: Sources) -> Iterator[Problem]:
    """Values that contain themselves."""
    for chart in sources.charts:
        try:
            keys(sources, sources.chart(chart))
        except BrokenReferenceError as error:
            yield sources.chart(chart), str(error)


def problems(sources: Sources) -> Iterator[Problem]:
    """Everything else that the house format asks for."""
    for place in sources.places():
        yield from _keywords(place)
        yield from _words(sources, place)
    seen: set[Any] = set()
    for chart in sources.charts:
        root = sources.chart(chart)
        yield from _values(sources, root, "", False, seen)
        yield from _defaults(keys(sources, root))


def _keywords(place: Place) -> Iterator[Problem]:
    """Only known keywords, and each only where it has an effect and a readable error."""
    for keyword in place.schema:
        if keyword not in _KEYWORDS:
            yield place, f"unknown keyword {keyword}{_nearest(keyword, _KEYWORDS)}"
        elif "$ref" in place.schema and keyword not in _DOCUMENTATION | {"$ref"}:
            yield place, f"Draft-07 ignores {keyword} beside $ref; write it into what is referred to"
    if "oneOf" in place.schema:
        yield place, "oneOf has unreadable errors; write an enum `type` and allOf with if/then"
    if "not" in place.schema and "if" not in place.pointer:
        yield place, "not has unreadable errors; write what is allowed, or use it inside an if"
    if "if" in place.schema and place.pointer[-2:-1] != ("allOf",):
        yield place, "write if/then as an item of allOf, so that it can be included"


def _words(sources: Sources, place: Place) -> Iterator[Problem]:
    """Descriptions, patterns and units."""
    description = place.schema.get("description")
    if description is not None and not description.strip().endswith("."):
        yield place, "end the description with a full stop"
    if description is not None and len(description) > _LONGEST_DESCRIPTION:
        yield place, f"the description has {len(description)} characters; say it in {_LONGEST_DESCRIPTION}"
    if why := regex.problem(place.schema.get("pattern", "")):
        what = f"pattern {place.schema['pattern']} {why}"
        yield place, f"{what}; Helm refuses a schema with a pattern that RE2 lacks"
    if "x-unit" in place.schema and not _types(sources.effective(place)) & (_NUMBERS | {"string"}):
        yield place, "x-unit is for numbers and quantities; remove it"
    if place.schema.get("x-unit") == "count":
        yield place, "a plain count has no x-unit; remove it"


def _values(sources: Sources, place: Place, name: str, in_map: bool, seen: set[Any]) -> Iterator[Problem]:
    """The schemas of values below a place, each once for each way in which it is used."""
    target = sources.effective(place)
    use = (target.file, target.pointer, place.file, place.pointer, _may_be_open(name, target, in_map))
    if target.file == KUBERNETES or use in seen:
        return
    seen.add(use)
    if "type" not in target.schema:
        yield place, "add a type or a $ref"
    yield from _openness(place, target, name, in_map)
    for child_name, child in sources.properties(target).items():
        yield from _property(sources, child, child_name)
        yield from _values(sources, child, child_name, False, seen)
    for keyword in ("items", "additionalProperties"):
        if isinstance(target.schema.get(keyword), Mapping):
            yield from _values(sources, target.child(keyword), name, in_map or keyword != "items", seen)
    yield from _conditions(sources, target)


def _property(sources: Sources, place: Place, name: str) -> Iterator[Problem]:
    target = sources.effective(place)
    if not target.schema.get("description"):
        yield place, "add a description; start with what it is, end with a full stop"
    types = _types(target)
    measured = name.endswith(_MEASURES) or "number" in types
    if types & _NUMBERS and types <= _NUMBERS | {"null"} and measured and not target.schema.get("x-unit"):
        yield place, "add x-unit, such as seconds or MiB; only a plain count goes without"


def _openness(place: Place, target: Place, name: str, in_map: bool) -> Iterator[Problem]:
    """Objects are closed; typed maps, free JSON inside one, and names that start with extra may be open."""
    if "object" not in _types(target):
        return
    others = target.schema.get("additionalProperties", False)
    if others is True and not _may_be_open(name, target, in_map):
        yield place, "the object is open; name its properties, type additionalProperties, or call it extra…"
    named = {"properties", "x-include"} & target.schema.keys()
    if others is False and not named:
        yield place, "the object accepts only {}; name its properties, or type additionalProperties"


def _may_be_open(name: str, target: Place, in_map: bool) -> bool:
    free_json = in_map and len(_types(target)) > 1
    return free_json or name.startswith("extra") or name == "global" or bool(target.schema.get("x-hidden"))


def _defaults(key: Key) -> Iterator[Problem]:
    if "default" in key.schema:
        return
    if not key.children:
        yield key.written, "add a default"
    for child in key.children:
        yield from _defaults(child)


def _conditions(sources: Sources, target: Place) -> Iterator[Problem]:
    """A condition on a key or a value that does not exist never bites, in silence."""
    for holder in (target, *sources.includes(target)):
        for keyword, part in holder.children():
            if keyword in SCHEMA_LISTS:
                yield from _condition(sources, part, target)


def _condition(sources: Sources, part: Place, target: Place) -> Iterator[Problem]:
    """Compare a part of a condition with the schema of the value that it looks at."""
    known = sources.properties(target)
    if known and not target.schema.get("additionalProperties"):
        for name in dict.fromkeys([*part.schema.get("properties", ()), *part.schema.get("required", ())]):
            if name not in known:
                yield part, f"the condition names {name}, which is no key here{_nearest(name, known)}"
    allowed = target.schema.get("enum", ())
    if allowed and part.schema.get("const", allowed[0]) not in allowed:
        yield part, f"the condition waits for {part.schema['const']}, which enum does not allow"
    for keyword, inner in part.children():
        if keyword != "properties":
            yield from _condition(sources, inner, target)
        elif inner.pointer[-1] in known:
            yield from _condition(sources, inner, sources.effective(known[inner.pointer[-1]]))


def _nearest(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def _is(value: Any, kind: str) -> bool:
    if kind == "a list of files":
        return isinstance(value, list) and all(isinstance(name, str) for name in value)
    return value is True if kind == "true" else isinstance(value, str)


def _types(place: Place) -> set[str]:
    types = place.schema.get("type", ())
    return {types} if isinstance(types, str) else set(types)
