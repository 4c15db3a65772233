"""`vllm-phases check` on the command line: what it prints, where, and its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vllm_phases import cli

from tests.tool.conftest import CONFIG_MAP, MakeChart, Outcome

Command = Callable[..., Outcome]

SCHEMA: dict[str, Any] = {
    "description": "A demonstration.",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "global": {"type": "object"},
        "size": {"type": "integer", "description": "How much."},
        "args": {"type": "object"},
        "env": {"type": "object"},
    },
}
VALUES = 'global: {vllm: {version: "0.33.0"}}\nsize: 1\nargs: {}\nenv: {}\n'
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: engine}
spec:
  replicas: {{ .Values.size }}
  selector: {matchLabels: {app: engine}}
  template:
    metadata: {labels: {app: engine}}
    spec:
      containers:
        - name: vllm
          image: engine
          args:
            - some/model
            {{- range $flag, $value := .Values.args }}
            - --{{ $flag }}={{ $value }}
            {{- end }}
          env:
            {{- range $name, $value := .Values.env }}
            - {name: {{ $name }}, value: {{ $value | quote }}}
            {{- end }}
"""


@pytest.fixture
def chart(make_chart: MakeChart) -> Path:
    """charts/vllm-stack with one engine, where `check` looks for it; of the rules only some run."""
    Path(".vllm-phases.yaml").write_text("select: [ARG00, ENV001, LINT002]\n")
    return make_chart("vllm-stack", values=VALUES, schema=SCHEMA, templates={"engine.yaml": DEPLOYMENT})


@pytest.fixture
def phase(chart: Path) -> Callable[[str, str], None]:
    """Write values/NAME."""

    def write(name: str, text: str) -> None:
        Path("values").mkdir(exist_ok=True)
        Path("values", name).write_text(text)

    return write


