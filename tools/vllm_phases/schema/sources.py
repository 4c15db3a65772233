"""The YAML sources of every value: reading them, and following their references.

`schemas/charts/<chart>.yaml` is the root of one chart's values; the other files are blocks that roots and
blocks refer to. References are relative to the file that holds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

from vllm_phases.finding import UsageError
from vllm_phases.schema import kubernetes
from vllm_phases.yaml_document import KeyPath, parse

KUBERNETES = "k8s:"

# Where Draft-07 keeps a schema inside a schema.
SCHEMA_MAPS = frozenset({"properties", "definitions"})
SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf"})
SCHEMAS = frozenset(
    {"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"}
)


class BrokenReferenceError(Exception):
    """A reference that leads nowhere; the message says what is wrong with it."""


@dataclass(frozen=True)
class Place:
    """One schema and where it is written: the file below the schemas folder, and the path inside it."""

    file: str
    pointer: tuple[str, ...]
    schema: Mapping[str, Any]

    @property
    def address(self) -> tuple[str, tuple[str, ...]]:
        """What tells this place from every other."""
        return self.file, self.pointer

    def child(self, *keys: str) -> Place:
        """Step down through keywords and names that exist."""
        schema: Any = self.schema
        for key in keys:
            schema = schema[int(key)] if isinstance(schema, list) else schema[key]
        return Place(self.file, self.pointer + keys, schema)

    def children(self) -> Iterator[tuple[str, Place]]:
        """Every schema directly inside this one, with the keyword that holds it."""
        if not isinstance(self.schema, Mapping):
            return  # Draft-07 also knows true and false
        for keyword, value in self.schema.items():
            if keyword in SCHEMA_MAPS | SCHEMA_LISTS:
                names = map(str, value if isinstance(value, Mapping) else range(len(value)))
                yield from ((keyword, self.child(keyword, name)) for name in names)
            elif keyword in SCHEMAS and isinstance(value, Mapping):
                yield keyword, self.child(keyword)


@dataclass(frozen=True)
class Document:
    """One source file: what it says, and the line of every path in it."""

    schema: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int]


@dataclass(frozen=True)
class Sources:
    """All source files below one folder, by their path relative to it."""

    folder: Path
    documents: Mapping[str, Document]

    @property
    def charts(self) -> tuple[str, ...]:
        """Names of the charts that have a root file, sorted."""
        return tuple(PurePosixPath(file).stem for file in self.documents if file.startswith("charts/"))

    def chart(self, name: str) -> Place:
        """The root of one chart's values."""
        return self.file(f"charts/{name}.yaml")

    def file(self, name: str) -> Place:
        """The top of one source file."""
        return Place(name, (), self.documents[name].schema)

    def places(self) -> Iterator[Place]:
        """Every schema of every file in the order of writing, conditions included."""
        waiting = [self.file(name) for name in reversed(list(self.documents))]
        while waiting:
            place = waiting.pop()
            yield place
            waiting += reversed([child for _, child in place.children()])

    def where(self, place: Place) -> str:
        """Name a place for a message: file and line, then the path inside the file."""
        line = self.documents[place.file].lines.get(place.pointer, 1)
        path = "".join(f".{key}" if key.replace("-", "").isalnum() else f"[{key!r}]" for key in place.pointer)
        return f"{(self.folder / place.file).as_posix()}:{line}: ${path}"

    def target(self, reference: str, file: str) -> Place:
        """Find what a reference written in `file` refers to.

        Raises BrokenReferenceError when there is no such file, place or Kubernetes type.
        """
        if reference.startswith(KUBERNETES):
            return _kubernetes(reference)
        name, _, fragment = reference.partition("#")
        document = normpath(PurePosixPath(file).parent / name) if name else file
        if document not in self.documents:
            raise BrokenReferenceError(f"no file {document} in {self.folder.as_posix()}")
        keys = [key.replace("~1", "/").replace("~0", "~") for key in fragment.split("/")[1:]]
        try:
            return self.file(document).child(*keys)
        except (KeyError, IndexError, ValueError, TypeError):
            raise BrokenReferenceError(f"{document} has nothing at #{fragment}") from None

    def effective(self, place: Place) -> Place:
        """Follow `$ref`; documentation that stands beside it wins over that of its target."""
        seen = set()
        beside: dict[str, Any] = {}
        while "$ref" in place.schema:
            if place.address in seen:
                raise BrokenReferenceError(f"$ref {place.schema['$ref']} leads back to itself")
            seen.add(place.address)
            beside = {**{k: v for k, v in place.schema.items() if k != "$ref"}, **beside}
            place = self.target(place.schema["$ref"], place.file)
        return Place(place.file, place.pointer, {**place.schema, **beside})

    def includes(self, place: Place, above: frozenset[Any] = frozenset()) -> Iterator[Place]:
        """The objects whose properties an object takes over (`x-include`), nearest first, all levels."""
        above |= {place.address}
        for included in self.included(place):
            if included.address in above:
                raise BrokenReferenceError(f"x-include of {included.file} leads back to itself")
            yield included
            yield from self.includes(included, above)

    def included(self, place: Place) -> tuple[Place, ...]:
        """The objects that an object includes itself."""
        names = place.schema.get("x-include", ())
        return tuple(self.effective(self.target(name, place.file)) for name in names)

    def properties(self, place: Place) -> dict[str, Place]:
        """The properties of an object: its own, then those it includes and does not have itself."""
        found: dict[str, Place] = {}
        for holder in (place, *self.includes(place)):
            for name in holder.schema.get("properties", {}):
                found.setdefault(name, holder.child("properties", name))
        return found


