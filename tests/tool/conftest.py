"""Small charts in a temporary folder, and the command line in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from vllm_phases.cli import run

ROOT = Path(__file__).parents[2]
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n"

MakeChart = Callable[..., Path]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def make_chart(workplace: Path) -> MakeChart:
    """Write a chart of one ConfigMap into charts/NAME; the relative path is returned."""

    def make(
        name: str = "demo",
        *,
        values: str = "",
        schema: Mapping[str, Any] | None = None,
        templates: Mapping[str, str] | None = None,
        **metadata: Any,
    ) -> Path:
        chart = Path("charts") / name
        (chart / "templates").mkdir(parents=True)
        described = {"apiVersion": "v2", "name": name, "version": "0.1.0", **metadata}
        (chart / "Chart.yaml").write_text(json.dumps(described))
        (chart / "values.yaml").write_text(values)
        if schema is not None:
            draft = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
            (chart / "values.schema.json").write_text(json.dumps(draft))
        for template, text in (templates or {"configmap.yaml": CONFIG_MAP}).items():
            (chart / "templates" / template).write_text(text)
        return chart

    return make


@dataclass(frozen=True)
class Outcome:
    """Exit code, standard output and standard error of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run `vllm-phases` with the given words."""

    def call(*words: str | Path) -> Outcome:
        code = run([str(word) for word in words])
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture(params=["helm", "helm3"])
def helm(request: pytest.FixtureRequest) -> Path:
    """A real Helm program: 4 and 3."""
    path: Path = ROOT / ".cache/bin" / request.param
    if not path.exists():
        pytest.fail(f"{path.relative_to(ROOT)} is missing: run `make tools`")
    return path
