"""`vllm-phases render`: manifests on standard output, everything else on standard error."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.tool.conftest import CONFIG_MAP, ROOT, MakeChart, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable


def test_prints_every_template_with_its_source(
    make_chart: MakeChart, command: Callable[..., Outcome]
) -> None:
    templates = {
        "b.yaml": "\nkind: B\n\n",
        "a.yaml": "kind: A",
        "empty.yaml": "{{ if false }}x{{ end }}",
        "NOTES.txt": "Hi",
    }
    assert command("render", "--chart", make_chart(templates=templates)) == Outcome(
        0,
        "---\n# Source: demo/templates/a.yaml\nkind: A\n---\n# Source: demo/templates/b.yaml\nkind: B\n",
        "",
    )


def test_merges_all_files(make_chart: MakeChart, command: Callable[..., Outcome]) -> None:
    chart = make_chart(values="a: 1", templates={"a.yaml": "kind: K\na: {{ .Values.a }}"})
    (chart / "x.yaml").write_text("a: 2")
    (chart / "z.yaml").write_text("a: 3")
    assert command("render", "--chart", chart, "-f", chart / "x.yaml", "-f", chart / "z.yaml").out.endswith(
        "a: 3\n"
    )


def test_refused_values_are_not_rendered(make_chart: MakeChart, command: Callable[..., Outcome]) -> None:
    chart = make_chart(
        values="a: 1", schema={"properties": {"a": {"type": "integer", "description": "An a."}}}
    )
    assert command("render", "--chart", chart, "--set", "a=x") == Outcome(
        1, "", '--set a=x: error: a is "x", must be an integer [VAL002 wrong-type]\n  a: An a.\n'
    )


def test_a_template_that_fails_prints_nothing_else(
    make_chart: MakeChart, command: Callable[..., Outcome]
) -> None:
    chart = make_chart(templates={"a.yaml": CONFIG_MAP, "b.yaml": '{{ fail "set c" }}'})
    assert command("render", "--chart", chart) == Outcome(
        4, "", "error: Helm cannot render: demo/templates/b.yaml:1:3: set c\n"
    )


def test_helms_warnings_go_to_standard_error(make_chart: MakeChart, command: Callable[..., Outcome]) -> None:
    make_chart("sub")
    chart = make_chart(dependencies=[{"name": "sub", "version": "*", "condition": "sub.enabled"}])
    (chart / "charts").mkdir()
    (chart / "charts/sub").symlink_to("../../sub")
    outcome = command("render", "--chart", chart, "--set", "sub.enabled=maybe")
    assert outcome.err == "warning: returned non-bool value path=sub.enabled chart=sub\n"
    assert outcome.out.count("kind: ConfigMap") == 2


def test_a_reader_may_stop_early(make_chart: MakeChart) -> None:
    chart = make_chart(templates={"a.yaml": CONFIG_MAP + "data: {x: {{ repeat 1000000 `x` }}}"})
    command = [sys.executable, "-m", "vllm_phases", "render", "--chart", str(chart)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""


def test_phase_1_of_this_repository(command: Callable[..., Outcome]) -> None:
    phase = ["--chart", ROOT / "charts/vllm-stack", "-f", ROOT / "values/phase1.yaml"]
    outcome = command("render", *phase, "--set", "global.vllm.args.max-model-len=1048576")
    assert outcome.code == 0
    assert "--max-model-len=1048576\n" in outcome.out
    assert command("render", *phase).out == command("render", *phase).out