def read(folder: Path) -> Sources:
    """Read every `*.yaml` of the schemas folder.

    They are read as Helm reads values, so that a default means the same everywhere. Raises UsageError when
    the folder has no chart, a file is not one YAML mapping, or two files share a stem.
    """
    files = sorted(folder.glob("*.yaml")) + sorted((folder / "charts").glob("*.yaml"))
    documents = {file.relative_to(folder).as_posix(): _document(file) for file in files}
    if not any(name.startswith("charts/") for name in documents):
        raise UsageError(f"{folder.as_posix()}: no charts/*.yaml here; add the root of one chart's values")
    stems: dict[str, str] = {}
    for name in documents:
        other = stems.setdefault(PurePosixPath(name).stem, name)
        if other != name:
            raise UsageError(f"{folder.as_posix()}: {other} and {name} share a name; rename one")
    return Sources(folder, documents)


def _document(file: Path) -> Document:
    try:
        tree, lines = parse(file.read_text(encoding="utf-8"), file.as_posix())
    except OSError as error:
        raise UsageError(f"{file.as_posix()}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file.as_posix()}: not UTF-8 text") from None
    return Document(
        _in_order(tree, lines), {tuple(map(str, path)): place.line for path, place in lines.items()}
    )


def _in_order(tree: Any, paths: Iterable[KeyPath]) -> Any:
    """Helm's reader forgets the order of keys; put them back as they are written."""
    ordered: dict[KeyPath, Any] = {(): {}}
    for path in paths:
        value = reduce(getitem, path, tree)
        ordered[path] = {} if isinstance(value, dict) else [] if isinstance(value, list) else value
        above = ordered[path[:-1]]
        if isinstance(above, list):
            above.append(ordered[path])
        else:
            above[path[-1]] = ordered[path]
    return ordered[()]


def _kubernetes(reference: str) -> Place:
    name = reference.removeprefix(KUBERNETES)
    if name not in kubernetes.definitions():
        raise BrokenReferenceError(f"Kubernetes has no definition {name}")
    return Place(KUBERNETES, (name,), {"x-kubernetes": name})
