"""Kubernetes' published types, for `$ref: k8s:…`: closed, and without prose.

Source: the strict schemas of the newest Kubernetes version that the package kubernetes-validate carries.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.abc import Traversable

# The keywords that decide what is valid; formats such as int64 are not Draft-07's.
_KEPT = frozenset({"type", "properties", "required", "items", "additionalProperties", "enum", "$ref"})
_GROUP = re.compile(r"^io\.k8s\.(api|apimachinery\.pkg\.(apis|api|util))\.")


@cache
def definitions() -> Mapping[str, Any]:
    """Every published definition by its full name, such as io.k8s.api.core.v1.Affinity."""
    text = _newest().joinpath("_definitions.json").read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)["$defs"]
    return found


def short_name(name: str) -> str:
    """The name of a definition inside a bundle: core.v1.Affinity for io.k8s.api.core.v1.Affinity."""
    return _GROUP.sub("", name)


def bundled(name: str) -> dict[str, Any]:
    """One definition and all that it refers to, by short name; references point into `definitions`."""
    found: dict[str, Any] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if short_name(current) not in found:
            found[short_name(current)] = _lean(definitions()[current], waiting)
    return found


def _lean(schema: Any, referred: list[str]) -> Any:
    """Keep what decides validity, and note the full name of every definition that is referred to."""
    if not isinstance(schema, dict):
        return schema
    if "oneOf" in schema:
        return _union(schema["oneOf"])
    if "$ref" in schema:
        referred.append(schema["$ref"].removeprefix("#/$defs/"))
        return {"$ref": f"#/definitions/{short_name(referred[-1])}"}
    lean = {key: _lean(value, referred) for key, value in schema.items() if key in _KEPT}
    if "properties" in schema:
        lean["properties"] = {key: _lean(value, referred) for key, value in schema["properties"].items()}
    return lean


def _union(choices: list[Any]) -> dict[str, Any]:
    """Quantity and IntOrString are a `oneOf` of types that overlap on null; a list of types says it right."""
    types: list[str] = []
    for choice in choices:
        types += [name for name in choice["type"] if name not in types]
    return {"type": types}


def _newest() -> Traversable:
    """The folder of the newest version that is closed to unknown fields, such as v1.37.0-local-strict."""
    folders = files("kubernetes_validate").joinpath("kubernetes-json-schema").iterdir()
    strict = (folder for folder in folders if folder.name.endswith("-local-strict"))
    return max(strict, key=lambda folder: [int(number) for number in re.findall(r"\d+", folder.name)])
