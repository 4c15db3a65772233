"""From an engine's flag or variable back to the line of the values that set it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vllm_phases.model import Argument, Engine, Key, Variable
from vllm_phases.yaml_document import dotted

if TYPE_CHECKING:
    from collections.abc import Callable

    from vllm_phases.finding import Location
    from vllm_phases.rules.registry import Problem
    from vllm_phases.values import Values
    from vllm_phases.yaml_document import KeyPath

_SHARED = ("global", "vllm")
_SUBCHARTS = re.compile(r"charts/([^/]+)/")
_COMPONENT = "app.kubernetes.io/component"


def in_values(values: Values) -> Callable[[Problem, object], tuple[str, Location | None]]:
    """Locates problems of our charts' engines in the values; elsewhere in the rendered template."""

    def locate(problem: Problem, subject: object) -> tuple[str, Location | None]:
        path: KeyPath = ()
        option = problem.where.argument if isinstance(problem.where, Key) else problem.where
        if isinstance(subject, Engine) and isinstance(option, Argument):
            key = option.written.lstrip("-")
            path = origin(subject, values, "args", key, key.removeprefix("no-"))
        elif isinstance(subject, Engine) and isinstance(problem.where, Variable):
            path = origin(subject, values, "env", problem.where.name)
        return dotted(path), values.origins[path] if path else problem.location

    return locate


def origin(engine: Engine, values: Values, field: str, *keys: str) -> KeyPath:
    """The values path that set one of `keys` in `field` (args or env) of an engine; () where none did.

    A role's own block wins over `global.vllm`, as in the charts.
    """
    layer = tuple(_SUBCHARTS.findall(engine.node.document.file))
    component = engine.pod.labels.get(_COMPONENT, "")
    paths = [path for path in values.origins if path[-2:-1] == (field,) and path[-1] in keys]
    own = [path for path in paths if path[: len(layer)] == layer and path[:2] != _SHARED]
    own.sort(key=lambda path: component not in path)
    return next(iter((*own, *(path for path in paths if path[:-2] == _SHARED))), ())
