"""Values files and --set, merged as Helm merges them, with the place that set each key.

Files merge left to right: maps merge, everything else (lists too) is replaced, and null stays, to delete
the chart's default when Helm coalesces. --set comes last and may reach into lists.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vllm_phases import yaml_document
from vllm_phases.finding import Location, UsageError
from vllm_phases.yaml_document import dotted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from vllm_phases.yaml_document import KeyPath

# One `key=value` of a --set expression; a backslash escapes.
_ASSIGNMENT = re.compile(
    r"""(?P<text>
            (?P<key> (?: \\. | \[\d+\] | [^=,\[\]\\] )+ )
            =
            (?: \{ (?: \\. | [^}\\] )* \}               # a list
              | (?!\{) (?: \\. | [^,\\] | \\$ )* )      # anything else
        )
        (?: , | $ )""",
    re.DOTALL | re.VERBOSE,
)
_SEPARATORS = re.compile(r"\\.|([.\[])")


@dataclass(frozen=True)
class Values:
    """The user's values; origins maps the path of each key and list item to the place that last set it."""

    tree: Mapping[str, Any]
    origins: Mapping[KeyPath, Location]

    def origin(self, path: KeyPath) -> Location | None:
        """The place that set `path`, or else the nearest of its parents that the user set."""
        known = (self.origins.get(path[:length]) for length in range(len(path), 0, -1))
        return next(filter(None, known), None)


def load(files: Sequence[Path], sets: Sequence[str] = ()) -> Values:
    """Read values files, then apply --set expressions.

    UsageError, in one line, for a file that is missing, a folder, not UTF-8 or not one YAML mapping, and
    for an expression that Helm cannot read.
    """
    tree: dict[str, Any] = {}
    origins: dict[KeyPath, Location] = {}
    for file in files:
        layer, places = yaml_document.parse(_text(file), str(file))
        _merge(tree, origins, layer, ())
        origins.update(places)
    for expression in sets:
        _apply(tree, origins, expression)
    return Values(tree, origins)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"{file}: no such values file") from None
    except IsADirectoryError:
        raise UsageError(f"{file}: is a folder, not a values file") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None


def _merge(
    tree: dict[str, Any], origins: dict[KeyPath, Location], layer: Mapping[str, Any], path: KeyPath
) -> None:
    """Merge `layer` into `tree` and drop the origins of what it replaces."""
    for key, value in layer.items():
        here, old = (*path, key), tree.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            _merge(old, origins, value, here)
            continue
        if isinstance(old, dict | list):
            _forget(origins, here)
        tree[key] = value


def _forget(origins: dict[KeyPath, Location], path: KeyPath) -> None:
    """Drop the origins of a path and of everything under it."""
    for known in [known for known in origins if known[: len(path)] == path]:
        del origins[known]


def _apply(tree: dict[str, Any], origins: dict[KeyPath, Location], expression: str) -> None:
    """Apply one expression, `key=value[,key=value…]`; Helm's own parser reads keys and values."""
    from helm_python import parse_set_string
    from helm_python.errors import HelmError

    place = Location(f"--set {expression}", 1, 1)
    try:
        if not parse_set_string(expression):
            raise UsageError(f"{place.file}: sets nothing")
        for match in _assignments(expression):
            path, value = _assignment(match["key"], parse_set_string(match["text"]))
            _assigned(tree, path, 0, value, place.file)
            _forget(origins, path)
            origins.update({path[:n]: place for n in range(1, len(path) + 1) if path[:n] not in origins})
    except HelmError as error:
        raise UsageError(f"{place.file}: {error.detail}") from None
    except LookupError:
        raise UsageError(f"{place.file}: is not key=value") from None


def _assignments(expression: str) -> list[re.Match[str]]:
    """The assignments of an expression; LookupError unless they make up all of it."""
    matches = list(_ASSIGNMENT.finditer(expression))
    if "".join(match[0] for match in matches) != expression:
        raise LookupError(expression)
    return matches


def _assignment(key: str, parsed: Any) -> tuple[KeyPath, Any]:
    """The path and value of one assignment, from the tree that Helm's parser made of it alone.

    LookupError where the tree is not as deep as the key: Helm passes over empty keys.
    """
    path: list[str | int] = []
    for _ in range(1 + sum(bool(match[1]) for match in _SEPARATORS.finditer(key))):
        if not isinstance(parsed, dict | list) or not parsed:
            raise LookupError(key)
        step = next(iter(parsed)) if isinstance(parsed, dict) else len(parsed) - 1
        path.append(step)
        parsed = parsed[step]
    return tuple(path), parsed


def _assigned(node: Any, path: KeyPath, depth: int, value: Any, name: str) -> Any:
    """`node`, which stands at path[:depth], with `value` set at `path`; UsageError if that is impossible."""
    if depth == len(path):
        return value
    step = path[depth]
    kind: Any = list if isinstance(step, int) else dict
    node = kind() if node is None else node
    if not isinstance(node, kind):
        wanted = "list" if kind is list else "map"
        raise UsageError(f"{name}: {dotted(path[:depth])} is not a {wanted}")
    if isinstance(step, int):
        node.extend([None] * (step + 1 - len(node)))
    below = node[step] if isinstance(step, int) else node.get(step)
    node[step] = _assigned(below, path, depth + 1, value, name)
    return node
