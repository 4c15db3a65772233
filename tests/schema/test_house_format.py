"""What a source must say: each rule of schemas/README.md, and the words for a source that breaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Schemas

KEY = "schemas/charts/demo.yaml:5: $.properties.key"
HELM = "Helm refuses a schema with a pattern that RE2 lacks"
DESCRIBE = "add a description; start with what it is, end with a full stop"
UNIT = "add x-unit, such as seconds or MiB; only a plain count goes without"
OPEN = "the object is open; name its properties, type additionalProperties, or call it extra…"
EMPTY = "the object accepts only {}; name its properties, or type additionalProperties"


def test_a_good_source_is_accepted(schemas: Schemas) -> None:
    schemas.chart("key: {description: A key., type: string, default: ''}")
    assert schemas.bundle()["properties"]["key"] == {"description": "A key.", "type": "string", "default": ""}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("type: string, default: ''", DESCRIBE),
        ("description: A key, type: string, default: ''", "end the description with a full stop"),
        ("description: A key., default: ''", "add a type or a $ref"),
        ("description: A key., type: string", "add a default"),
        ("description: A wait., type: number, default: 1", UNIT),
        (
            "description: A flag., type: boolean, default: true, x-unit: bits",
            "x-unit is for numbers and quantities; remove it",
        ),
        (
            "description: Pods., type: integer, default: 1, x-unit: count",
            "a plain count has no x-unit; remove it",
        ),
        (
            "description: Pods., type: integer, default: 1, minimun: 0",
            "unknown keyword minimun; did you mean minimum?",
        ),
        ("description: Pods., type: integer, default: 1, x-owner: me", "unknown keyword x-owner"),
        ("description: Pods., type: integer, default: 1, x-hidden: 'yes'", "x-hidden must be true"),
        (
            "description: A key., type: object, x-include: ../role.yaml, default: {}",
            "x-include must be a list of files",
        ),
        ("description: A key., type: object, default: {}", EMPTY),
        ("description: A key., type: object, default: {}, additionalProperties: true", OPEN),
        (
            "description: A list., type: array, default: [], items: [{type: string}]",
            "items is not one schema; describe all items by one",
        ),
        (
            "description: A key., type: string, default: '', pattern: '^(?!a)'",
            f"pattern ^(?!a) looks around; {HELM}",
        ),
    ],
)
def test_a_key_says_all_that_its_readers_need(schemas: Schemas, key: str, message: str) -> None:
    schemas.chart(f"key: {{{key}}}")
    assert schemas.errors() == [f"{KEY}: {message}"]


def test_a_map_has_a_type(schemas: Schemas) -> None:
    schemas.chart("key: {description: A map., type: object, default: {}, additionalProperties: {}}")
    assert schemas.errors() == [f"{KEY}.additionalProperties: add a type or a $ref"]


def test_a_schema_says_something(schemas: Schemas) -> None:
    schemas.chart("key: true")
    assert schemas.errors() == [f"{KEY}: a bare true says nothing; write a schema"]


def test_a_description_is_short(schemas: Schemas) -> None:
    schemas.chart(f"key: {{description: {'A' * 400}., type: string, default: ''}}")
    assert schemas.errors() == [f"{KEY}: the description has 401 characters; say it in 400"]


def test_all_problems_are_told_at_once(schemas: Schemas) -> None:
    schemas.chart("""\
        first: {type: string, default: ''}
        second: {description: A key., type: string}
    """)
    assert schemas.errors() == [
        f"schemas/charts/demo.yaml:5: $.properties.first: {DESCRIBE}",
        "schemas/charts/demo.yaml:6: $.properties.second: add a default",
    ]


def test_a_number_whose_name_measures_something_needs_a_unit(schemas: Schemas) -> None:
    schemas.chart("waitSeconds: {description: A wait., type: integer, default: 1}")
    assert schemas.errors() == [f"schemas/charts/demo.yaml:5: $.properties.waitSeconds: {UNIT}"]


def test_places_that_are_named_extra_may_be_open(schemas: Schemas) -> None:
    schemas.chart(
        "extraPodSpec: {description: Anything., type: object, default: {}, additionalProperties: true}"
    )
    assert schemas.bundle()["properties"]["extraPodSpec"]["additionalProperties"] is True


def test_the_value_of_a_typed_map_may_be_free_json(schemas: Schemas) -> None:
    schemas.chart("""\
        args:
          description: Flags.
          type: object
          default: {}
          additionalProperties: {type: [string, object], additionalProperties: true}
    """)
    assert schemas.bundle()["properties"]["args"]["additionalProperties"]["additionalProperties"] is True


def test_the_items_of_a_list_need_descriptions_but_no_defaults(schemas: Schemas) -> None:
    schemas.chart("""\
        gateways:
          description: Gateways.
          type: array
          default: []
          items: {type: object, properties: {name: {type: string}}}
    """)
    assert schemas.errors() == [
        f"schemas/charts/demo.yaml:9: $.properties.gateways.items.properties.name: {DESCRIBE}"
    ]


def test_unions_are_written_as_conditions_on_a_discriminator(schemas: Schemas) -> None:
    schemas.chart("""\
        key:
          description: A key.
          type: object
          properties: {}
          oneOf: [{required: [a]}]
          not: {required: [b]}
          if: {required: [c]}
    """)
    assert schemas.errors()[:3] == [
        f"{KEY}: oneOf has unreadable errors; write an enum `type` and allOf with if/then",
        f"{KEY}: not has unreadable errors; write what is allowed, or use it inside an if",
        f"{KEY}: write if/then as an item of allOf, so that it can be included",
    ]


def test_not_is_readable_inside_an_if(schemas: Schemas) -> None:
    schemas.chart("""\
        key:
          description: A key.
          type: object
          properties: {name: {description: A name., type: string, default: ''}}
          allOf:
            - if: {not: {properties: {name: {const: ''}}}}
              then: {required: [name]}
    """)
    assert schemas.bundle()["properties"]["key"]["allOf"][0]["if"] == {
        "not": {"properties": {"name": {"const": ""}}}
    }


UNION = """\
    key:
      description: A source.
      type: object
      properties:
        type: {description: The kind., type: string, enum: [hf, pvc], default: hf}
        claim: {description: The claim., type: string, default: ''}
      allOf:
        - if: {properties: {IF}}
          then: {properties: {THEN}}
