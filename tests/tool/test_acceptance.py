"""What this repository promises of its own charts and values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.tool.conftest import ROOT, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_check_has_a_row_for_every_phase_and_finds_nothing(command: Callable[..., Outcome]) -> None:
    outcome = command("check")
    header, *rows = outcome.out.splitlines()
    assert outcome.code == 0
    assert header.split() == ["VALUES", "VERDICT", "VLLM", "OBJECTS", "ENGINES", "FINDINGS"]
    assert [row.split()[0] for row in rows] == [
        str(file) for file in sorted(Path("values").glob("phase*.yaml"))
    ]
    assert {(row.split()[1], row.split()[-1]) for row in rows} == {("ok", "none")}


@pytest.mark.parametrize(
    "overlay", sorted((ROOT / "values/overlays").glob("*.yaml")), ids=lambda path: path.stem
)
def test_every_overlay_fits_phase_1(command: Callable[..., Outcome], overlay: Path) -> None:
    outcome = command("check", "-f", "values/phase1.yaml", "-f", overlay)
    assert (outcome.code, outcome.out.splitlines()[1].split()[-1]) == (0, "none"), outcome.out


@pytest.mark.parametrize("chart", ["vllm-base", "vllm-stack"])
def test_every_ci_values_file_is_clean(command: Callable[..., Outcome], chart: str) -> None:
    files = sorted(Path("charts", chart, "ci").glob("*-values.yaml"))
    assert files
    for file in files:
        outcome = command("check", "--chart", f"charts/{chart}", "-f", file)
        assert outcome.code == 0, outcome.out


def test_a_misspelt_flag_names_the_release_and_the_nearest_flag(command: Callable[..., Outcome]) -> None:
    outcome = command("check", "-f", "values/phase1.yaml", "--set", "global.vllm.args.tensor-paralel-size=2")
    assert outcome.code == 1
    assert outcome.out.splitlines()[:2] == [
        "--set global.vllm.args.tensor-paralel-size=2: error: vLLM 0.33.0 has no flag --tensor-paralel-size; "
        "did you mean --tensor-parallel-size? [ARG001 unknown-flag]",
        "  Write --tensor-parallel-size.",
    ]


def test_a_misspelt_key_names_file_line_and_nearest_key(
    command: Callable[..., Outcome], tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("base:\n  # two of them\n  replicsa: 2\n")
    outcome = command("check", "-f", "values/phase1.yaml", "-f", file)
    assert outcome.code == 1
    assert outcome.out.splitlines()[:3] == [
        f"{file}:3:3: error: base.replicsa is not a key of base; did you mean replicas? [VAL001 unknown-key]",
        "  3 |   replicsa: 2",
        "    |   ^",
    ]


def test_a_flag_that_a_typed_key_owns_names_the_key(command: Callable[..., Outcome]) -> None:
    outcome = command("check", "--set", "base.args.tensor-parallel-size=2")
    assert outcome.code == 1
    assert outcome.out.splitlines()[0] == (
        "--set base.args.tensor-parallel-size=2: error: base.args.tensor-parallel-size: "
        "set base.parallelism.tensor instead, which renders this flag [VAL004 refused-value]"
    )


def test_a_missing_file_is_one_line(command: Callable[..., Outcome]) -> None:
    assert command("check", "-f", "values/phase9.yaml") == Outcome(
        2, "", "error: values/phase9.yaml: no such values file\n"
    )


@pytest.mark.parametrize("digits", ["1048576", "9007199254740991"])
def test_whole_numbers_keep_their_digits(
    command: Callable[..., Outcome], tmp_path: Path, digits: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(f"global: {{vllm: {{args: {{max-model-len: {digits}}}}}}}")
    for words in (["--set", f"global.vllm.args.max-model-len={digits}"], ["-f", file]):
        assert f"--max-model-len={digits}\n" in command("render", "-f", "values/phase1.yaml", *words).out


def test_the_packaged_chart_refuses_a_misspelt_key(command: Callable[..., Outcome], tmp_path: Path) -> None:
    from helm_python.chart import package

    archive = package("charts/vllm-stack", destination=tmp_path)
    assert command("check", "--chart", archive).code == 0
    outcome = command("check", "--chart", archive, "--set", "base.replicsa=2")
    assert outcome.code == 1
    assert outcome.out.startswith(
        "--set base.replicsa=2: error: base.replicsa is not a key of base; did you mean replicas?"
    )
