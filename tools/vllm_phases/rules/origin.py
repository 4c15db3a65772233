"""From an engine's flag or variable back to the line that set it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vllm_phases.finding import Location

if TYPE_CHECKING:
    from vllm_phases.rules.engine import Engine
    from vllm_phases.values import Values
    from vllm_phases.yaml_document import KeyPath

_SHARED = ("global", "vllm")
_SUBCHARTS = re.compile(r"charts/([^/]+)/")


def origin(engine: Engine, values: Values, field: str, *keys: str) -> tuple[KeyPath, Location]:
    """The values path and line that set one of `keys` in `field` (args or env) of an engine.

    A role's own block wins over `global.vllm`, as in the charts. Where the user set neither, the path is ()
    and the location is the object in its rendered template.
    """
    layer = tuple(_SUBCHARTS.findall(engine.manifest.template))
    paths = [path for path in values.origins if path[-2:-1] == (field,) and path[-1] in keys]
    own = [path for path in paths if path[: len(layer)] == layer and path[:2] != _SHARED]
    own.sort(key=lambda path: engine.component not in path)
    for path in (*own, *(path for path in paths if path[:-2] == _SHARED)):
        return path, values.origins[path]
    return (), Location(engine.manifest.template, engine.manifest.line, 1)
