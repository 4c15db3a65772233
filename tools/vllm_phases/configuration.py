"""A project's settings for `vllm-phases lint`: .vllm-phases.yaml, or [tool.vllm-phases] in pyproject.toml.

The nearest folder from here upwards that has one counts; options of the command line win, key by key.
"""

from __future__ import annotations

import difflib
import os
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.rules import Selection

YAML_NAME, TOML_NAME = ".vllm-phases.yaml", "pyproject.toml"
LEVELS = ("error", "warning", "note")


@dataclass(frozen=True)
class Configuration:
    """The keys of a configuration, with - for _ when written.

    vllm_version  of engines whose image tag does not tell it
    select, ignore  beginnings of rule ids
    fail_on       least severity that makes the exit code 1
    exclude       patterns of paths, relative to the configuration, that folders are searched without
    folder        where the configuration stands
    """

    vllm_version: str | None = None
    kube_version: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str = "error"
    exclude: tuple[str, ...] = ()
    folder: Path = Path()

    def excludes(self, file: Path) -> bool:
        """Whether a pattern fits a file, or a folder that it is in."""
        from fnmatch import fnmatch

        relative = os.path.relpath(file, self.folder).replace(os.sep, "/")
        return any(
            fnmatch(relative, pattern) or fnmatch(relative, f"{pattern.rstrip('/')}/*")
            for pattern in self.exclude
        )

    def selection(self) -> Selection:
        """The rules to run; UsageError for a beginning that fits none."""
        from vllm_phases.rules import Selection, known_ids
        from vllm_phases.rules.selection import validate

        validate(self.select, known_ids(), "select")
        validate(self.ignore, known_ids(), "ignore")
        return Selection(self.select, self.ignore)


_KEYS = {
    field.name.replace("_", "-"): field.name for field in fields(Configuration) if field.name != "folder"
}
_LISTS = ("select", "ignore", "exclude")
_EXAMPLES = {"vllm-version": "0.33.0", "kube-version": "1.34", "fail-on": "error"}


def load(start: Path) -> Configuration:
    """The configuration for a folder; the defaults where nothing is configured.

    UsageError for a file that cannot be read, an unknown key, a value of the wrong type, and two
    configurations in one folder.
    """
    for folder in (start, *start.parents):
        found = dict(_found(folder))
        if len(found) > 1:
            raise UsageError(f"{folder}: both {YAML_NAME} and {TOML_NAME} configure vllm-phases; keep one")
        for file, content in found.items():
            return _configuration(content, file, folder)
    return Configuration(folder=start)


def _found(folder: Path) -> Iterator[tuple[Path, Any]]:
    yaml_file, toml_file = folder / YAML_NAME, folder / TOML_NAME
    if yaml_file.is_file():
        yield yaml_file, _yaml(yaml_file)
    if toml_file.is_file() and "vllm-phases" in (tool := _toml(toml_file).get("tool", {})):
        yield toml_file, tool["vllm-phases"]


def _yaml(file: Path) -> Any:
    from vllm_phases.sources import yaml_reader

    try:
        trees, _ = yaml_reader.documents(file.read_text(encoding="utf-8-sig"))
    except yaml_reader.Unreadable as error:
        raise UsageError(f"{file}:{error.line + 1}:{error.column + 1}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from None
    return (trees or [{}])[0] or {}


def _toml(file: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        content: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from None
    return content


def _configuration(content: Any, file: Path, folder: Path) -> Configuration:
    if not isinstance(content, dict):
        raise UsageError(f"{file}: the configuration must be a mapping of keys")
    given = {}
    for key, value in content.items():
        if key not in _KEYS:
            near = difflib.get_close_matches(str(key), list(_KEYS), n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(_KEYS)}"
            raise UsageError(f"{file}: unknown key {key}{hint}")
        given[_KEYS[key]] = _value(key, value, file)
    return Configuration(**given, folder=folder)


def _value(key: str, value: Any, file: Path) -> Any:
    if key in _LISTS:
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            raise UsageError(f"{file}: {key} must be a list of texts")
        return tuple(listed)
    if key == "fail-on" and value not in LEVELS:
        raise UsageError(f"{file}: fail-on is {value!r}, but must be one of {', '.join(LEVELS)}")
    if not isinstance(value, str):
        raise UsageError(f'{file}: {key} must be a text in quotes, such as {key}: "{_EXAMPLES[key]}"')
    return value


def merged(configuration: Configuration, given: Mapping[str, Any]) -> Configuration:
    """The configuration with what the command line gives in its place."""
    from dataclasses import replace

    return replace(configuration, **{key: value for key, value in given.items() if value})
