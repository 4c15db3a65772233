"""How a value is written in YAML or JSON."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from vllm_phases.sources import scalars
from vllm_phases.sources.layout import Unclear

if TYPE_CHECKING:
    from collections.abc import Callable

# A text that is plain everywhere: no indicator, no comment, no key, nothing that ends a flow entry.
_PLAIN = re.compile(
    r"[A-Za-z0-9_./$(][A-Za-z0-9_./$()=@%+~-]*(?::[A-Za-z0-9_./$()=@%+~-]+)*|--?[A-Za-z][\w.=/$()-]*"
)


def like(raw: str, old: Any, new: str | bool | int) -> str:
    """A new scalar in the quotes of the old one; Unclear where the old one is written in a way of its own."""
    if isinstance(new, bool | int):
        return json.dumps(new)
    if not isinstance(old, str):
        return flow(new, raw[:1] == '"')
    writers: tuple[Callable[[str], str], ...] = (_plain, _single, _double, _ascii)
    for write in writers:
        if write(old) == raw:
            return write(new)
    if raw == old:  # plain where it stands, though not everywhere
        return _plain(new)
    raise Unclear


def flow(value: Any, as_json: bool) -> str:
    """A value on one line, within brackets or not."""
    if as_json:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{flow(key, False)}: {flow(below, False)}" for key, below in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(flow(item, False) for item in value) + "]"
    return _plain(value) if isinstance(value, str) else json.dumps(value)


def _plain(text: str) -> str:
    """Plain where that is the same text everywhere, or else in quotes."""
    return text if _PLAIN.fullmatch(text) and scalars.value(text) == text else _double(text)


def _single(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _double(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _ascii(text: str) -> str:
    return json.dumps(text)