class TestSets:
    def test_every_phase_file_is_a_set_of_its_own(self, phase: Callable[..., None], command: Command) -> None:
        phase("phase1.yaml", "size: 1")
        phase("phase2-nccl.yaml", "size: 3")
        phase("other.yaml", "size: x")
        assert command("check") == Outcome(
            0,
            "VALUES                   VERDICT  VLLM    OBJECTS  ENGINES  FINDINGS\n"
            "values/phase1.yaml       ok       0.33.0  1        1        none\n"
            "values/phase2-nccl.yaml  ok       0.33.0  1        3        none\n",
            "",
        )

    def test_files_given_make_one_set(self, phase: Callable[..., None], command: Command) -> None:
        phase("a.yaml", "size: 2")
        phase("b.yaml", "size: 5")
        outcome = command("check", "-f", "values/a.yaml", "-f", "values/b.yaml")
        assert (
            outcome.out.splitlines()[1]
            == "values/a.yaml + values/b.yaml  ok       0.33.0  1        5        none"
        )

    def test_charts_and_phases_are_found_from_below(
        self, phase: Callable[..., None], command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        phase("phase1.yaml", "")
        Path("docs/deep").mkdir(parents=True)
        monkeypatch.chdir("docs/deep")
        outcome = command("check")
        assert outcome.code == 0
        assert outcome.out.splitlines()[1].startswith("../../values/phase1.yaml  ok ")

    def test_a_chart_alone_is_checked_with_its_defaults(
        self, make_chart: MakeChart, command: Command
    ) -> None:
        outcome = command("check", "--chart", make_chart())
        assert outcome.out.splitlines()[1].split() == ["chart", "defaults", "ok", "-", "1", "0", "none"]

    def test_set_applies_to_every_set(self, phase: Callable[..., None], command: Command) -> None:
        phase("phase1.yaml", "")
        assert command("check", "--set", "size=7").out.splitlines()[1].split()[4] == "7"


class TestFindings:
    def test_of_the_schema_stop_the_set(self, phase: Callable[..., None], command: Command) -> None:
        phase("phase1.yaml", "# first\nsiez: 2\nargs: {qq: 1}\n")
        assert command("check") == Outcome(
            1,
            "values/phase1.yaml:2:1: error: siez is not a key of vllm-stack; did you mean size? "
            "[VAL001 unknown-key]\n"
            "  2 | siez: 2\n"
            "    | ^\n"
            "  vllm-stack: A demonstration.\n"
            "\n"
            "VALUES              VERDICT  VLLM    OBJECTS  ENGINES  FINDINGS\n"
            "values/phase1.yaml  failed   0.33.0  0        0        1 error\n",
            "",
        )

    def test_of_flags_and_variables_stand_at_their_lines(
        self, phase: Callable[..., None], command: Command
    ) -> None:
        phase("phase1.yaml", "args:\n  max-model-ln: 1\nenv:\n  VLLM_LOGGING_LEVL: DEBUG\n")
        outcome = command("check")
        assert outcome.code == 1
        assert outcome.out == (
            "values/phase1.yaml:2:3: error: vLLM 0.33.0 has no flag --max-model-ln; "
            "did you mean --max-model-len? [ARG001 unknown-flag]\n"
            "  2 |   max-model-ln: 1\n"
            "    |   ^\n"
            "  Write --max-model-len.\n"
            "\n"
            "values/phase1.yaml:4:3: warning: vLLM 0.33.0 does not read VLLM_LOGGING_LEVL; "
            "did you mean VLLM_LOGGING_LEVEL? [ENV001 unknown-environment]\n"
            "  4 |   VLLM_LOGGING_LEVL: DEBUG\n"
            "    |   ^\n"
            "  Write VLLM_LOGGING_LEVEL.\n"
            "\n"
            "VALUES              VERDICT  VLLM    OBJECTS  ENGINES  FINDINGS\n"
            "values/phase1.yaml  failed   0.33.0  1        1        1 error, 1 warning\n"
        )

    def test_on_the_command_line_have_no_frame(self, chart: Path, command: Command) -> None:
        first, *_ = command("check", "--chart", chart, "--set", "size=x").out.splitlines()
        assert first == '--set size=x: error: size is "x", must be an integer [VAL002 wrong-type]'

    def test_warnings_alone_do_not_fail(self, chart: Path, command: Command) -> None:
        outcome = command("check", "--chart", chart, "--set", "env.VLLM_QQQQ=1")
        assert outcome.code == 0
        assert outcome.out.splitlines()[-1].endswith("ok       0.33.0  1        1        1 warning")

    def test_that_several_sets_share_are_shown_once(
        self, phase: Callable[..., None], command: Command
    ) -> None:
        phase("phase1.yaml", "")
        phase("phase2.yaml", "")
        out = command("check", "--set", "size=x").out
        assert out.count("VAL002") == 1
        assert out.count("failed") == 2

    def test_of_objects_name_the_object(self, make_chart: MakeChart, command: Command) -> None:
        chart = make_chart(templates={"a.yaml": CONFIG_MAP + "dta: {}\n"})
        outcome = command("check", "--chart", chart)
        assert outcome.code == 1
        place, severity, subject, _ = outcome.out.split(": ", 3)
        assert (place, severity) == ("demo/templates/a.yaml:1:1", "error")
        assert subject == "ConfigMap/release-name"

    def test_of_helm_are_warnings(self, make_chart: MakeChart, command: Command) -> None:
        make_chart("sub")
        chart = make_chart(dependencies=[{"name": "sub", "version": "*", "condition": "sub.enabled"}])
        (chart / "charts").mkdir()
        (chart / "charts/sub").symlink_to("../../sub")
        first, *_ = command("check", "--chart", chart, "--set", "sub.enabled=maybe").out.splitlines()
        assert first == (
            "warning: Helm warns: returned non-bool value path=sub.enabled chart=sub [HELM001 helm-warning]"
        )

    def test_are_coloured_only_where_asked_for(self, chart: Path, command: Command) -> None:
        assert "\x1b" not in command("check", "--chart", chart, "--set", "size=x").out

    def test_of_the_charts_own_checks_stand_at_their_lines(
        self, make_chart: MakeChart, command: Command
    ) -> None:
        fail = "{{ fail `These values cannot work:\n- a.b: 2 is odd; set 3\n- c: empty; set one` }}"
        chart = make_chart(values="c: 1", templates={"a.yaml": fail})
        Path("v.yaml").write_text("a:\n  b: 2\n")
        outcome = command("check", "--chart", chart, "-f", "v.yaml")
        assert outcome.code == 1
        assert outcome.out.startswith(
            "v.yaml:2:3: error: a.b: 2 is odd; set 3 [VAL004 refused-value]\n"
            "  2 |   b: 2\n"
            "    |   ^\n"
            "\n"
            "demo/templates/a.yaml:1:3: error: c: empty; set one [VAL004 refused-value]\n"
        )


class TestFailures:
    def test_a_template_that_refuses(self, make_chart: MakeChart, command: Command) -> None:
        chart = make_chart(templates={"a.yaml": '{{ fail "size: is 1\\nset 2" }}'})
        assert command("check", "--chart", chart) == Outcome(
            4,
            "demo/templates/a.yaml:1:3: error: Helm cannot render: size: is 1\nset 2 [HELM002 helm-error]\n"
            "\n"
            "VALUES          VERDICT       VLLM  OBJECTS  ENGINES  FINDINGS\n"
            "chart defaults  not rendered  -     0        0        1 error\n",
            "",
        )

    def test_nothing_to_check(self, chart: Path, command: Command) -> None:
        assert command("check") == Outcome(
            3,
            "",
            "nothing to check: no values/phase*.yaml beside charts/vllm-stack, here or in a folder above; "
            "name values files with -f\n",
        )

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["-f", "nope.yaml"], "nope.yaml: no such values file"),
            (["-f", "charts"], "charts: is a folder, not a values file"),
            (["--chart", "nope"], "nope: no such chart"),
            (["--chart", "charts/vllm-stack", "--set", "a"], '--set a: key "a" has no value'),
            (
                ["--chart", "charts/vllm-stack", "--kube-version", "new"],
                "--kube-version new: write a version such as 1.34.0",
            ),
            (
                ["--renderer", "helm3"],
                "Invalid value for '--renderer': 'helm3' is not one of 'embedded', 'helm'.",
            ),
            (
                ["--chart", "charts/vllm-stack", "--renderer", "helm", "--helm", "no-helm"],
                "cannot run helm at no-helm: No such file or directory",
            ),
            (["--zoo"], "No such option '--zoo'."),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_wrong_usage_is_one_line(
        self, chart: Path, command: Command, words: list[str], message: str
    ) -> None:
        assert command("check", *words) == Outcome(2, "", f"error: {message}\n")

    def test_no_chart_anywhere(self, workplace: Path, command: Command) -> None:
        Path("v.yaml").touch()
        assert command("check", "-f", "v.yaml") == Outcome(
            2, "", "error: no charts/vllm-stack here or in a folder above; name a chart with --chart\n"
        )

    def test_a_broken_chart(self, workplace: Path, command: Command) -> None:
        assert command("check", "--chart", ".") == Outcome(
            4, "", "error: Helm cannot render: Chart.yaml file is missing\n"
        )