"""


@pytest.mark.parametrize(
    ("condition", "consequence", "message"),
    [
        (
            "{tpye: {const: pvc}}",
            "{claim: {minLength: 1}}",
            "if: the condition names tpye, which is no key here; did you mean type?",
        ),
        (
            "{type: {const: pvcc}}",
            "{claim: {minLength: 1}}",
            "if.properties.type: the condition waits for pvcc, which enum does not allow",
        ),
        (
            "{type: {const: pvc}}",
            "{volume: {minLength: 1}}",
            "then: the condition names volume, which is no key here",
        ),
    ],
)
def test_a_condition_looks_at_keys_and_values_that_exist(
    schemas: Schemas, condition: str, consequence: str, message: str
) -> None:
    schemas.chart(UNION.replace("{IF}", condition).replace("{THEN}", consequence))
    line = 13 if message.startswith("then") else 12
    assert schemas.errors() == [f"schemas/charts/demo.yaml:{line}: $.properties.key.allOf.0.{message}"]


def test_conditions_of_an_included_block_are_checked_too(schemas: Schemas) -> None:
    schemas.write(
        "role.yaml",
        """\
        description: A role.
        type: object
        properties:
          replicas: {description: Number of pods., type: integer, default: 1}
        allOf:
          - if: {properties: {replica: {const: 0}}}
            then: {required: [replicas]}
        """,
    )
    schemas.chart("own: {description: A key., type: string, default: ''}", **{"x-include": ["../role.yaml"]})
    assert schemas.errors() == [
        "schemas/role.yaml:6: $.allOf.0.if: the condition names replica, which is no key here;"
        " did you mean replicas?"
    ]


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("../role.yaml", "no file role.yaml in schemas"),
        ("demo.yaml#/definitions/size", "charts/demo.yaml has nothing at #/definitions/size"),
        ("k8s:io.k8s.api.core.v1.Afinity", "Kubernetes has no definition io.k8s.api.core.v1.Afinity"),
        ("'#/properties/key'", "$ref #/properties/key leads back to itself"),
    ],
)
def test_a_reference_leads_somewhere(schemas: Schemas, reference: str, message: str) -> None:
    schemas.chart(f"key: {{description: A key., $ref: {reference}}}")
    assert schemas.errors() == [f"{KEY}: {message}"]


def test_a_value_does_not_contain_itself(schemas: Schemas) -> None:
    schemas.chart("key: {description: A key., $ref: demo.yaml}")
    assert schemas.errors() == [
        "schemas/charts/demo.yaml:1: $: key contains itself: schemas/charts/demo.yaml:5: $.properties.key"
    ]


def test_a_block_does_not_include_itself(schemas: Schemas) -> None:
    schemas.chart("key: {description: A key., type: string, default: ''}", **{"x-include": ["demo.yaml"]})
    assert schemas.errors() == [
        "schemas/charts/demo.yaml:1: $: x-include of charts/demo.yaml leads back to itself"
    ]


def test_only_documentation_stands_beside_a_reference(schemas: Schemas) -> None:
    schemas.chart(
        "key: {description: A key., $ref: k8s:io.k8s.api.core.v1.Affinity, default: {}, minProperties: 1}"
    )
    assert schemas.errors() == [
        f"{KEY}: Draft-07 ignores minProperties beside $ref; write it into what is referred to"
    ]


def test_a_source_is_valid_draft_07(schemas: Schemas) -> None:
    schemas.chart("key: {description: A key., type: strnig, default: ''}")
    [error] = schemas.errors()
    assert error.startswith("schemas/charts/demo.yaml:5: $.properties.key.type: not Draft-07: ")


def test_a_subchart_has_sources_of_its_own(schemas: Schemas) -> None:
    schemas.chart("key: {description: A layer., type: object, properties: {}, default: {}, x-subchart: base}")
    assert schemas.errors() == [f"{KEY}: x-subchart names base, which has no charts/base.yaml"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "type: integer, default: many",
            'default "many" breaks the schema: "many" is not of type "integer"',
        ),
        (
            "type: integer, default: 1, examples: [2, few]",
            'examples[1] "few" breaks the schema: "few" is not of type "integer"',
        ),
    ],
)
def test_defaults_and_examples_obey_their_own_schema(schemas: Schemas, value: str, message: str) -> None:
    schemas.chart(f"key: {{description: Number of pods., {value}}}")
    assert schemas.errors() == [f"{KEY}: {message}"]


def test_the_composed_defaults_obey_the_conditions(schemas: Schemas) -> None:
    schemas.chart(UNION.replace("{IF}", "{type: {const: hf}}").replace("{THEN}", "{claim: {minLength: 1}}"))
    assert schemas.errors() == [
        'schemas/charts/demo.yaml:1: $: the composed defaults break the schema: key.claim: ""'
        " is shorter than 1 character"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2\n", ":2:1: key 'a' is given twice, first on line 1"),
        ("a: [}\n", ":1:5: did not find expected node content"),
        ("a: 1\n---\nb: 1\n", ":2:1: a second YAML document starts here; a values file holds one"),
        ("- a\n", ":1:1: must be a mapping of keys, not a list"),
    ],
)
def test_a_file_is_one_plain_yaml_mapping(schemas: Schemas, text: str, message: str) -> None:
    schemas.write("charts/demo.yaml", text)
    assert schemas.errors() == [f"schemas/charts/demo.yaml{message}"]


def test_there_must_be_a_chart(schemas: Schemas) -> None:
    schemas.write("role.yaml", "type: object\n")
    assert schemas.errors() == ["schemas: no charts/*.yaml here; add the root of one chart's values"]


def test_names_of_files_are_unique_in_the_bundle(schemas: Schemas) -> None:
    schemas.chart("key: {description: A key., type: string, default: ''}")
    schemas.write("demo.yaml", "type: object\n")
    assert schemas.errors() == ["schemas: demo.yaml and charts/demo.yaml share a name; rename one"]
