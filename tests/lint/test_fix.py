"""`lint --fix`: what is written where, and what stays as it is."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from vllm_phases import fixing
from vllm_phases.cli import run
from vllm_phases.finding import Edit, Fix, Location

from tests.lint.examples import judged

if TYPE_CHECKING:
    from collections.abc import Callable

POD = """\
# ours
apiVersion: v1
kind: Pod
metadata: {name:   demo}   # blanks stay
spec:
    containers:
      - name: vllm
        image: 'vllm/vllm-openai:v0.33.0'
        args: [ Qwen/Qwen3-8B, "--gpu-memory-util=0.9", --port,  8000 ]  # and so do comments
        env:
          # for the hub
          - {name: HF_HUB_OFFLINE, value: 1}
"""
FIXED = POD.replace("--gpu-memory-util=", "--gpu-memory-utilization=").replace("8000", '"8000"')
FIXED = FIXED.replace("value: 1", 'value: "1"')
MISSPELT = POD.replace("--gpu-memory-util=0.9", "--gpu-memory-utilisation=0.9")
TOPICS = ("--select", "ARG,PKG,ENV,LINT")

Outcome = tuple[int, str, str]


@pytest.fixture
def lint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Run the command in an empty folder, with text piped in."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str, stdin: str = "") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = run(["lint", *TOPICS, *arguments])
        return (code, *capsys.readouterr())

    return command


def fixed(text: str, name: str = "a.yaml", unsafe: bool = False) -> str:
    """A text with everything made that the topics above find."""
    contents = {name: text.encode()}
    fixing.repair(contents, lambda: judged(contents[name].decode(), name), unsafe)
    return contents[name].decode()


class TestCommand:
    def test_writes_files(self, lint: Callable[..., Outcome]) -> None:
        Path("a.yaml").write_text(POD)
        assert lint("--fix", "a.yaml") == (0, "no findings\n3 fixed\n", "")
        assert Path("a.yaml").read_text() == FIXED

    def test_a_second_run_changes_nothing(self, lint: Callable[..., Outcome]) -> None:
        Path("a.yaml").write_text(FIXED)
        before = Path("a.yaml").stat().st_mtime_ns
        assert lint("--fix", "a.yaml") == (0, "no findings\n0 fixed\n", "")
        assert Path("a.yaml").stat().st_mtime_ns == before

    def test_tells_what_is_left(self, lint: Callable[..., Outcome]) -> None:
        Path("a.yaml").write_text(MISSPELT)
        code, out, _ = lint("--fix", "a.yaml")
        assert (code, out.splitlines()[-2:]) == (
            1,
            ["1 error; 1 fixable with --fix --unsafe-fixes", "2 fixed"],
        )
        assert "has no flag --gpu-memory-utilisation" in out
        assert lint("--fix", "--unsafe-fixes", "a.yaml") == (0, "no findings\n1 fixed\n", "")
        assert Path("a.yaml").read_text() == FIXED

    def test_diff_writes_nothing(self, lint: Callable[..., Outcome]) -> None:
        Path("a.yaml").write_text(POD.replace("\n", "\r\n"), newline="")
        code, out, err = lint("--fix", "--diff", "a.yaml")
        assert (code, err) == (1, "3 would be fixed\n")
        assert out.startswith("--- a.yaml\n+++ a.yaml\n@@ -6,7 +6,7 @@\n")
        assert "-          - {name: HF_HUB_OFFLINE, value: 1}" in out
        assert '+          - {name: HF_HUB_OFFLINE, value: "1"}' in out
        assert Path("a.yaml").read_bytes() == POD.replace("\n", "\r\n").encode()
        assert lint("--diff", "a.yaml")[:2] == (1, out)

    def test_no_diff_where_nothing_changes(self, lint: Callable[..., Outcome]) -> None:
        Path("a.yaml").write_text(MISSPELT.replace("8000", '"8000"').replace(": 1}", ': "1"}'))
        assert lint("--diff", "a.yaml") == (0, "", "0 would be fixed\n")

    def test_standard_input_goes_to_standard_output(self, lint: Callable[..., Outcome]) -> None:
        code, out, err = lint("--fix", "-", stdin=MISSPELT)
        assert (code, out) == (1, FIXED.replace("utilization=", "utilisation="))
        assert "has no flag --gpu-memory-utilisation" in err
        assert err.endswith("2 fixed\n")

    def test_suppressed_findings_are_left_alone(self, lint: Callable[..., Outcome]) -> None:
        text = POD.replace("# and so do comments", "# vllm-phases: ignore[ARG005, PKG002] for a reason")
        Path("a.yaml").write_text(text)
        lint("--fix", "a.yaml")
        assert Path("a.yaml").read_text() == text.replace("value: 1", 'value: "1"')

    def test_nothing_is_written_where_one_file_may_not_be(
        self, lint: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = Path.open

        def guarded(path: Path, mode: str = "r", **given: Any) -> Any:
            if path.name == "b.yaml" and "+" in mode:
                raise PermissionError(13, "Permission denied")
            return real(path, mode, **given)

        Path("a.yaml").write_text(POD)
        Path("b.yaml").write_text(POD)
        monkeypatch.setattr(Path, "open", guarded)
        assert lint("--fix", ".") == (2, "", "error: b.yaml: cannot be written: Permission denied\n")
        assert Path("a.yaml").read_text() == POD

    def test_one_file_by_two_names(self, lint: Callable[..., Outcome]) -> None:
        Path("a.yaml").write_text(POD)
        assert lint("--fix", "a.yaml", "./a.yaml", ".") == (0, "no findings\n3 fixed\n", "")
        assert Path("a.yaml").read_text() == FIXED

    def test_unsafe_fixes_alone_are_wrong_usage(self, lint: Callable[..., Outcome]) -> None:
        assert lint("--unsafe-fixes", "-") == (2, "", "error: --unsafe-fixes goes with --fix or --diff\n")

    def test_reports_name_the_fix(self, lint: Callable[..., Outcome]) -> None:
        Path("a.yaml").write_text(POD)
        found = json.loads(lint("a.yaml", "--format", "json")[1])["findings"]
        assert [finding["fix"]["edits"][0]["text"] for finding in found] == [
            "--gpu-memory-utilization",
            '"',
            '"',
        ]
        assert lint("a.yaml")[1].endswith("2 errors, 1 warning; 3 fixable with --fix\n")


class TestWhatStays:
    def test_line_ends_and_byte_order_mark(self) -> None:
        text = "\ufeff" + POD.replace("\n", "\r\n")
        contents = {"a.yaml": text.encode()}
        fixing.repair(contents, lambda: judged(contents["a.yaml"].decode("utf-8-sig"), "a.yaml"))
        after = contents["a.yaml"].decode()
        assert after.startswith("\ufeff# ours\r\n")
        assert after.count("\r\n") == after.count("\n")

    def test_other_documents(self) -> None:
        before, behind = (
            "a:  1 # first\n--- # second\n",
            "---\nkind: Secret\napiVersion: v1\nmetadata:\n   name: s",
        )
        after = fixed(before + POD + behind)
        assert after.startswith(before)
        assert after.endswith(behind)
        assert '"--gpu-memory-utilization=0.9"' in after

    def test_json(self) -> None:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "demo"},
            "spec": {"containers": [{"name": "vllm", "image": "vllm/vllm-openai:v0.33.0", "args": ["m", 1]}]},
        }
        for indent in (None, 2):
            after = json.loads(fixed(json.dumps(pod, indent=indent), "a.json"))
            assert after["spec"]["containers"][0]["args"] == ["m", "1"]

    def test_anchors_that_others_use(self) -> None:
        shared = POD.replace("env:", "env: &shared").replace(
            "value: 1}\n", "value: 1}\n      - {name: helper, image: a:1, env: *shared}\n"
        )
        assert "value: 1}" in fixed(shared)

    def test_comments_on_lines_that_would_go(self) -> None:
        text = POD.replace(
            "- {name: HF_HUB_OFFLINE, value: 1}",
            "- name: VLLM_USE_V1\n            value: '1'  # why\n          - {name: A, value: b}",
        )
        assert "VLLM_USE_V1" in fixed(text)
        assert "VLLM_USE_V1" not in fixed(text.replace("  # why", ""))

    @pytest.mark.parametrize(
        ("spec", "after"),
        [
            ("  # all\n  # of them\n  containers: X", "  enableServiceLinks: false\n  # all\n  # of them\n  containers: X"),
            ("  {containers: X}", "  {enableServiceLinks: false, containers: X}"),
            ('  {\n    "containers": X\n  }', '  {\n    enableServiceLinks: false,\n    "containers": X\n  }'),
            ("  enableServiceLinks: true # ?\n  containers: X", "  enableServiceLinks: false # ?\n  containers: X"),
            ("  &shared\n  containers: X", None),
        ],
    )  # fmt: skip
    def test_new_entries(self, spec: str, after: str | None) -> None:
        engine = "[{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [m]}]"
        head = "apiVersion: v1\nkind: Service\nmetadata: {name: vllm}\nspec: {selector: {a: b}, ports: [{port: 80}]}\n---\n"
        head += "apiVersion: v1\nkind: Pod\nmetadata: {name: demo}\nspec:"
        text, wanted = (f"{head}\n{one}\n".replace("X", engine) for one in (spec, after or spec))
        assert fixed(text) == wanted

    def test_new_items_of_lists(self) -> None:
        config = """'--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}'"""
        text = (
            POD.replace("--port,  8000", config)
            .replace("value: 1", "value: '1'")
            .replace("util=", "utilization=")
        )
        new = "{name: VLLM_NIXL_SIDE_CHANNEL_HOST, valueFrom: {fieldRef: {fieldPath: status.podIP}}}"
        assert fixed(text) == text.replace("          # for", f"          - {new}\n          # for")

    def test_blocks(self) -> None:
        text = POD[: POD.index("        args")] + (
            "        command: [bash, -c]\n        args:\n          - |\n            set -e\n"
            "            vllm serve Qwen/Qwen3-8B \\\n              --gpu-memory-util=0.9 \\\n"
            "              --enable-prefix-caching true\n"
        )
        assert fixed(text).endswith(
            "--gpu-memory-utilization=0.9 \\\n              --enable-prefix-caching\n"
        )

    def test_folded_text_has_no_certain_place(self) -> None:
        text = POD[: POD.index("        args")] + (
            "        command: [bash, -c]\n        args:\n          - >\n            vllm serve Qwen/Qwen3-8B\n"
            "            --gpu-memory-util=0.9\n"
        )
        assert "--gpu-memory-util=0.9" in fixed(text)


class TestScripts:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("vllm serve m --gpu-memory-util=0.9", "vllm serve m --gpu-memory-utilization=0.9"),
            ("vllm serve m '--gpu-memory-util'=0.9", "vllm serve m '--gpu-memory-utilization'=0.9"),
            ("A='--gpu-memory-util=0.9'\nvllm serve m $A", None),
            ("A=(--gpu-memory-util=0.9)\nvllm serve m \"${A[@]}\"", "A=(--gpu-memory-utilization=0.9)\nvllm serve m \"${A[@]}\""),
            ("bash <<E\nvllm serve m --gpu-memory-util 1\nE", "bash <<E\nvllm serve m --gpu-memory-utilization 1\nE"),
            ("vllm serve m --port 8000 --port 8000", "vllm serve m --port 8000"),
            ("vllm serve m \\\n  --port 8000 \\\n  --port 8000\necho", "vllm serve m \\\n  --port 8000\necho"),
            ("vllm serve m --port '8000' --port '8000'", None),
            ("vllm serve --model m --port 8000", "vllm serve m --port 8000"),
            ("vllm serve --model=m --port 8000", "vllm serve m --port 8000"),
            ("docker run -e HF_API_KEY=$K vllm/vllm-openai:v0.33.0 --model m", "docker run -e HF_TOKEN=$K vllm/vllm-openai:v0.33.0 m"),
        ],
    )  # fmt: skip
    def test_words_change_where_they_stand(self, before: str, after: str | None) -> None:
        name = "run.sh"
        contents = {name: f"{before}\n".encode()}
        fixing.repair(contents, lambda: judged(contents[name].decode(), name, vllm_version="0.33.0"))
        assert contents[name].decode() == f"{after or before}\n"

    def test_compose_commands(self) -> None:
        text = "services:\n  a:\n    image: vllm/vllm-openai:v0.33.0\n    command: m --gpu-memory-util 0.9  # x\n"
        assert fixed(text, "compose.yaml") == text.replace("util ", "utilization ")


class TestPasses:
    def test_fixes_at_one_place_wait_for_each_other(self) -> None:
        before = Path("a")
        place = Location(str(before), 1, 1)
        one, other = (Fix((Edit(place, place, 0, "", text),), safe=True) for text in ("x", "y"))
        assert list(fixing.apart([one, other, one])) == [one]

    def test_a_list_that_would_be_empty_goes(self) -> None:
        variables = "".join(
            f"        - name: {name}\n          value: '1'\n"
            for name in ("VLLM_USE_V1", "VLLM_ENGINE_ITERATION_TIMEOUT_S")
        )
        head = POD[: POD.index("        env:")].replace("image", "workingDir: /tmp\n        image")
        assert fixed(f"{head}        env:\n{variables}") == fixed(head)

    def test_difference_of_a_last_line_without_end(self) -> None:
        assert fixing.difference("f", b"a\nb", b"a\nc") == (
            "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
        )