class TestJson:
    def test_is_one_object(self, phase: Callable[..., None], command: Command) -> None:
        phase("phase1.yaml", "")
        phase("phase2.yaml", "args:\n  qqqqqqq: 1\n")
        outcome = command("check", "--format", "json")
        finding = {
            "rule_id": "ARG001",
            "name": "unknown-flag",
            "severity": "error",
            "message": "vLLM 0.33.0 has no flag --qqqqqqq",
            "remediation": "Remove --qqqqqqq.",
            "object": "Deployment/engine",
            "path": "args.qqqqqqq",
            "file": "values/phase2.yaml",
            "line": 2,
            "column": 3,
        }
        common = {"chart": "charts/vllm-stack", "engine_version": "0.33.0", "objects": 1, "engines": 1}
        assert outcome.code == 1
        assert json.loads(outcome.out) == {
            "version": 1,
            "sets": [
                {"files": ["values/phase1.yaml"], "verdict": "ok", "findings": [], **common},
                {"files": ["values/phase2.yaml"], "verdict": "failed", "findings": [finding], **common},
            ],
            "findings": [finding],
        }


class TestCommandLine:
    def test_version(self, command: Command) -> None:
        assert command("--version") == Outcome(0, "vllm-phases 0.1.0\n", "")

    def test_help_lists_every_command_as_it_describes_itself(self, command: Command) -> None:
        listed = " ".join(command("--help").out.split())
        for name, text in cli._COMMANDS.items():
            assert f"{name} {text}" in listed
            assert text in " ".join(command(name, "--help").out.split())

    def test_without_a_command_is_wrong_usage_with_help(self, command: Command) -> None:
        outcome = command()
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith("Usage: vllm-phases [OPTIONS] COMMAND")

    def test_an_unknown_command(self, command: Command) -> None:
        assert command("chekc") == Outcome(2, "", "error: No such command 'chekc'.\n")

    def test_what_was_not_foreseen_is_an_internal_error(
        self, chart: Path, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object) -> None:
            raise KeyError("oops")

        monkeypatch.setattr("vllm_phases.manifests.parse", broken)
        assert command("check", "--chart", chart) == Outcome(
            4, "", "internal error: KeyError: 'oops'; set VLLM_PHASES_TRACEBACK=1 to see where\n"
        )
        monkeypatch.setenv("VLLM_PHASES_TRACEBACK", "1")
        with pytest.raises(KeyError, match="oops"):
            command("check", "--chart", chart)


