"""`vllm-phases schema generate` and `schema check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from vllm_phases.cli import run

if TYPE_CHECKING:
    from .conftest import Schemas

GENERATED = [Path("charts/demo/values.schema.json"), Path("charts/demo/values.yaml"), Path("docs/values.md")]


@pytest.fixture
def demo(schemas: Schemas) -> Schemas:
    """Sources of one chart, and nothing generated yet."""
    schemas.chart("key: {description: A key., type: string, default: old}")
    return schemas


def test_generate_writes_every_file_and_says_so(demo: Schemas, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "generate"]) == 0
    assert capsys.readouterr().out == (
        "charts/demo/values.schema.json: written\ncharts/demo/values.yaml: written\ndocs/values.md: written\n"
    )
    assert run(["schema", "check"]) == 0
    assert capsys.readouterr().out == "3 generated files match the schemas\n"


def test_generate_leaves_alone_what_is_right(demo: Schemas, capsys: pytest.CaptureFixture[str]) -> None:
    run(["schema", "generate"])
    before = [path.stat().st_mtime_ns for path in GENERATED]
    capsys.readouterr()
    run(["schema", "generate"])
    assert capsys.readouterr().out == "".join(f"{path}: unchanged\n" for path in GENERATED)
    assert [path.stat().st_mtime_ns for path in GENERATED] == before


def test_check_names_each_stale_file_and_shows_the_difference(
    demo: Schemas, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["schema", "generate"])
    capsys.readouterr()
    path = Path("charts/demo/values.yaml")
    path.write_text(path.read_text().replace("key: old", "key: new"))
    assert run(["schema", "check"]) == 1
    assert capsys.readouterr().out == (
        "charts/demo/values.yaml: not what the schemas say; run `vllm-phases schema generate`\n"
        "  --- in the file\n"
        "  +++ from the schemas\n"
        "  @@ -5,2 +5,2 @@\n"
        "   # A key.\n"
        "  -key: new\n"
        "  +key: old\n"
    )


def test_check_finds_missing_files_and_keeps_the_hint_short(
    demo: Schemas, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schema", "check"]) == 1
    out = capsys.readouterr().out
    stale = [
        line.partition(":")[0] for line in out.splitlines() if "run `vllm-phases schema generate`" in line
    ]
    assert stale == [path.as_posix() for path in GENERATED]
    assert "  … 10 more lines" in out
    assert not any(path.exists() for path in GENERATED)


@pytest.mark.parametrize("command", ["generate", "check"])
def test_a_wrong_source_ends_with_code_2_and_nothing_is_written(
    demo: Schemas, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    demo.chart("key: {description: A key, type: string, default: new}")
    assert run(["schema", command]) == 2
    captured = capsys.readouterr()
    assert (
        captured.err
        == "error: schemas/charts/demo.yaml:5: $.properties.key: end the description with a full stop\n"
    )
    assert captured.out == ""
    assert not any(path.exists() for path in GENERATED)


def test_the_schemas_are_found_from_a_folder_below(
    demo: Schemas, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("charts/demo/templates").mkdir(parents=True)
    monkeypatch.chdir("charts/demo/templates")
    assert run(["schema", "generate"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "../../../charts/demo/values.yaml: written"
    assert Path("../values.yaml").exists()


def test_folders_can_be_named(demo: Schemas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run(["schema", "generate", "--schemas", "../schemas", "--charts", "out", "--docs", "out.md"]) == 0
    assert sorted(path.as_posix() for path in Path().rglob("*.*")) == [
        "out.md",
        "out/demo/values.schema.json",
        "out/demo/values.yaml",
    ]


def test_a_file_that_cannot_be_written_is_named(demo: Schemas, capsys: pytest.CaptureFixture[str]) -> None:
    Path("docs/values.md").mkdir(parents=True)
    assert run(["schema", "generate"]) == 2
    assert capsys.readouterr().err == "error: docs/values.md: cannot be written: Is a directory\n"


def test_without_schemas_there_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["schema", "check"]) == 2
    assert capsys.readouterr().err == (
        f"error: no schemas/charts in {tmp_path.as_posix()} or above: name the folder with --schemas\n"
    )
