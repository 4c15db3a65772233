"""values.schema.json: one file that holds all it needs, closed, and accepted by Helm itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import helm_python
import jsonschema_rs
import pytest
from vllm_phases.schema import generation

if TYPE_CHECKING:
    from .conftest import Schemas

ROLE = """\
    title: role
    description: A role.
    type: object
    properties:
      replicas: {description: Number of pods., type: integer, minimum: 0, default: 1}
      memory:
        description: Memory.
        $ref: kubernetes.yaml#/definitions/quantity
        default: 4Gi
        examples: [8Gi]
    allOf:
      - if: {properties: {replicas: {const: 0}}, required: [replicas]}
        then: {properties: {memory: {const: ''}}}
    """
KUBERNETES = """\
    definitions:
      quantity: {description: A quantity., type: string, pattern: '^([0-9]+Gi)?$'}
      unused: {description: A shape., type: string}
    """


@pytest.fixture
def role(schemas: Schemas) -> Schemas:
    """A chart that includes a block and adds a key of its own."""
    schemas.write("role.yaml", ROLE)
    schemas.write("kubernetes.yaml", KUBERNETES)
    schemas.chart(
        "own: {description: A key., type: string, default: '', x-unit: bytes}",
        **{"x-include": ["../role.yaml"]},
    )
    return schemas


def test_an_included_block_is_taken_over_by_reference(role: Schemas) -> None:
    root = role.bundle()
    assert root["properties"] == {
        "own": {"description": "A key.", "type": "string", "default": ""},
        "replicas": {"$ref": "#/definitions/role/properties/replicas"},
        "memory": {"$ref": "#/definitions/role/properties/memory"},
    }
    assert root["allOf"] == [{"$ref": "#/definitions/role/allOf/0"}]


def test_what_is_referred_to_stands_once_in_the_definitions(role: Schemas) -> None:
    definitions = role.bundle()["definitions"]
    assert list(definitions) == ["kubernetes.quantity", "role"]
    assert definitions["role"]["properties"]["memory"] == {
        "description": "Memory.",
        "$ref": "#/definitions/kubernetes.quantity",
        "default": "4Gi",
    }


def test_own_keys_win_over_included_ones(role: Schemas) -> None:
    role.chart("replicas: {description: Mine., type: integer, default: 2}", **{"x-include": ["../role.yaml"]})
    assert role.bundle()["properties"]["replicas"] == {
        "description": "Mine.",
        "type": "integer",
        "default": 2,
    }


def test_what_an_included_block_includes_is_taken_over_from_where_it_is_written(role: Schemas) -> None:
    role.write(
        "decode.yaml",
        """\
        description: A decode role.
        type: object
        x-include: [role.yaml]
        properties:
          pool: {description: The pool., type: string, default: ''}
        required: [pool]
        """,
    )
    role.chart("own: {description: A key., type: string, default: ''}", **{"x-include": ["../decode.yaml"]})
    root = role.bundle()
    assert root["properties"]["pool"] == {"$ref": "#/definitions/decode/properties/pool"}
    assert root["properties"]["replicas"] == {"$ref": "#/definitions/role/properties/replicas"}
    assert root["required"] == ["pool"]


def test_objects_are_closed_but_conditions_are_not(role: Schemas) -> None:
    root = role.bundle()
    assert root["additionalProperties"] is False
    assert root["definitions"]["role"]["additionalProperties"] is False
    assert root["definitions"]["role"]["allOf"] == [
        {
            "if": {"properties": {"replicas": {"const": 0}}, "required": ["replicas"]},
            "then": {"properties": {"memory": {"const": ""}}},
        }
    ]


def test_a_kubernetes_type_brings_all_it_refers_to_closed_and_without_prose(schemas: Schemas) -> None:
    schemas.chart(
        "key: {description: Rules., $ref: k8s:io.k8s.api.networking.v1.NetworkPolicyPort, default: {}}"
    )
    assert schemas.bundle()["definitions"] == {
        "intstr.IntOrString": {"type": ["string", "null", "integer"]},
        "networking.v1.NetworkPolicyPort": {
            "properties": {
                "endPort": {"type": ["integer", "null"]},
                "port": {"$ref": "#/definitions/intstr.IntOrString"},
                "protocol": {"type": ["string", "null"]},
            },
            "type": ["object", "null"],
            "additionalProperties": False,
        },
    }


def test_the_same_sources_give_the_same_bytes(role: Schemas) -> None:
    def texts() -> dict[Path, str]:
        return generation.texts(generation.load(role.folder), Path("charts"), Path("values.md"))

    assert texts() == texts()
    assert all(text.endswith("\n") and not text.endswith("\n\n") for text in texts().values())


def test_the_bundle_is_draft_07_by_its_meta_schema(role: Schemas) -> None:
    root = role.bundle()
    assert root["$schema"] == "http://json-schema.org/draft-07/schema#"
    jsonschema_rs.meta.validate(root)


def helm_errors(schemas: Schemas, values: dict[str, Any]) -> str:
    """What Helm says of values for a chart that holds the generated files; empty if it accepts them."""
    texts = generation.texts(generation.load(schemas.folder), Path("charts"), Path("values.md"))
    generation.write(texts)
    Path("charts/demo/Chart.yaml").write_text("apiVersion: v2\nname: demo\nversion: 0.1.0\n")
    with helm_python.Chart.load("charts/demo") as chart:
        try:
            chart.validate_schema(values)
        except helm_python.HelmValuesError as error:
            return str(error)
    return ""


def test_helm_accepts_the_schema_and_the_generated_defaults(role: Schemas) -> None:
    assert helm_errors(role, {}) == ""
    assert helm_errors(role, {"replicas": 3, "memory": "16Gi"}) == ""


def test_helm_refuses_an_unknown_key(role: Schemas) -> None:
    assert "additional properties 'replicsa' not allowed" in helm_errors(role, {"replicsa": 3})


def test_helm_refuses_what_an_included_key_does_not_allow(role: Schemas) -> None:
    assert "at '/replicas': minimum: got -1, want 0" in helm_errors(role, {"replicas": -1})
    assert "at '/memory'" in helm_errors(role, {"memory": "lots"})


def test_helm_applies_the_conditions_of_an_included_block(role: Schemas) -> None:
    assert "at '/memory'" in helm_errors(role, {"replicas": 0})
    assert helm_errors(role, {"replicas": 0, "memory": ""}) == ""


def test_helm_refuses_an_unknown_field_of_a_kubernetes_type(schemas: Schemas) -> None:
    schemas.chart("""\
        tolerations:
          description: Tolerations.
          type: array
          items: {$ref: k8s:io.k8s.api.core.v1.Toleration}
          default: []
    """)
    assert helm_errors(schemas, {"tolerations": [{"key": "gpu", "operator": "Exists"}]}) == ""
    assert "additional properties 'operater' not allowed" in helm_errors(
        schemas, {"tolerations": [{"operater": "Exists"}]}
    )


def test_the_schema_keeps_the_order_of_the_sources(role: Schemas) -> None:
    first = ["$schema", "$comment", "title", "description", "type"]
    assert list(role.bundle()) == [*first, "properties", "allOf", "additionalProperties", "definitions"]