class TestSuppressions:
    def test_stand_in_the_values(self, phase: Callable[..., None], command: Command) -> None:
        phase("phase1.yaml", "args:\n  size: 2 # vllm-phases: ignore[ARG001] a patched engine\n  sizes: 3\n")
        outcome = command("check", "--format", "json")
        found = json.loads(outcome.out)["findings"]
        assert [(finding["rule_id"], finding["line"]) for finding in found] == [("ARG001", 3)]

    def test_that_excuse_nothing_are_told(self, phase: Callable[..., None], command: Command) -> None:
        phase("phase1.yaml", "size: 1 # vllm-phases: ignore[ARG001] a patched engine\n")
        outcome = command("check", "--format", "json")
        found = json.loads(outcome.out)["findings"]
        assert [(finding["rule_id"], finding["line"]) for finding in found] == [("LINT002", 1)]


class TestObjects:
    """What an API server has against the rendered objects, beside the rules of the linter."""

    def checked(self, make_chart: MakeChart, command: Command, text: str) -> list[str]:
        """Line and message of each finding in a rendered object."""
        make_chart("vllm-stack", values="a: 1\n", templates={"object.yaml": text})
        outcome = command("check", "--chart", "charts/vllm-stack", "--format", "json")
        (result,) = json.loads(outcome.out)["sets"]
        return [f"{it['line']} {it['severity']} {it['rule_id']} {it['message']}" for it in result["findings"]]

    def test_an_object_that_is_refused(self, make_chart: MakeChart, command: Command) -> None:
        assert self.checked(make_chart, command, CONFIG_MAP + "dota: {}\n") == [
            '1 error OBJ001 dota: unknown field, did you mean "data"?'
        ]

    def test_a_kind_without_a_schema_is_said_to_be_unchecked(
        self, make_chart: MakeChart, command: Command
    ) -> None:
        text = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n"
        assert self.checked(make_chart, command, text) == [
            "1 warning OBJ002 kind: no schema for example.com/v1 Thing, so it is not checked"
        ]

    def test_the_configuration_selects_among_them(self, make_chart: MakeChart, command: Command) -> None:
        Path(".vllm-phases.yaml").write_text("ignore: [OBJ]\n")
        assert self.checked(make_chart, command, CONFIG_MAP + "dota: {}\n") == []
