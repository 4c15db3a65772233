"""Settings of a project, from .vllm-phases.yaml or pyproject.toml."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from vllm_phases import configuration
from vllm_phases.configuration import Configuration
from vllm_phases.finding import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def refused(folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        configuration.load(folder)
    return str(caught.value).replace(f"{folder}/", "")


def test_without_one_the_defaults_count(tmp_path: Path) -> None:
    assert configuration.load(tmp_path) == Configuration(folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            ".vllm-phases.yaml",
            "vllm-version: '0.33.0'\nselect: [KV, ARG]\nignore: ARG005\nfail-on: warning\n",
        ),
        (
            "pyproject.toml",
            '[tool.vllm-phases]\nvllm-version = "0.33.0"\nselect = ["KV", "ARG"]\nignore = "ARG005"\n'
            'fail-on = "warning"\n',
        ),
    ],
)
def test_says_what_to_run_and_what_fails(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert configuration.load(below) == Configuration(
        "0.33.0", None, ("KV", "ARG"), ("ARG005",), "warning", (), tmp_path
    )


def test_another_tools_pyproject_is_none(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 110\n")
    assert configuration.load(tmp_path) == Configuration(folder=tmp_path)


def test_an_empty_one_is_the_defaults(tmp_path: Path) -> None:
    (tmp_path / ".vllm-phases.yaml").write_text("# nothing yet\n")
    assert configuration.load(tmp_path) == Configuration(folder=tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fial-on: error\n", ".vllm-phases.yaml: unknown key fial-on; did you mean fail-on?"),
        (
            "qq: 1\n",
            ".vllm-phases.yaml: unknown key qq; known are vllm-version, kube-version, select, ignore, fail-on, "
            "exclude",
        ),
        (
            "fail-on: fatal\n",
            ".vllm-phases.yaml: fail-on is 'fatal', but must be one of error, warning, note",
        ),
        ("select: {KV: true}\n", ".vllm-phases.yaml: select must be a list of texts"),
        (
            "kube-version: 1.30\n",
            '.vllm-phases.yaml: kube-version must be a text in quotes, such as kube-version: "1.34"',
        ),
        ("- a\n", ".vllm-phases.yaml: the configuration must be a mapping of keys"),
        ("a: [\n", ".vllm-phases.yaml:2:1: did not find expected node content"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / ".vllm-phases.yaml").write_text(text)
    assert refused(tmp_path) == message


def test_broken_toml(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.vllm-phases\n")
    assert refused(tmp_path).startswith("pyproject.toml: Expected ']'")


def test_two_in_one_folder(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.vllm-phases]\n")
    (tmp_path / ".vllm-phases.yaml").write_text("select: [KV]\n")
    assert (
        refused(tmp_path)
        == f"{tmp_path}: both .vllm-phases.yaml and pyproject.toml configure vllm-phases; keep one"
    )


def test_the_command_line_wins_key_by_key() -> None:
    configured = Configuration("0.33.0", select=("KV",), ignore=("ARG",))
    assert configuration.merged(configured, {"select": ("SEC",), "ignore": (), "vllm_version": None}) == (
        Configuration("0.33.0", select=("SEC",), ignore=("ARG",))
    )
