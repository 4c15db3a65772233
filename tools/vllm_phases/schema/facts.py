"""What a key's schema says, in words, for values.yaml and the documents alike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}


def description(schema: Mapping[str, Any]) -> str:
    """The description on one line."""
    return " ".join(schema.get("description", "").split())


def allowed(schema: Mapping[str, Any]) -> str:
    """The values or the range that a schema allows, or nothing where its type or description says it all."""
    if "enum" in schema:
        if all(f"`{value}`" in schema.get("description", "") for value in schema["enum"]):
            return ""
        return "one of " + ", ".join(plain(value) for value in schema["enum"])
    if "minimum" in schema and "maximum" in schema:
        return f"from {schema['minimum']} to {schema['maximum']}"
    return ", ".join(f"{word} {schema[bound]}" for bound, word in _BOUNDS.items() if bound in schema)


def sentence(*parts: str) -> str:
    """One sentence of the parts that say something, or nothing."""
    text = ", ".join(part for part in parts if part)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def plain(value: Any) -> str:
    """A value in running text: strings without quotes, everything else as JSON."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
