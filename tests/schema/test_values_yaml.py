"""values.yaml: every key with its default, under a comment that explains it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import helm_python
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from vllm_phases.schema.yaml_text import dump

if TYPE_CHECKING:
    from .conftest import Schemas


def test_the_whole_file(schemas: Schemas) -> None:
    schemas.chart("""\
        version:
          description: >-
            Version of the engine. It decides which flags and variables exist, so it must be the real
            one also when the image is private.
          type: string
          default: "0.33.0"
          examples: ["0.32.0"]
        cache:
          description: Where downloads are kept.
          type: object
          properties:
            kind:
              description: Kind of volume.
              type: string
              enum: [emptyDir, pvc]
              default: emptyDir
            keepSeconds:
              description: How long it is kept.
              type: integer
              x-unit: seconds
              minimum: 0
              default: 60
            claim:
              description: An existing claim.
              type: string
              default: ""
              examples: [models]
            args:
              description: Flags.
              type: object
              additionalProperties: {type: [string, number]}
              default: {}
              examples: [{dtype: auto, rank: 8}]
        enabled: {description: For parents., type: boolean, default: true, x-hidden: true}
    """)
    assert (
        schemas.values_yaml()
        == """\
# Generated from schemas/charts/demo.yaml; do not edit.
#
# A chart.

# Version of the engine. It decides which flags and variables exist, so it must be the real one also
# when the image is private.
version: "0.33.0"

# Where downloads are kept.
cache:
  # Kind of volume. One of emptyDir, pvc.
  kind: emptyDir
  # How long it is kept. Unit: seconds, at least 0.
  keepSeconds: 60
  # An existing claim.
  # For example: models
  claim: ""
  # Flags.
  # For example:
  #   args:
  #     dtype: auto
  #     rank: 8
  args: {}
"""
    )


def test_values_that_a_description_names_are_not_listed_again(schemas: Schemas) -> None:
    schemas.chart("key: {description: '`a` or `b`.', type: string, enum: [a, b], default: a}")
    assert schemas.values_yaml().endswith("\n# `a` or `b`.\nkey: a\n")


def test_a_parent_shows_only_its_own_keys_of_a_subchart(schemas: Schemas) -> None:
    schemas.write(
        "charts/engine.yaml",
        """\
        description: Engines.
        type: object
        properties:
          replicas: {description: Number of pods., type: integer, default: 1}
          enabled: {description: For parents., type: boolean, default: true, x-hidden: true}
        """,
    )
    schemas.chart("""\
        base:
          description: Phase 1.
          type: object
          x-subchart: engine
          x-include: [engine.yaml]
          properties:
            enabled: {description: Run this layer., type: boolean, default: true}
    """)
    assert schemas.values_yaml().endswith("""
# Phase 1. All other keys: charts/engine/values.yaml.
base:
  # Run this layer.
  enabled: true
""")


def test_a_default_beside_a_reference_wins_key_by_key(schemas: Schemas) -> None:
    schemas.write(
        "probe.yaml",
        """\
        description: A probe.
        type: object
        properties:
          periodSeconds: {description: Time between probes., type: integer, x-unit: seconds, default: 10}
          failureThreshold: {description: Failures in a row., type: integer, default: 3}
        """,
    )
    schemas.chart("liveness: {description: Restarts., $ref: ../probe.yaml, default: {periodSeconds: 15}}")
    assert yaml.safe_load(schemas.values_yaml()) == {"liveness": {"periodSeconds": 15, "failureThreshold": 3}}


def test_an_object_may_be_left_out_by_null(schemas: Schemas) -> None:
    schemas.chart("""\
        key:
          description: Settings.
          type: [object, "null"]
          default: null
          properties:
            name: {description: A name., type: string, default: a}
    """)
    assert schemas.values_yaml().endswith("\n# Settings.\nkey: null\n")


NUMBERS = ["1", "0.33.0", "1e3", "0x1F", "0o17", "12:30", "2024-01-01", "1_000", "-1", ".5", ".inf"]
WORDS = ["", " ", "~", "null", "true", "yes", "off", "y", "=", "<<", "{{ .Release.Name }}"]
MARKS = ["a: b", "# a", "a #b", "- a", "*a", "&a", "!a", "%a", "@a", "`a"]
SPACE = ["two\nlines", "two\nlines\n", " indented\ntext", "trailing \nspace", "\ttab", "é", "\x85"]


def test_text_stays_text_for_helm() -> None:
    tree = {"key": [*NUMBERS, *WORDS, *MARKS, *SPACE]}
    text = "\n".join(dump(tree))
    assert helm_python.values_from_yaml(text) == tree
    assert yaml.safe_load(text) == tree


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t"))
)
KEYS = st.text(st.characters(categories=["L", "N"], include_characters="-./_"), min_size=1)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=10)


@settings(deadline=None)
@given(value=VALUES)
def test_helm_reads_every_value_back(value: Any) -> None:
    text = "".join(f"{line}\n" for line in dump({"key": value}))
    assert helm_python.values_from_yaml(text) == {"key": value}
