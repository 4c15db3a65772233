"""Values against a chart's values.schema.json, told in the user's own lines.

Helm validates too, when it renders; this comes first because it knows the file, the line, what each key
means and which key was meant.
"""

from __future__ import annotations

import json
from contextlib import suppress
from difflib import get_close_matches
from functools import reduce
from operator import getitem
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Finding, Location, Severity, reading_order
from vllm_phases.render import RenderError
from vllm_phases.render.chart import ChartFiles
from vllm_phases.schema.lookup import at, conditions
from vllm_phases.schema.wording import expectation, given
from vllm_phases.yaml_document import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from jsonschema_rs import ValidationError

    from vllm_phases.values import Values
    from vllm_phases.yaml_document import KeyPath

_UNKNOWN_KEY = ("VAL001", "unknown-key")
_WRONG_TYPE = ("VAL002", "wrong-type")
_BAD_VALUE = ("VAL003", "bad-value")
_MOST_KEYS = 12  # of an object that a message lists


class ValuesSchema:
    """The schema of one chart, compiled once, with the chart's defaults."""

    def __init__(self, chart: Path) -> None:
        """Read the chart (folder or .tgz); RenderError if Helm cannot load it or its schema is broken."""
        import jsonschema_rs

        self._files = ChartFiles.read(chart)
        try:
            self._schema: dict[str, Any] = json.loads(self._files.schema or "{}")
            self._validator = jsonschema_rs.validator_for(self._schema, retriever=_no_network)
        except ValueError as error:
            reason = str(error).splitlines()[0]
            raise RenderError(f"{chart}: values.schema.json cannot be used: {reason}") from None

    def coalesce(self, values: Values) -> Mapping[str, Any]:
        """The chart's defaults merged with the user's values.

        Where Helm cannot merge them (a number where a subchart's map belongs) the user's values alone, in
        which the schema finds the reason.
        """
        try:
            return self._files.coalesce(values.tree)
        except RenderError:
            return values.tree

    def findings(self, values: Values, merged: Mapping[str, Any]) -> tuple[Finding, ...]:
        """What the schema refuses in the merged values, in the order of the user's lines."""
        errors = self._validator.iter_errors(merged)
        found = (finding for error in errors for finding in self._explain(error, values, merged))
        return tuple(sorted(dict.fromkeys(found), key=reading_order))

    def _explain(self, error: ValidationError, values: Values, merged: Any) -> Iterator[Finding]:
        path: KeyPath = tuple(error.instance_path)
        kind: Any = error.kind
        if _copied(path, values):
            return
        if kind.name == "additionalProperties":
            yield from (self._unknown(path, key, values) for key in kind.unexpected)
            return
        because = _reached(conditions(self._schema, error.schema_path, path), merged)
        rule = _WRONG_TYPE if kind.name == "type" else _BAD_VALUE
        if kind.name == "required":
            path = (*path, kind.property)
            message = f"{dotted(path)} is missing"
        elif kind.name == "propertyNames":
            path = (*path, kind.error.instance)
            message = f"{dotted(path)}: the key {expectation(kind.error)}"
        else:
            message = f"{dotted(path)} is {given(error.instance)}, {expectation(error)}"
        reasons = " and ".join(f"{dotted(cause)} is {given(value)}" for cause, value in because.items())
        message += f" because {reasons}" if reasons else ""
        yield self._finding(rule, message, self._meaning(path), path, self._origin(path, because, values))

    def _unknown(self, parent: KeyPath, key: str, values: Values) -> Finding:
        """A key that its object does not have, with the one that was probably meant."""
        properties = at(self._schema, parent).get("properties", {})
        known = [name for name, schema in properties.items() if not schema.get("x-hidden")]
        path, near = (*parent, key), get_close_matches(key, known, 1)
        message = f"{dotted(path)} is not a key of {dotted(parent) or self._files.root}"
        meaning = self._meaning(parent)
        if near:
            message += f"; did you mean {near[0]}?"
        elif known:
            more = [f"{len(known) - _MOST_KEYS} more"] if len(known) > _MOST_KEYS else []
            meaning += f" Its keys: {', '.join(known[:_MOST_KEYS] + more)}."
        return self._finding(_UNKNOWN_KEY, message, meaning, path, self._origin(path, (), values))

    def _finding(
        self, rule: tuple[str, str], message: str, remediation: str, path: KeyPath, location: Location | None
    ) -> Finding:
        return Finding(*rule, Severity.ERROR, message, remediation, dotted(path), location=location)

    def _meaning(self, path: KeyPath) -> str:
        """The schema's description of a key, or of the object that has it."""
        while path and not at(self._schema, path).get("description"):
            path = path[:-1]
        return f"{dotted(path) or self._files.root}: {at(self._schema, path).get('description', '')}"

    def _origin(self, path: KeyPath, because: Iterable[KeyPath], values: Values) -> Location | None:
        """The user's line that set the value or its condition, else the nearest line of user or chart."""
        defaults = self._files.default_origins
        places: tuple[Location | None, ...] = (
            *(values.origins.get(cause) for cause in (path, *because)),
            *(
                origins.get(path[:n])
                for n in range(len(path), 0, -1)
                for origins in (values.origins, defaults)
            ),
        )
        return next(filter(None, places), None)


def _copied(path: KeyPath, values: Values) -> bool:
    """Whether Helm, not the user, put this value where it is: it hands `global` on to every subchart."""
    return "global" in path[1:] and path[: path.index("global", 1) + 1] not in values.origins


def _reached(paths: Iterable[KeyPath], tree: Any) -> dict[KeyPath, Any]:
    """The values at those paths that the tree has."""
    values: dict[KeyPath, Any] = {}
    for path in paths:
        with suppress(LookupError, TypeError):
            values[path] = reduce(getitem, path, tree)
    return values


def _no_network(_: str) -> Any:
    raise ValueError("it is outside the chart")
