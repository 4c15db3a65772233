"""Which kinds a Kubernetes minor version serves, and the schema of each.

Built-in kinds: Kubernetes' own OpenAPI definitions, in the strict form (no unknown field) that the package
kubernetes-validate carries for each minor version. Custom resources: data/, made by vllm_phases.objects.crds.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import jsonschema_rs

from vllm_phases.finding import UsageError
from vllm_phases.objects import refinements
from vllm_phases.objects.refusals import RULES
from vllm_phases.objects.spelling import name_format

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.objects.refusals import Refusal, Refusals

DEFINITIONS = "https://kubernetes.io/api/_definitions.json"
OBJECT_META = f"{DEFINITIONS}#/$defs/{refinements.META}ObjectMeta"
POD_TEMPLATE = f"{DEFINITIONS}#/$defs/{refinements.CORE}PodTemplateSpec"

# A name, or the beginning of one that `kubectl create` completes.
_NAMED = {"if": {"required": ["generateName"]}, "else": {"required": ["name"]}}
_FOLDER = re.compile(r"v(\d+\.\d+)\.\d+-local-strict")
_MINOR = re.compile(r"v?(\d+\.\d+)(?!\d)")


class GroupVersionKind(NamedTuple):
    """The name of a kind of object; group is "" for the core API."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """What stands in an object's apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


@dataclass(frozen=True)
class Api:
    """All that one Kubernetes minor version serves, together with the known custom resources.

    kinds maps each kind to the URL of its schema, which lies in one of the documents (by URL).
    """

    minor: str
    kinds: Mapping[GroupVersionKind, str]
    documents: Mapping[str, Any]
    registry: jsonschema_rs.Registry

    def schema_around(self, keyword: str | None) -> Mapping[str, Any]:
        """The schema in which a keyword stands, by the keyword's location (URL#/pointer); {} for None."""
        url, _, pointer = (keyword or "").partition("#")
        node = self.documents.get(url, {})
        for part in pointer.split("/")[1:-1]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            node = node[int(key)] if isinstance(node, list) else node[key]
        return node  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Validators:
    """For one kind: shape is its schema, and rules holds the rules for an object of that shape."""

    shape: jsonschema_rs.Validator
    rules: jsonschema_rs.Validator


def minor_version(kube_version: str) -> str:
    """The minor version, "1.34", of "v1.34.2" or "1.34.2-eks.1"; UsageError where it has no schemas."""
    match = _MINOR.match(kube_version)
    if match and match[1] in _folders():
        return match[1]
    first, *_, last = _folders()
    raise UsageError(f'Kubernetes version "{kube_version}": object schemas are there for {first} to {last}')


def minors_with(kind: GroupVersionKind) -> tuple[str, ...]:
    """The Kubernetes minor versions, in order, that serve a built-in kind."""
    return tuple(minor for minor in _folders() if _mentions(minor, kind.kind) and kind in _built_in(minor))


def is_built_in(minor: str, group: str) -> bool:
    """Whether a group of kinds is one of Kubernetes' own in a minor version."""
    return any(kind.group == group for kind in _built_in(minor))


@lru_cache(maxsize=2)
def api(minor: str) -> Api:
    """The schemas of a Kubernetes minor version."""
    definitions = _definitions(minor)
    refinements.attach(definitions["$defs"])
    custom = _custom_resources()
    kinds = {kind: url for url, document in custom.items() for kind in _kinds(document)}
    documents = {DEFINITIONS: definitions, **custom}
    registry = jsonschema_rs.Registry(list(documents.items()))
    return Api(minor, {**kinds, **_built_in(minor)}, documents, registry)


@lru_cache(maxsize=1024)
def validators(minor: str, kind: GroupVersionKind) -> Validators | None:
    """The validators of a kind, None where there is no schema for it. Those of a Secret quote no value."""
    url = api(minor).kinds.get(kind)
    if url is None:
        return None
    name = {"type": "string", "x-name": name_format(kind.kind, minor)}
    metadata = {"type": "object", "properties": {"name": name}, **_NAMED}
    schema = {"$ref": url, "required": ["metadata"], "properties": {"metadata": metadata}}
    compiled = partial(
        jsonschema_rs.Draft202012Validator,
        schema,
        registry=api(minor).registry,
        mask="the value" if kind.kind == "Secret" else None,
        validate_formats=True,
    )
    keywords = {keyword: _keyword(function) for keyword, (_, function) in RULES.items()}
    return Validators(compiled(), compiled(keywords=keywords))


def _keyword(rule: Refusals) -> type[jsonschema_rs.KeywordValidator]:
    """A rule as jsonschema-rs takes it: a class whose objects stand for one keyword in one schema."""

    class Keyword:
        def __init__(self, schema: object, value: object, path: object) -> None:
            self.value = value

        def iter_errors(self, instance: object) -> Iterator[Refusal]:
            return rule(instance, self.value)

        def validate(self, instance: object) -> None:
            for refusal in self.iter_errors(instance):
                raise refusal

    return Keyword


@cache
def _folders() -> Mapping[str, Path]:
    """Minor version to the folder of its schemas, in order.

    importlib.resources would import the package, and with it 0.1 s of what only its own validator needs.
    """
    package = find_spec("kubernetes_validate")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("kubernetes_validate")
    folders = (Path(package.origin).parent / "kubernetes-json-schema").iterdir()
    found = {match[1]: folder for folder in folders if (match := _FOLDER.fullmatch(folder.name))}
    return dict(sorted(found.items(), key=lambda item: int(item[0].partition(".")[2])))


@lru_cache(maxsize=1)
def _definitions(minor: str) -> dict[str, Any]:
    return json.loads(_definitions_file(minor).read_bytes())  # type: ignore[no-any-return]


def _definitions_file(minor: str) -> Path:
    return _folders()[minor] / "_definitions.json"


def _mentions(minor: str, kind: str) -> bool:
    """Whether a minor version may have a kind of that name, without the time that parsing takes."""
    return f'"{kind}"'.encode() in _definitions_file(minor).read_bytes()


@cache
def _built_in(minor: str) -> Mapping[GroupVersionKind, str]:
    """The built-in kinds of a minor version and where their schemas are."""
    definitions = _definitions(minor)["$defs"]
    return {
        kind: f"{DEFINITIONS}#/$defs/{name}"
        for name, schema in definitions.items()
        for kind in _kinds(schema)
    }


@cache
def _custom_resources() -> Mapping[str, Any]:
    """The schemas of custom resources by their $id."""
    files = sorted((Path(__file__).parent / "data").glob("*/*.json"))
    return {schema["$id"]: schema for schema in (json.loads(file.read_bytes()) for file in files)}


def _kinds(schema: Mapping[str, Any]) -> Iterator[GroupVersionKind]:
    for kind in schema.get("x-kubernetes-group-version-kind", ()):
        yield GroupVersionKind(kind["group"], kind["version"], kind["kind"])
