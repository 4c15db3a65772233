"""From the sources to one chart's values.yaml: every key with its default, under a comment on it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from vllm_phases.schema.facts import allowed, description, plain, sentence
from vllm_phases.schema.tree import Key, keys
from vllm_phases.schema.yaml_text import dump

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.schema.sources import Sources

_WIDTH = 100


def values_yaml(sources: Sources, chart: str) -> str:
    """The text of charts/<chart>/values.yaml."""
    root = keys(sources, sources.chart(chart))
    lines = [
        f"# Generated from schemas/charts/{chart}.yaml; do not edit.",
        "#",
        *_comment(description(root.schema), ""),
    ]
    for key in root.printed:
        lines += ["", *_key(key, "")]
    return "\n".join(lines) + "\n"


def _key(key: Key, indent: str) -> Iterator[str]:
    """The comment and the value of one key, and of those below."""
    yield from _comment(_explanation(key), indent)
    if _is_empty(key.default):
        yield from _example(key, indent)
    if not (key.default and key.printed):
        yield from (indent + line for line in dump({key.name: key.default}))
        return
    yield f"{indent}{dump({key.name: None})[0].removesuffix(' null')}"
    for child in key.printed:
        if child.has_default:
            yield from _key(child, indent + "  ")


def _explanation(key: Key) -> str:
    """The description, the unit and what is allowed, and where the rest is explained."""
    unit = f"Unit: {key.schema['x-unit']}" if "x-unit" in key.schema else ""
    elsewhere = f"All other keys: charts/{key.subchart}/values.yaml." if key.subchart else ""
    said = (description(key.schema), sentence(unit, allowed(key.schema)), elsewhere)
    return " ".join(text for text in said if text)


def _example(key: Key, indent: str) -> Iterator[str]:
    for example in key.schema.get("examples", ())[:1]:
        if isinstance(example, (dict, list)):
            yield f"{indent}# For example:"
            yield from (f"{indent}#   {line}" for line in dump({key.name: example}))
        else:
            yield from _comment(f"For example: {plain(example)}", indent)


def _comment(text: str, indent: str) -> list[str]:
    start = f"{indent}# "
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=start,
        subsequent_indent=start,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", [], {})
