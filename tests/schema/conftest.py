"""A folder of sources for each test of the schema generator."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from vllm_phases.finding import UsageError
from vllm_phases.schema import generation
from vllm_phases.schema.bundle import bundle
from vllm_phases.schema.docs import values_md
from vllm_phases.schema.values_yaml import values_yaml


@dataclass(frozen=True)
class Schemas:
    """`schemas/` in the current folder, which is a scratch folder. The chart under test is called demo."""

    folder: Path = Path("schemas")

    def write(self, file: str, text: str) -> None:
        """Write one source file; an indented text is dedented."""
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    def chart(self, properties: str, **root: Any) -> None:
        """Write the root of the demo chart with these properties."""
        head = {"title": "demo", "description": "A chart.", "type": "object", **root}
        body = textwrap.indent(textwrap.dedent(properties), "  ")
        self.write("charts/demo.yaml", f"{yaml.safe_dump(head, sort_keys=False)}properties:\n{body}")

    def bundle(self) -> dict[str, Any]:
        return bundle(generation.load(self.folder), "demo")

    def values_yaml(self) -> str:
        return values_yaml(generation.load(self.folder), "demo")

    def values_md(self) -> str:
        return values_md(generation.load(self.folder))

    def errors(self) -> list[str]:
        """What is wrong with the sources, line by line."""
        with pytest.raises(UsageError) as caught:
            generation.load(self.folder)
        return str(caught.value).splitlines()


@pytest.fixture
def schemas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Schemas:
    """Sources written by the test itself."""
    monkeypatch.chdir(tmp_path)
    return Schemas()
