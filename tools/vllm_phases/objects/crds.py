"""Makes the schemas of custom resources (data/) from the CRDs of the projects that define them.

    python -m vllm_phases.objects.crds OUT FILE... [--only KIND]...

writes OUT/<group>/<kind>_<version>.json, in JSON Schema 2020-12, for each version that a CRD serves. What is
kept is what an API server holds an object to: types, limits, enums, patterns, the keys of list entries, and
that a field it does not know is pruned. A pod template that a CRD leaves open is Kubernetes' own. Left out
are the prose, the defaults, the status, which is not the user's to write, and the CEL rules
(x-kubernetes-validations), which only an API server can evaluate.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from vllm_phases.objects.published import OBJECT_META, POD_TEMPLATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Schema = dict[str, Any]

_LIMITS = {
    "enum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
}
_LIMITS |= {"minimum", "multipleOf", "pattern", "required", "uniqueItems", "x-kubernetes-list-map-keys"}
_TURNED = {"additionalProperties", "allOf", "anyOf", "default", "format", "items", "not", "nullable", "oneOf"}
_TURNED |= {"properties", "type", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"}
_TURNED |= {"x-kubernetes-list-type", "x-kubernetes-preserve-unknown-fields"}
_LEFT_OUT = {
    "description",
    "example",
    "externalDocs",
    "title",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
}
_POD_TEMPLATES = {"leaderTemplate", "workerTemplate"}
# The formats that mean the same to an API server and in JSON Schema; "duration", for one, does not.
_FORMATS = {"date-time", "ipv4", "ipv6"}


@click.command()
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--only", multiple=True, metavar="KIND", help="Leave out all other kinds.")
def main(out: Path, files: tuple[Path, ...], only: tuple[str, ...]) -> None:
    """Write to OUT the schema of every custom resource that the CRDs in FILES serve."""
    for file in files:
        for crd in _definitions(file):
            if only and crd["spec"]["names"]["kind"] not in only:
                continue
            for name, schema in schemas(crd, _source(file)).items():
                target = out / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(json.dumps(schema, sort_keys=True, separators=(",", ":")) + "\n")


def _definitions(file: Path) -> Sequence[Mapping[str, Any]]:
    """The CRDs in a YAML file; click.UsageError where it is not YAML or has none."""
    try:
        documents = list(yaml.load_all(file.read_text(), yaml.CSafeLoader))
    except yaml.YAMLError as error:
        raise click.UsageError(f"{file}: not YAML: {str(error).splitlines()[0]}") from None
    found = [
        document
        for document in documents
        if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition"
    ]
    if not found:
        raise click.UsageError(f"{file}: holds no CustomResourceDefinition")
    return found


def _source(file: Path) -> str:
    """Where a file comes from: module@version/path for one in Go's module cache, else its name."""
    return file.as_posix().rpartition("/pkg/mod/")[2] if "/pkg/mod/" in file.as_posix() else file.name


def schemas(crd: Mapping[str, Any], source: str) -> dict[str, Schema]:
    """The schema of each served version of a CRD, by the path of its file; source is noted in each."""
    spec = crd["spec"]
    group, kind = spec["group"], spec["names"]["kind"]
    return {
        f"{group}/{kind.lower()}_{version['name']}.json": {
            "$comment": f"made from {source}",
            "$id": f"https://{group}/{version['name']}/{kind}",
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "x-kubernetes-group-version-kind": [{"group": group, "version": version["name"], "kind": kind}],
            **_root(version["schema"]["openAPIV3Schema"]),
        }
        for version in spec["versions"]
        if version["served"]
    }


def _root(schema: Mapping[str, Any]) -> Schema:
    """The whole object: its metadata is every object's, and its status is anything.

    apiVersion and kind belong to every object, whether the CRD names them or not.
    """
    result = convert(schema)
    for always in ("apiVersion", "kind"):
        result["properties"].setdefault(always, {"type": "string"})
    result["properties"]["metadata"] = {"$ref": OBJECT_META}
    if "status" in result["properties"]:
        result["properties"]["status"] = True
    return result


def convert(schema: Mapping[str, Any], structural: bool = True) -> Schema:
    """JSON Schema for one node of an openAPIV3Schema; click.UsageError for a keyword of neither.

    A node below allOf, anyOf, oneOf or not is not structural: it only limits values that are described
    elsewhere, and so does not close an object.
    """
    if unknown := sorted(set(schema) - _LIMITS - _TURNED - _LEFT_OUT):
        raise click.UsageError(f"the keyword {unknown[0]!r} of a CRD's schema is not understood")
    result = {keyword: value for keyword, value in schema.items() if keyword in _LIMITS}
    result |= _value(schema)
    if "properties" in schema or schema.get("x-kubernetes-embedded-resource"):
        result["properties"] = dict(_properties(schema, structural))
    if "items" in schema:
        result["items"] = convert(schema["items"], structural)
    if "not" in schema:
        result["not"] = convert(schema["not"], structural=False)
    for junctor in {"allOf", "anyOf", "oneOf"} & set(schema):
        if not schema.get("x-kubernetes-int-or-string"):
            result[junctor] = [convert(part, structural=False) for part in schema[junctor]]
    if structural and (additional := _additional(schema)) is not True:
        result["additionalProperties"] = additional
    return result


def _value(schema: Mapping[str, Any]) -> Schema:
    """The type, enum, format and uniqueness of a value; null passes where it is allowed or defaulted away."""
    result: Schema = {}
    types = ["integer", "string"] if schema.get("x-kubernetes-int-or-string") else [schema.get("type")]
    if types != [None]:
        if schema.get("nullable") or "default" in schema:
            types.append("null")
            if "enum" in schema:
                result["enum"] = [*schema["enum"], None]
        result["type"] = types if len(types) > 1 else types[0]
    if schema.get("format") in _FORMATS:
        result["format"] = schema["format"]
    if schema.get("x-kubernetes-list-type") == "set":
        result["uniqueItems"] = True
    return result


def _properties(schema: Mapping[str, Any], structural: bool) -> Iterator[tuple[str, Schema]]:
    for name, child in schema.get("properties", {}).items():
        template = name in _POD_TEMPLATES and child.get("x-kubernetes-preserve-unknown-fields")
        yield name, {"$ref": POD_TEMPLATE} if template else convert(child, structural)
    if schema.get("x-kubernetes-embedded-resource"):
        yield from {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}.items()
        yield "metadata", {"$ref": OBJECT_META}


def _additional(schema: Mapping[str, Any]) -> Schema | bool:
    """What an object may hold beside its properties: the API server prunes what is neither named nor kept."""
    additional = schema.get("additionalProperties", schema.get("type") != "object")
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return True
    return convert(additional) if isinstance(additional, dict) else bool(additional)


if __name__ == "__main__":
    main()
