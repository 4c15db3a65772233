"""One YAML document read as Helm reads it, with the place of every key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Location, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

KeyPath = tuple["str | int", ...]
"""The keys and list indices that lead to a value."""

_MERGE = "tag:yaml.org,2002:merge"
_NULL = "tag:yaml.org,2002:null"
# YAML 1.1, and so Helm, takes these for a boolean when they stand as a key without quotes.
_BOOLEAN_KEYS = {"y": "true", "yes": "true", "on": "true", "n": "false", "no": "false", "off": "false"}


def parse(text: str, name: str) -> tuple[dict[str, Any], dict[KeyPath, Location]]:
    """The mapping that `text` holds, and the place of each of its keys and list items.

    `name` is the file as messages and places call it. An empty text is an empty mapping.
    UsageError, in one line with the position, for broken YAML, a second document, anything but a mapping,
    a key given twice in one mapping, and aliases that expand without end.
    """
    from helm_python.chart import values_from_yaml
    from helm_python.errors import HelmValuesError

    node = _compose(text, name)
    try:
        tree = values_from_yaml(text)
        return tree, dict(_places(node, (), name)) if node else {}
    except HelmValuesError as error:
        raise UsageError(f"{name}: {error.detail.split('yaml: ')[-1]}") from None
    except RecursionError:
        raise UsageError(f"{name}: nested too deeply") from None


def dotted(path: KeyPath) -> str:
    """A path as --set writes it: `base.ports[0].name`, dots inside a key escaped."""
    steps = (f"[{step}]" if isinstance(step, int) else "." + step.replace(".", "\\.") for step in path)
    return "".join(steps).removeprefix(".")


def _compose(text: str, name: str) -> Any:
    """The YAML nodes with their marks: nothing is built from tags and no alias is expanded."""
    import yaml

    loader = yaml.CSafeLoader(text)
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        second = (error.context or "").startswith("expected a single document")
        reason = "a second YAML document starts here; a values file holds one" if second else error.problem
        raise UsageError(f"{_place(error.problem_mark, name)}: {reason}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{name}: {' '.join(str(error).split())}") from None
    finally:
        loader.dispose()
    if node is None or node.tag == _NULL:
        return None
    if not isinstance(node, yaml.MappingNode):
        kind = "list" if isinstance(node, yaml.SequenceNode) else "single value"
        raise UsageError(f"{_place(node.start_mark, name)}: must be a mapping of keys, not a {kind}")
    return node


def _place(mark: Any, name: str) -> Location:
    return Location(name, mark.line + 1, mark.column + 1)


def _places(node: Any, path: KeyPath, name: str) -> Iterator[tuple[KeyPath, Location]]:
    """Walk mappings and lists; a mapping's own keys come after the ones merged into it."""
    if node.id == "sequence":
        for index, item in enumerate(node.value):
            yield (*path, index), _place(item.start_mark, name)
            yield from _places(item, (*path, index), name)
    elif node.id == "mapping":
        for _, value in filter(lambda pair: pair[0].tag == _MERGE, node.value):
            for merged in value.value if value.id == "sequence" else (value,):
                yield from _places(merged, path, name)
        for step, place, value in _entries(node, name):
            yield (*path, step), place
            yield from _places(value, (*path, step), name)


def _entries(mapping: Any, name: str) -> Iterator[tuple[str, Location, Any]]:
    """Key, place and value of a mapping's own entries; UsageError for a key given twice."""
    seen: dict[str, Location] = {}
    for key, value in mapping.value:
        if key.tag == _MERGE:
            continue
        step = str(key.value) if key.style else _BOOLEAN_KEYS.get(str(key.value).lower(), str(key.value))
        place = _place(key.start_mark, name)
        if step in seen:
            raise UsageError(f"{place}: key {step!r} is given twice, first on line {seen[step].line}")
        seen[step] = place
        yield step, place, value
