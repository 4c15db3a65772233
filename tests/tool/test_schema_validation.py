"""What a chart's schema refuses is told in the user's lines and in the schema's words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from vllm_phases.render import RenderError
from vllm_phases.schema.validate import ValuesSchema
from vllm_phases.values import load

if TYPE_CHECKING:
    from vllm_phases.finding import Finding

    from tests.tool.conftest import MakeChart

SOURCE = {
    "description": "Where the weights come from.",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "type": {"enum": ["hub", "claim"], "description": "Kind of source."},
        "claim": {"type": "string", "description": "Name of the claim."},
        "secret": {"type": "string"},
    },
    "allOf": [
        {
            "if": {"properties": {"type": {"const": "claim"}}, "required": ["type"]},
            "then": {"properties": {"claim": {"minLength": 1}, "secret": False}, "required": ["claim"]},
        }
    ],
}
SCHEMA: dict[str, Any] = {
    "description": "The whole service.",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "global": {"type": "object"},
        "replicas": {"type": "integer", "minimum": 1, "maximum": 8, "description": "Number of pods."},
        "source": {"$ref": "#/definitions/source"},
        "hosts": {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": "^[a-z]+$"}},
        "labels": {
            "type": "object",
            "propertyNames": {"maxLength": 3},
            "additionalProperties": {"type": ["string", "null"]},
        },
    },
    "definitions": {"source": SOURCE},
}
VALUES = """\
replicas: 1
source:
  type: hub
  claim: ""
