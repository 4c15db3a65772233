"""Finding one's way in a bundled schema: what it says about a values path, and what an error depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vllm_phases.yaml_document import KeyPath


def at(schema: Mapping[str, Any], path: KeyPath) -> Mapping[str, Any]:
    """What the schema says about the value at `path`; {} where it says nothing.

    A description that stands beside a `$ref` wins over the one it refers to.
    """
    node = _resolved(schema, schema)
    for step in path:
        below = node.get("items") if isinstance(step, int) else node.get("properties", {}).get(step)
        if below is None and isinstance(step, str):
            below = node.get("additionalProperties")
        node = _resolved(schema, below) if isinstance(below, dict) else {}
    return node


def conditions(schema: Mapping[str, Any], keywords: Sequence[str | int], path: KeyPath) -> list[KeyPath]:
    """For an error under `then`: the values paths that its `if` looks at. Empty for any other error.

    keywords leads from the root of the schema to the keyword that failed, path to the value it refused.
    """
    if "then" not in keywords:
        return []
    then = len(keywords) - 1 - list(reversed(keywords)).index("then")
    node: Any = schema
    for keyword in keywords[:then]:
        node = node[keyword]
    owner = path[: len(path) - _depth(keywords[then + 1 :])]
    return [(*owner, *below) for below in _constants(node["if"], ())]


def _resolved(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in node:
        target: Any = schema
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step.replace("~1", "/").replace("~0", "~")]
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    return node


def _depth(keywords: Sequence[str | int]) -> int:
    """How many steps of a values path the keywords go down."""
    steps, position = 0, 0
    while position < len(keywords):
        below = keywords[position] in ("properties", "items")
        steps += below
        position += 2 if keywords[position] == "properties" else 1
    return steps


def _constants(node: Mapping[str, Any], path: KeyPath) -> Iterator[KeyPath]:
    if "const" in node or "enum" in node:
        yield path
    for key, below in node.get("properties", {}).items():
        yield from _constants(below, (*path, key))
