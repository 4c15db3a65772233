"""`vllm-phases lint`, `explain` and `rules` as commands: what they print, and how they end."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from vllm_phases.cli import run

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
ENGINE = """\
apiVersion: v1
kind: Pod
metadata: {name: demo}
spec:
  containers:
    - name: vllm
      image: vllm/vllm-openai:v0.33.0
      args: [Qwen/Qwen3-8B, --port=8000]
"""
FAULTY = ENGINE.replace("--port=8000", "--prot=8000")
DOUBTFUL = ENGINE.replace("--port=8000", "--gpu-memory-util=0.9")
UNTOLD = ENGINE.replace("v0.33.0", "nightly")
ONLY_FLAGS = "ARG,ENV,LINT"


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def rule_ids(self) -> list[str]:
        return [finding["rule_id"] for finding in json.loads(self.out)["findings"]]


@pytest.fixture
def lint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Run the command in an empty folder; `files` are written first, `stdin` is piped in."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str, stdin: str | None = None, **files: str) -> Outcome:
        for name, text in files.items():
            Path(name.replace("__", ".")).write_text(text)
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = run(["lint", *arguments])
        return Outcome(code, *capsys.readouterr())

    return command


class TestExitCodes:
    def test_0_when_nothing_is_wrong(self, lint: Callable[..., Outcome]) -> None:
        outcome = lint("a.yaml", "--select", ONLY_FLAGS, a__yaml=ENGINE)
        assert (outcome.code, outcome.out, outcome.err) == (0, "no findings\n", "")

    def test_1_for_an_error(self, lint: Callable[..., Outcome]) -> None:
        outcome = lint("a.yaml", "--select", ONLY_FLAGS, a__yaml=FAULTY)
        assert (outcome.code, outcome.err) == (1, "")
        assert outcome.out == (
            "a.yaml:8:29: error: vLLM 0.33.0 has no flag --prot; did you mean --port? [ARG001 unknown-flag]\n"
            "  8 |       args: [Qwen/Qwen3-8B, --prot=8000]\n"
            "    |                             ^\n"
            "  Write --port.\n\n1 error; 1 fixable with --fix --unsafe-fixes\n"
        )

    @pytest.mark.parametrize(
        ("text", "level", "code"),
        [(DOUBTFUL, "error", 0), (DOUBTFUL, "warning", 1), (UNTOLD, "warning", 0), (UNTOLD, "note", 1)],
    )
    def test_1_from_the_level_that_is_asked_for(
        self, lint: Callable[..., Outcome], text: str, level: str, code: int
    ) -> None:
        assert lint("a.yaml", "--select", ONLY_FLAGS, "--fail-on", level, a__yaml=text).code == code

    def test_0_whatever_is_found_where_that_is_asked_for(self, lint: Callable[..., Outcome]) -> None:
        assert lint("a.yaml", "--exit-zero", a__yaml=FAULTY).code == 0

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("none.yaml",), "error: none.yaml: no such file or folder"),
            (("a.yaml", "--select", "AGR001"), "error: select: AGR001 fits no rule; did you mean ARG001?"),
            (("a.yaml", "--ignore", "ZZZ"), "error: ignore: ZZZ fits no rule"),
            (
                ("a.yaml", "--vllm-version", "new"),
                "error: engine version 'new' is not a release number: set one such as 0.33.0 "
                "(the catalogue holds vLLM 0.11.0 to 0.33.0)",
            ),
            (
                ("a.yaml", "--format", "xml"),
                "error: Invalid value for '--format': 'xml' is not one of 'text', 'json', 'sarif', 'github', 'junit'.",
            ),
        ],
    )
    def test_2_for_wrong_usage(
        self, lint: Callable[..., Outcome], arguments: tuple[str, ...], message: str
    ) -> None:
        outcome = lint(*arguments, a__yaml=ENGINE)
        assert (outcome.code, outcome.out, outcome.err.strip()) == (2, "", message)

    def test_2_without_anything_to_read(
        self, lint: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
        outcome = lint()
        assert (outcome.code, outcome.err) == (
            2,
            "error: name files or folders, or pipe manifests in: helm template … | vllm-phases lint\n",
        )

    def test_3_when_there_is_nothing_to_check(self, lint: Callable[..., Outcome]) -> None:
        outcome = lint("a.yaml", a__yaml="apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")
        assert (outcome.code, outcome.out, outcome.err) == (
            3,
            "no findings\n",
            "nothing to check: no vLLM engine, router, endpoint picker or InferencePool here\n",
        )

    def test_4_when_a_rule_fails(self, lint: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
        from dataclasses import replace

        from vllm_phases import rules

        def fails(*_: object) -> None:
            raise KeyError("x")

        broken = [
            replace(rule, check=cast("Any", fails)) if rule.id == "ARG001" else rule
            for rule in rules.all_rules()
        ]
        monkeypatch.setattr(rules, "all_rules", lambda: broken)
        outcome = lint("a.yaml", "--select", ONLY_FLAGS, "--format", "json", a__yaml=DOUBTFUL)
        assert (outcome.code, outcome.rule_ids) == (4, ["ARG005", "LINT004"])
        assert "rule ARG001 failed: KeyError: 'x'" in outcome.out


class TestInputs:
    def test_standard_input(self, lint: Callable[..., Outcome]) -> None:
        outcome = lint("-", "--select", "ARG", stdin=FAULTY)
        assert outcome.code == 1
        assert outcome.out.startswith("<stdin>:8:29: error: ")
        assert "  8 |       args: [Qwen/Qwen3-8B, --prot=8000]\n" in outcome.out
        assert lint("--select", "ARG", stdin=FAULTY) == outcome

    def test_a_folder_without_what_is_hidden_or_excluded(self, lint: Callable[..., Outcome]) -> None:
        Path("deploy/.hidden").mkdir(parents=True)
        Path("deploy/vendor").mkdir()
        for place in ("deploy/a.yml", "deploy/.hidden/b.yaml", "deploy/vendor/c.yaml"):
            Path(place).write_text(FAULTY)
        Path("deploy/values.yaml").write_text("replicas: 2\n")
        asked = ("deploy", "--select", ONLY_FLAGS, "--format", "json")
        assert lint(*asked).rule_ids == ["ARG001", "ARG001"]
        Path(".vllm-phases.yaml").write_text("exclude: [deploy/vendor]\n")
        assert lint(*asked).rule_ids == ["ARG001"]

    def test_in_a_folder_only_what_looks_like_ours_must_be_readable(
        self, lint: Callable[..., Outcome]
    ) -> None:
        Path("deploy").mkdir()
        Path("deploy/tsconfig.json").write_text('{"paths": {} /* ours */}\n')
        Path("deploy/pod.yaml").write_text("kind: Pod\nspec: {\n")
        told = json.loads(lint("deploy", "--format", "json").out)["findings"]
        assert [(found["rule_id"], found["file"]) for found in told] == [("LINT001", "deploy/pod.yaml")]
        assert lint("deploy/tsconfig.json", "--format", "json").rule_ids == ["LINT001"]

    def test_a_chart_in_a_folder_is_not_read(self, lint: Callable[..., Outcome]) -> None:
        Path("deploy/chart/templates").mkdir(parents=True)
        Path("deploy/chart/Chart.yaml").write_text("name: demo\n")
        Path("deploy/chart/templates/pod.yaml").write_text("kind: {{ .Values.kind }}\n")
        (found,) = json.loads(lint("deploy", "--format", "json").out)["findings"]
        assert (found["severity"], found["message"]) == (
            "note",
            "is a Helm chart: its templates are not read",
        )
        assert found["remediation"] == "Render it: helm template deploy/chart | vllm-phases lint -."

    def test_a_file_that_is_nothing_of_ours(self, lint: Callable[..., Outcome]) -> None:
        outcome = lint("a.yaml", "--format", "json", a__yaml="replicas: 2\n")
        assert (outcome.code, outcome.rule_ids) == (3, ["LINT001"])

    def test_compose_and_shell(self, lint: Callable[..., Outcome]) -> None:
        compose = "services: {engine: {image: 'vllm/vllm-openai:v0.33.0', command: 'm --qq=1'}}\n"
        script = "#!/bin/sh\nPORT=8000\nexec vllm serve m --port $PORT \\\n  --qq\n"
        outcome = lint(
            "c.yaml",
            "s",
            "--vllm-version=0.33.0",
            "--select=ARG001",
            "--format=json",
            c__yaml=compose,
            s=script,
        )
        found = json.loads(outcome.out)["findings"]
        assert [(item["file"], item["line"], item["object"]) for item in found] == [
            ("c.yaml", 1, "services/engine"),
            ("s", 4, ""),
        ]


class TestVersions:
    @pytest.mark.parametrize(
        ("change", "arguments", "rule_ids"),
        [
            (("", ""), (), []),
            (("v0.33.0", "v0.17.1"), (), ["ARG001"]),
            (("vllm/vllm-openai:v0.33.0", "mirror.example.net/vllm-openai:v0.17.1-cu129"), (), ["ARG001"]),
            (("v0.33.0", "v0.17.1"), ("--vllm-version", "0.33.0"), []),
            (("{name: demo}", '{name: demo, annotations: {vllm-phases.dev/vllm-version: "0.17.1"}}'), (), ["ARG001"]),
            (("vllm/vllm-openai:v0.33.0", "lmcache/vllm-openai:v0.3.9"), (), ["LINT003"]),
            (("v0.33.0", "v0.8.5"), (), ["LINT003"]),
        ],
        ids=["tag", "older tag", "mirror", "option", "annotation", "another product", "too old"],
    )  # fmt: skip
    def test_come_from(
        self,
        lint: Callable[..., Outcome],
        change: tuple[str, str],
        arguments: tuple[str, ...],
        rule_ids: list[str],
    ) -> None:
        text = ENGINE.replace("--port=8000", "--shutdown-timeout=5").replace(*change)
        outcome = lint("a.yaml", "--select", ONLY_FLAGS, "--format=json", *arguments, a__yaml=text)
        assert outcome.rule_ids == rule_ids

    def test_unknown_ones_are_told_once(self, lint: Callable[..., Outcome]) -> None:
        outcome = lint("a.yaml", "--select", ONLY_FLAGS, a__yaml=f"{UNTOLD}---\n{UNTOLD}")
        assert outcome.out == (
            "a.yaml:7:7: note: Pod/demo: nothing tells the vLLM version, here and in all for 2 of 2 engines: "
            "rules tied to a version were skipped [LINT003 unknown-version]\n".replace("Pod/demo: ", "")
            + "  7 |       image: vllm/vllm-openai:nightly\n"
            "    |       ^\n"
            "  Give --vllm-version, or the annotation vllm-phases.dev/vllm-version (0.11.0 to 0.33.0 are known).\n"
            "\n1 note\n"
        )


class TestSelection:
    @pytest.mark.parametrize(
        ("select", "ignore", "rule_ids"),
        [
            ("ARG,ENV", "", ["ARG001", "ENV001"]),
            ("ARG", "", ["ARG001"]),
            ("ARG,ENV", "ARG", ["ENV001"]),
            ("ENV,ARG001", "ARG", ["ARG001", "ENV001"]),
            ("ARG", "ARG001", []),
        ],
    )
    def test_the_longest_beginning_counts(
        self, lint: Callable[..., Outcome], select: str, ignore: str, rule_ids: list[str]
    ) -> None:
        text = FAULTY + '      env: [{name: VLLM_QQ, value: "1"}]\n'
        outcome = lint("a.yaml", "--select", select, "--ignore", ignore, "--format=json", a__yaml=text)
        assert outcome.rule_ids == rule_ids


class TestExplainAndRules:
    def test_explain_prints_the_documentation(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["explain", "arg002"]) == 0
        by_id = capsys.readouterr().out
        assert by_id.startswith(
            "# ARG002 removed-flag\n\n*error*, needs the version of the engine\n\n"
            "Fix: leaves it out where it does nothing any more, or gives its value to the flag that takes it now."
            "\n\nA flag that "
        )
        assert all(f"**{title}**" in by_id for title in ("Why", "Bad", "Good", "References"))
        assert run(["explain", "removed-flag"]) == 0
        assert capsys.readouterr().out == by_id

    def test_explain_knows_no_other_rules(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["explain", "AGR001"]) == 2
        assert capsys.readouterr().err.startswith("error: no rule AGR001; did you mean ARG001?")

    def test_rules_lists_them(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["rules"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines == sorted(lines)
        assert lines[0].split()[:4] == ["ARG001", "error", "fix", "unknown-flag"]

    def test_the_page_of_rules_is_what_the_rules_say(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["rules", "--check", str(ROOT / "docs/rules.md")]) == 0, capsys.readouterr().out

    def test_a_page_that_is_not(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        page = tmp_path / "rules.md"
        assert run(["rules", "--check", str(page)]) == 1
        assert f"not what the rules say; run `vllm-phases rules --write {page}`" in capsys.readouterr().out
        assert run(["rules", "--write", str(page)]) == 0
        assert run(["rules", "--check", str(page)]) == 0
