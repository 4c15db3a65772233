"""What a JSON Schema keyword asks for, in words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from jsonschema_rs import ValidationError

_MOST = 60  # characters of a value that a message shows

_KINDS = {"integer": "an integer", "object": "a map", "array": "a list", "null": "null"}

_WORDS: dict[str, Callable[[Any], str]] = {
    "type": lambda kind: "must be " + " or ".join(_KINDS.get(name, f"a {name}") for name in kind.types),
    "enum": lambda kind: "must be one of " + ", ".join(map(given, kind.options)),
    "const": lambda kind: f"must be {given(kind.expected_value)}",
    "minimum": lambda kind: f"must be at least {kind.limit}",
    "maximum": lambda kind: f"must be at most {kind.limit}",
    "exclusiveMinimum": lambda kind: f"must be greater than {kind.limit}",
    "exclusiveMaximum": lambda kind: f"must be less than {kind.limit}",
    "multipleOf": lambda kind: f"must be a multiple of {kind.multiple_of}",
    "minLength": lambda kind: _at_least(kind.limit, "characters"),
    "maxLength": lambda kind: f"must have at most {kind.limit} characters",
    "minItems": lambda kind: _at_least(kind.limit, "items"),
    "maxItems": lambda kind: f"must have at most {kind.limit} items",
    "uniqueItems": lambda _: "must not have the same item twice",
    "minProperties": lambda kind: _at_least(kind.limit, "keys"),
    "maxProperties": lambda kind: f"must have at most {kind.limit} keys",
    "pattern": lambda kind: f"must match {kind.pattern}",
    "format": lambda kind: f"must be a valid {kind.format}",
    "falseSchema": lambda _: "must not be set",
}


def given(value: Any) -> str:
    """A value as the user would write it, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"


def expectation(error: ValidationError) -> str:
    """What the value must be, such as "must be an integer"; the validator's own words for rarer keywords."""
    words = _WORDS.get(error.kind.name)
    return words(error.kind) if words else error.message


def _at_least(limit: int, what: str) -> str:
    return "must not be empty" if limit == 1 else f"must have at least {limit} {what}"