hosts: [a]
labels: {}
"""


def findings(chart: Path, text: str = "", *sets: str) -> list[Finding]:
    Path("v.yaml").write_text(text)
    values, schema = load([Path("v.yaml")], sets), ValuesSchema(chart)
    return list(schema.findings(values, schema.coalesce(values)))


def told(found: list[Finding]) -> list[tuple[str, str, str]]:
    """Place, rule and message of each."""
    return [
        (str(finding.location), f"{finding.rule_id} {finding.name}", finding.message) for finding in found
    ]


def test_the_defaults_alone_are_fine(make_chart: MakeChart) -> None:
    assert findings(make_chart(values=VALUES, schema=SCHEMA)) == []


def test_a_chart_without_a_schema_takes_anything(make_chart: MakeChart) -> None:
    assert findings(make_chart(), "whatever: 1") == []


class TestUnknownKeys:
    def test_each_has_a_finding_with_the_key_that_was_meant(self, make_chart: MakeChart) -> None:
        chart = make_chart(values=VALUES, schema=SCHEMA)
        assert told(findings(chart, "replicsa: 2\nsource:\n  clam: x\n  zone: x\n")) == [
            ("v.yaml:1:1", "VAL001 unknown-key", "replicsa is not a key of demo; did you mean replicas?"),
            ("v.yaml:3:3", "VAL001 unknown-key", "source.clam is not a key of source; did you mean claim?"),
            ("v.yaml:4:3", "VAL001 unknown-key", "source.zone is not a key of source"),
        ]

    def test_the_remediation_says_what_the_object_is_for(self, make_chart: MakeChart) -> None:
        near, far = findings(make_chart(values=VALUES, schema=SCHEMA), "replicsa: 2\nsource:\n  zone: x\n")
        assert near.remediation == "demo: The whole service."
        assert far.remediation == "source: Where the weights come from. Its keys: type, claim, secret."

    def test_on_the_command_line(self, make_chart: MakeChart) -> None:
        (found,) = findings(make_chart(values=VALUES, schema=SCHEMA), "", "source.clam=x")
        assert found.location
        assert found.location.file == "--set source.clam=x"
        assert found.path == "source.clam"


class TestValues:
    @pytest.mark.parametrize(
        ("text", "rule", "message"),
        [
            ("replicas: two", "VAL002 wrong-type", 'replicas is "two", must be an integer'),
            ("replicas: 0", "VAL003 bad-value", "replicas is 0, must be at least 1"),
            ("replicas: 9", "VAL003 bad-value", "replicas is 9, must be at most 8"),
            ("hosts: []", "VAL003 bad-value", "hosts is [], must not be empty"),
            ("hosts: [UP]", "VAL003 bad-value", 'hosts[0] is "UP", must match ^[a-z]+$'),
            ("labels: {a.b: 1}", "VAL002 wrong-type", r"labels.a\.b is 1, must be null or a string"),
            ("labels: {long: x}", "VAL003 bad-value", "labels.long: the key must have at most 3 characters"),
            (
                "source: {type: hib}",
                "VAL003 bad-value",
                'source.type is "hib", must be one of "hub", "claim"',
            ),
        ],
    )
    def test_say_what_was_given_and_what_is_allowed(
        self, make_chart: MakeChart, text: str, rule: str, message: str
    ) -> None:
        found = told(findings(make_chart(values=VALUES, schema=SCHEMA), text))
        assert [(rule, message) for _, rule, message in found] == [(rule, message)]

    def test_null_takes_a_default_away(self, make_chart: MakeChart) -> None:
        assert findings(make_chart(values=VALUES, schema=SCHEMA), "source: null\n") == []

    def test_the_remediation_is_the_description_of_the_key(self, make_chart: MakeChart) -> None:
        (found,) = findings(make_chart(values=VALUES, schema=SCHEMA), "replicas: 0")
        assert found.remediation == "replicas: Number of pods."

    def test_long_values_are_shortened(self, make_chart: MakeChart) -> None:
        (found,) = findings(make_chart(values=VALUES, schema=SCHEMA), f"replicas: {'x' * 99}")
        assert found.message == f'replicas is "{"x" * 58}…, must be an integer'


class TestUnions:
    def test_are_explained_by_the_branch_that_was_chosen_at_the_line_that_chose_it(
        self, make_chart: MakeChart
    ) -> None:
        chart = make_chart(values=VALUES, schema=SCHEMA)
        assert told(findings(chart, "source:\n  type: claim\n")) == [
            (
                "v.yaml:2:3",
                "VAL003 bad-value",
                'source.claim is "", must not be empty because source.type is "claim"',
            )
        ]

    def test_say_what_is_missing_or_too_much(self, make_chart: MakeChart) -> None:
        chart = make_chart(values=VALUES, schema=SCHEMA)
        assert told(findings(chart, "source:\n  type: claim\n  claim: null\n  secret: s\n")) == [
            ("v.yaml:3:3", "VAL003 bad-value", 'source.claim is missing because source.type is "claim"'),
            (
                "v.yaml:4:3",
                "VAL003 bad-value",
                'source.secret is "s", must not be set because source.type is "claim"',
            ),
        ]


class TestDefaults:
    def test_errors_in_them_point_to_the_chart(self, make_chart: MakeChart) -> None:
        chart = make_chart(values=VALUES.replace("replicas: 1", "replicas: x"), schema=SCHEMA)
        assert told(findings(chart)) == [
            ("charts/demo/values.yaml:1:1", "VAL002 wrong-type", 'replicas is "x", must be an integer')
        ]

    def test_of_a_subchart_under_its_alias(self, make_chart: MakeChart) -> None:
        make_chart("sub", values="# the pods\nreplicas: 0\n")
        assert told(findings(aliased(make_chart))) == [
            (
                "charts/parent/charts/sub/values.yaml:2:1",
                "VAL003 bad-value",
                "role.replicas is 0, must be at least 1",
            )
        ]

    def test_of_a_packaged_chart(self, make_chart: MakeChart) -> None:
        from helm_python.chart import package

        make_chart("sub", values="replicas: 0\n")
        archive = Path(package(aliased(make_chart), destination="."))
        ((place, _, _),) = told(findings(archive))
        assert place == f"{archive}:parent/charts/sub/values.yaml:1:1"

    def test_what_helm_copies_into_subcharts_is_told_once(self, make_chart: MakeChart) -> None:
        make_chart("sub", values="replicas: 1\n")
        chart = aliased(make_chart)
        message = 'global.size is "x", must be an integer'
        assert told(findings(chart, "global:\n  size: x\n")) == [("v.yaml:2:3", "VAL002 wrong-type", message)]
        assert told(findings(chart, "role:\n  global:\n    size: x\n")) == [
            ("v.yaml:3:5", "VAL002 wrong-type", f"role.{message}")
        ]

    def test_a_number_where_a_subchart_belongs(self, make_chart: MakeChart) -> None:
        """Helm itself refuses to merge this, with `type mismatch on role: %!t(float64=3)`."""
        make_chart("sub", values="replicas: 1\n")
        assert told(findings(aliased(make_chart), "role: 3")) == [
            ("v.yaml:1:1", "VAL002 wrong-type", "role is 3, must be a map")
        ]


def aliased(make_chart: MakeChart) -> Path:
    """A chart that runs the chart `sub` as `role`."""
    shared = {"type": "object", "properties": {"size": {"type": "integer"}}}
    role = {"type": "object", "properties": {"replicas": SCHEMA["properties"]["replicas"], "global": shared}}
    chart = make_chart(
        "parent",
        schema={"type": "object", "properties": {"role": role, "global": shared}},
        dependencies=[{"name": "sub", "alias": "role", "version": "*"}],
    )
    (chart / "charts").mkdir()
    (chart / "charts/sub").symlink_to("../../sub")
    return chart


class TestBrokenSchemas:
    @pytest.mark.parametrize(
        ("schema", "reason"),
        [
            (
                {"type": "thing"},
                "\"thing\" is not valid under any of the schemas listed in the 'anyOf' keyword",
            ),
            (
                {"$ref": "http://example.com/s.json"},
                "Resource 'http://example.com/s.json' is not present in a registry "
                "and retrieving it failed: ValueError: it is outside the chart",
            ),
        ],
        ids=["type", "network"],
    )
    def test_are_refused_and_never_fetched(self, make_chart: MakeChart, schema: Any, reason: str) -> None:
        with pytest.raises(RenderError) as caught:
            ValuesSchema(make_chart(schema=schema))
        assert str(caught.value) == f"charts/demo: values.schema.json cannot be used: {reason}"
