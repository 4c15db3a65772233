"""What becomes of a CRD's schema, and that the schemas of this repository are what their CRDs say."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from vllm_phases.objects import crds, published

from tests.cluster.definitions import UNPINNED

ROOT = Path(__file__).parents[2]
DATA = Path(published.__file__).parent / "data"
KINDS = [
    published.GroupVersionKind(**kind)
    for file in sorted(DATA.glob("*/*.json"))
    for kind in json.loads(file.read_text())["x-kubernetes-group-version-kind"]
]

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boats.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Boat", "plural": "boats"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "schema": {
                    "openAPIV3Schema": {
                        "description": "A boat.",
                        "type": "object",
                        "properties": {
                            "apiVersion": {"type": "string"},
                            "kind": {"type": "string"},
                            "metadata": {"type": "object"},
                            "spec": {"type": "object", "properties": {"sails": {"type": "integer"}}},
                            "status": {"type": "object", "properties": {"afloat": {"type": "boolean"}}},
                        },
                    }
                },
            },
            {"name": "v1alpha1", "served": False, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}


def run(out: Path, *files: Path) -> Result:
    return CliRunner().invoke(crds.main, [str(out), *map(str, files)])


def test_each_served_version_becomes_a_file(tmp_path: Path) -> None:
    source = tmp_path / "boats.yaml"
    source.write_text(yaml.safe_dump_all([{"kind": "Namespace"}, CRD]))
    assert run(tmp_path, source).exit_code == 0
    (made,) = (tmp_path / "example.com").iterdir()
    assert made.name == "boat_v1.json"
    assert json.loads(made.read_text()) == {
        "$comment": "made from boats.yaml",
        "$id": "https://example.com/v1/Boat",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Boat"}],
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": published.OBJECT_META},
            "spec": {
                "type": "object",
                "properties": {"sails": {"type": "integer"}},
                "additionalProperties": False,
            },
            "status": True,
        },
        "additionalProperties": False,
    }


def test_every_object_has_an_api_version_and_a_kind(tmp_path: Path) -> None:
    """Though not every project names them in its CRDs."""
    source = tmp_path / "boats.yaml"
    described = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]  # type: ignore[index]
    bare = {key: value for key, value in described["properties"].items() if key not in ("apiVersion", "kind")}
    text = json.dumps(CRD).replace(json.dumps(described["properties"]), json.dumps(bare))
    source.write_text(text)
    assert run(tmp_path, source).exit_code == 0
    made = json.loads((tmp_path / "example.com" / "boat_v1.json").read_text())
    assert made["properties"]["apiVersion"] == made["properties"]["kind"] == {"type": "string"}


def test_kinds_that_are_not_wanted_are_left_out(tmp_path: Path) -> None:
    source = tmp_path / "boats.yaml"
    source.write_text(yaml.safe_dump(CRD))
    assert CliRunner().invoke(crds.main, [str(tmp_path), str(source), "--only", "Ship"]).exit_code == 0
    assert not (tmp_path / "example.com").exists()
    assert CliRunner().invoke(crds.main, [str(tmp_path), str(source), "--only", "Boat"]).exit_code == 0
    assert (tmp_path / "example.com").exists()


def test_a_file_of_a_go_module_is_named_by_module_version_and_path(tmp_path: Path) -> None:
    source = tmp_path / "go" / "pkg" / "mod" / "example.com" / "boats@v1.2.3" / "crd.yaml"
    source.parent.mkdir(parents=True)
    source.write_text(yaml.safe_dump(CRD))
    run(tmp_path, source)
    made = json.loads((tmp_path / "example.com" / "boat_v1.json").read_text())
    assert made["$comment"] == "made from example.com/boats@v1.2.3/crd.yaml"


@pytest.mark.parametrize(
    ("openapi", "schema"),
    [
        ({"type": "string", "description": "Prose.", "example": "x", "title": "T"}, {"type": "string"}),
        (
            {"type": "string", "maxLength": 5, "pattern": "^a"},
            {"type": "string", "maxLength": 5, "pattern": "^a"},
        ),
        ({"type": "integer", "format": "int32", "minimum": 0}, {"type": "integer", "minimum": 0}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "string", "format": "duration"}, {"type": "string"}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "default": "a", "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        ({"type": "object"}, {"type": "object", "additionalProperties": False}),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {"type": "object"}),
        ({"x-kubernetes-preserve-unknown-fields": True}, {}),
        ({"type": "object", "additionalProperties": True}, {"type": "object"}),
        (
            {"type": "object", "additionalProperties": {"type": "string", "description": "Prose."}},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ),
        (
            {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic"},
            {"type": "array", "items": {"type": "object", "additionalProperties": False}},
        ),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        ),
        (
            {
                "x-kubernetes-int-or-string": True,
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "pattern": "^1",
            },
            {"type": ["integer", "string"], "pattern": "^1"},
        ),
        (
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "properties": {"spec": {"type": "string"}},
            },
            {
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"$ref": published.OBJECT_META},
                    "spec": {"type": "string"},
                },
                "additionalProperties": False,
            },
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "oneOf": [{"required": ["a"]}, {"not": {"properties": {"a": {"enum": ["x"]}}}}],
                "x-kubernetes-validations": [{"rule": "self.a != 'y'"}],
            },
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "oneOf": [{"required": ["a"]}, {"not": {"properties": {"a": {"enum": ["x"]}}}}],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_a_node_keeps_what_an_api_server_enforces(openapi: dict[str, Any], schema: dict[str, Any]) -> None:
    assert crds.convert(openapi) == schema


def test_a_pod_template_that_is_left_open_is_kubernetes_own() -> None:
    left_open = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {"workerTemplate": left_open, "other": left_open}
    assert crds.convert({"type": "object", "properties": properties})["properties"] == {
        "workerTemplate": {"$ref": published.POD_TEMPLATE},
        "other": {"type": "object"},
    }


def test_a_keyword_that_is_not_understood_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "boats.yaml"
    source.write_text(yaml.safe_dump(CRD).replace("description: A boat.", "exclusiveMinimum: true"))
    result = run(tmp_path / "out", source)
    assert result.exit_code == 2
    assert result.stderr.endswith(
        "Error: the keyword 'exclusiveMinimum' of a CRD's schema is not understood\n"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "message"), [("kind: Namespace", "holds no CustomResourceDefinition"), ("a: [", "not YAML: ")]
)
def test_a_file_without_a_crd_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    source = tmp_path / "x.yaml"
    source.write_text(text)
    result = run(tmp_path / "out", source)
    assert result.exit_code == 2
    assert f"Error: {source}: {message}" in result.stderr


def test_the_custom_resources_of_the_charts_have_schemas() -> None:
    assert {str(kind) for kind in KINDS} == {
        "gateway.networking.k8s.io/v1 BackendTLSPolicy",
        "gateway.networking.k8s.io/v1 GRPCRoute",
        "gateway.networking.k8s.io/v1 Gateway",
        "gateway.networking.k8s.io/v1 HTTPRoute",
        "gateway.networking.k8s.io/v1beta1 Gateway",
        "gateway.networking.k8s.io/v1beta1 HTTPRoute",
        "inference.networking.k8s.io/v1 InferencePool",
        "inference.networking.x-k8s.io/v1alpha2 InferenceModelRewrite",
        "inference.networking.x-k8s.io/v1alpha2 InferenceObjective",
        "llm-d.ai/v1alpha2 InferenceModelRewrite",
        "llm-d.ai/v1alpha2 InferenceObjective",
        "keda.sh/v1alpha1 ScaledObject",
        "keda.sh/v1alpha1 TriggerAuthentication",
        "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet",
        "monitoring.coreos.com/v1 PodMonitor",
        "monitoring.coreos.com/v1 ServiceMonitor",
        "networking.istio.io/v1 DestinationRule",
        "networking.istio.io/v1alpha3 DestinationRule",
        "networking.istio.io/v1alpha3 EnvoyFilter",
        "networking.istio.io/v1beta1 DestinationRule",
    }


@pytest.mark.parametrize("minor", range(25, 38))
def test_every_schema_goes_with_every_kubernetes_version(minor: int) -> None:
    assert [kind for kind in KINDS if published.validators(f"1.{minor}", kind) is None] == []


@pytest.mark.cluster
def test_the_schemas_are_what_the_pinned_crds_say(tmp_path: Path) -> None:
    made = subprocess.run(
        ["make", "--file=tests/objects/crds.mk", "crds", f"CRD_SCHEMAS={tmp_path}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    pinned = {name: text for name, text in contents(DATA).items() if not name.startswith(UNPINNED)}
    assert contents(tmp_path) == pinned, "run `make crds`"


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.glob("*/*.json")}
