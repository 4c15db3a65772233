"""Flags and variables of engines against what their vLLM release knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from vllm_phases import rules
from vllm_phases.model import Document, Release
from vllm_phases.rules.origin import in_values
from vllm_phases.values import Values, load

if TYPE_CHECKING:
    from pathlib import Path

    from vllm_phases.finding import Finding

NOTHING = Values({}, {})


def deployment(
    *args: str, template: str = "stack/charts/base/templates/deployment.yaml", **container: Any
) -> Document:
    """A Deployment whose engine container has these arguments."""
    engine = {"name": "vllm", "command": ["vllm", "serve"], "args": ["some/model", *args], **container}
    labels = {"app.kubernetes.io/component": "server"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [engine]}}
    return kubernetes(
        {"kind": "Deployment", "metadata": {"name": "demo-server"}, "spec": {"template": pod}}, template
    )


def kubernetes(tree: dict[str, Any], template: str = "a.yaml") -> Document:
    return Document(template, "kubernetes", tree)


def check(document: Document, version: str = "0.33.0", values: Values = NOTHING) -> list[Finding]:
    """What the rules on flags and variables find."""
    context = rules.Context(Release((document,), version), "1.35.0")
    return list(rules.run(context, rules.Selection(("ARG00", "ENV001")), in_values(values)))


def told(*args: str, version: str = "0.33.0") -> list[tuple[str, str, str]]:
    return [(found.rule_id, found.message, found.remediation) for found in check(deployment(*args), version)]


class TestEngines:
    @pytest.mark.parametrize(
        ("container", "words"),
        [
            ({"name": "vllm", "args": ["m", "--port=1"]}, ("m", "--port=1")),
            ({"name": "x", "command": ["vllm", "serve"], "args": ["m"]}, ("m",)),
            ({"name": "x", "command": ["/opt/bin/vllm", "serve", "m"]}, ("m",)),
            (
                {
                    "name": "x",
                    "command": ["python3", "-m", "vllm.entrypoints.openai.api_server"],
                    "args": ["--port=1"],
                },
                ("--port=1",),
            ),
        ],
        ids=["entrypoint", "command", "path", "module"],
    )
    def test_are_containers_that_run_vllm(self, container: dict[str, Any], words: tuple[str, ...]) -> None:
        pod = kubernetes({"kind": "Pod", "spec": {"containers": [container]}})
        (engine,) = Release((pod,)).engines
        assert tuple(word.text for word in engine.words) == words

    @pytest.mark.parametrize(
        "container",
        [{"name": "vllm", "command": ["python3", "-c", "…"]}, {"name": "proxy", "args": ["--port=1"]}],
        ids=["script", "other"],
    )
    def test_are_no_others(self, container: dict[str, Any]) -> None:
        assert Release((kubernetes({"kind": "Pod", "spec": {"containers": [container]}}),)).engines == ()

    def test_stand_in_any_pod_template(self) -> None:
        pod = {"spec": {"containers": [{"name": "vllm", "args": ["m"]}]}}
        group = {"spec": {"leaderWorkerTemplate": {"leaderTemplate": pod, "workerTemplate": pod}}}
        job = {"spec": {"jobTemplate": {"spec": {"template": pod}}}}
        assert len(Release((kubernetes(group),)).engines) == 2
        assert len(Release((kubernetes(job),)).engines) == 1


class TestUnknownFlag:
    def test_names_the_release_and_the_nearest_flag(self) -> None:
        assert told("--tensor-paralel-size=2") == [
            (
                "ARG001",
                "vLLM 0.33.0 has no flag --tensor-paralel-size; did you mean --tensor-parallel-size?",
                "Write --tensor-parallel-size.",
            )
        ]

    def test_without_anything_near(self) -> None:
        assert told("--qqqqqqqq") == [("ARG001", "vLLM 0.33.0 has no flag --qqqqqqqq", "Remove --qqqqqqqq.")]

    def test_an_ambiguous_beginning(self) -> None:
        ((rule, message, remediation),) = told("--tokenizer-=auto")
        assert rule == "ARG001"
        assert message.startswith("vLLM 0.33.0 takes --tokenizer- for any of --tokenizer-mode, ")
        assert remediation == "Write the whole flag."

    def test_a_flag_of_a_later_release_is_unknown(self) -> None:
        assert [rule for rule, _, _ in told("--shutdown-timeout=5", version="0.17.0")] == ["ARG001"]
        assert told("--shutdown-timeout=5", version="0.18.0") == []


class TestRemovedFlag:
    def test_names_the_last_release_that_had_it(self) -> None:
        assert told("--task=generate") == [
            (
                "ARG002",
                "vLLM 0.33.0 has no flag --task any more; 0.12.0 was the last release that had it",
                "Write --runner and --convert, such as --runner=pooling --convert=embed for embeddings.",
            )
        ]
        assert [rule for rule, _, _ in told("--task=generate", version="0.12.0")] == ["ARG008"]


class TestAcceptedFlags:
    @pytest.mark.parametrize(
        "words",
        [
            ["--max-model-len=auto"],
            ["--max-model-len=-1"],
            ["--max-model-len", "-1"],
            ["--max-model-len=32k"],
            ["--max_model_len=1048576"],
            ["-tp=2"],
            ["-tp", "2"],
            ["-O3"],
            ["--served-model-name", "a", "b", "--port=1"],
            ["--no-enable-prefix-caching"],
            ["--gpu-memory-utilization=.9"],
            ['--hf-overrides={"a": 1}'],
            ["--kv-transfer-config.kv_connector", "NixlConnector"],
            ["--kv-transfer-config.kv_connector=NixlConnector"],
            ["--swap-space=4"],
        ],
        ids=" ".join,
    )
    def test_are_what_the_parser_accepts(self, words: list[str]) -> None:
        version = "0.17.1" if words == ["--swap-space=4"] else "0.33.0"
        assert told(*words, version=version) == []

    def test_an_abbreviation_is_a_warning(self) -> None:
        ((rule, message, remediation),) = told("--gpu-memory-util=0.8")
        assert (rule, remediation) == ("ARG005", "Write --gpu-memory-utilization.")
        completes = "vLLM 0.33.0 completes --gpu-memory-util to --gpu-memory-utilization"
        assert message == f"{completes}; a later release may refuse it"


class TestValuesOfFlags:
    @pytest.mark.parametrize(
        ("word", "rule", "message"),
        [
            ("--port=1.5", "ARG004", "--port is '1.5', but must be a whole number"),
            (
                "--max-model-len=1.31072e+05",
                "ARG004",
                "--max-model-len is '1.31072e+05', but must be auto or a whole number, "
                "such as 4096, 4k (4000) or 4K (4096)",
            ),
            (
                "--gpu-memory-utilization=half",
                "ARG004",
                "--gpu-memory-utilization is 'half', but must be a number",
            ),
            ("--kv-transfer-config={a: 1}", "ARG004", "--kv-transfer-config is '{a: 1}', but must be JSON"),
            ("--enforce-eager=true", "ARG004", "--enforce-eager takes no value, but is given 'true'"),
            ("--port", "ARG004", "--port has no value"),
            ("--port.x=1", "ARG004", "--port.x: --port takes no keys"),
            (
                "--max-lora-rank=7",
                "ARG003",
                "--max-lora-rank is '7', but takes only 1, 8, 16, 32, 64, 128, 256, 320, 512",
            ),
        ],
    )
    def test_must_be_of_the_flags_type(self, word: str, rule: str, message: str) -> None:
        assert [(found, said) for found, said, _ in told(word)] == [(rule, message)]


class TestUnknownEnvironment:
    def variables(self, *names: str) -> list[tuple[str, str, str]]:
        found = check(deployment(env=[{"name": name, "value": "1"} for name in names]))
        assert {finding.severity.value for finding in found} <= {"warning"}
        return [(finding.rule_id, finding.message, finding.remediation) for finding in found]

    def test_known_variables_and_those_of_others_pass(self) -> None:
        assert self.variables("VLLM_LOGGING_LEVEL", "NCCL_DEBUG") == []

    def test_a_misspelt_one_has_the_nearest(self) -> None:
        assert self.variables("VLLM_LOGGING_LEVL") == [
            (
                "ENV001",
                "vLLM 0.33.0 does not read VLLM_LOGGING_LEVL; did you mean VLLM_LOGGING_LEVEL?",
                "Write VLLM_LOGGING_LEVEL.",
            )
        ]

    def test_a_dropped_one_has_its_last_release(self) -> None:
        ((rule, message, remediation),) = self.variables("VLLM_ATTENTION_BACKEND")
        assert (rule, remediation) == ("ENV001", "Give --attention-backend (from vLLM 0.13).")
        assert message.startswith("vLLM 0.33.0 does not read VLLM_ATTENTION_BACKEND any more; 0.1")
        assert message.endswith(" was the last release that did")


class TestOrigin:
    """The line of the values that gave the engine its flag."""

    @pytest.mark.parametrize(
        ("text", "path", "line"),
        [
            ("global:\n  vllm:\n    args:\n      qq: 1\n", "global.vllm.args.qq", 4),
            ("base:\n  args:\n    qq: 1\nglobal: {vllm: {args: {qq: 2}}}\n", "base.args.qq", 3),
            ("base:\n  prefill: {args: {qq: 1}}\n  server: {args: {qq: 2}}\n", "base.server.args.qq", 3),
            ("other: {args: {qq: 1}}\nbase: {args: {qq: 1}}\n", "base.args.qq", 2),
        ],
        ids=["shared", "own block wins", "role by component", "own layer"],
    )
    def test_of_a_flag(self, tmp_path: Path, text: str, path: str, line: int) -> None:
        file = tmp_path / "v.yaml"
        file.write_text(text)
        (found,) = check(deployment("--qq=1"), values=load([file]))
        assert found.location
        assert (found.path, found.location.file, found.location.line) == (path, str(file), line)
        assert found.object == "Deployment/demo-server"

    def test_of_a_negated_flag(self, tmp_path: Path) -> None:
        file = tmp_path / "v.yaml"
        file.write_text("base: {args: {qq: false}}")
        (found,) = check(deployment("--no-qq"), values=load([file]))
        assert found.path == "base.args.qq"

    def test_is_the_template_where_the_user_set_nothing(self) -> None:
        (found,) = check(deployment("--qq=1"))
        assert str(found.location) == "stack/charts/base/templates/deployment.yaml:1:1"
        assert found.path == ""
