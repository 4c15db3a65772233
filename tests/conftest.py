"""Rendering in tests: `render` and `render_error` show what a chart makes of values, in milliseconds."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from vllm_phases import manifests, values
from vllm_phases.render import DEFAULT_KUBE_VERSION, Release, RenderError, Rendering
from vllm_phases.render.embedded import EmbeddedRenderer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Objects:
    """The objects of one rendering by "Kind/name", in the order of their templates, and what Helm says."""

    by_id: Mapping[str, Any]
    notes: str
    warnings: tuple[str, ...]

    @property
    def ids(self) -> list[str]:
        return list(self.by_id)

    def get(self, object_id: str) -> Any:
        assert object_id in self.by_id, f"no {object_id} among {', '.join(self.ids)}"
        return self.by_id[object_id]


class Render:
    """Renders a chart of this repository, as release `demo` in namespace `default` unless `release` says otherwise.

    Files are values files relative to the repository; `values` merges after them and `set` comes last.
    Helm holds the values against the chart's schema first, unless `skip_schema` is given, which is
    `--skip-schema-validation`.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch

    def __call__(self, *files: str | Path, **options: Any) -> Objects:
        rendering = self._rendering(*files, **options)
        found = manifests.parse(rendering)
        by_id = {manifest.id: manifest.document for manifest in found}
        assert len(by_id) == len(found), f"objects given twice among {[manifest.id for manifest in found]}"
        notes = [text for name, text in rendering.templates.items() if name.endswith("/NOTES.txt")]
        return Objects(by_id, "".join(notes), rendering.warnings)

    def error(self, *files: str | Path, **options: Any) -> str:
        with pytest.raises(RenderError) as caught:
            self._rendering(*files, **options)
        return str(caught.value)

    def _rendering(
        self,
        *files: str | Path,
        set: Sequence[str] = (),
        values: Mapping[str, Any] | None = None,
        chart: str | Path = "charts/vllm-stack",
        kube_version: str = DEFAULT_KUBE_VERSION,
        skip_schema: bool = False,
        release: tuple[str, str] = ("demo", "default"),
    ) -> Rendering:
        folder = self._without_schema(ROOT / chart) if skip_schema else ROOT / chart
        return EmbeddedRenderer().render(
            folder, self._load(files, values, set), Release(*release, kube_version)
        )

    def _load(
        self, files: Sequence[str | Path], tree: Mapping[str, Any] | None, sets: Sequence[str]
    ) -> values.Values:
        layers = [ROOT / file for file in files]
        if tree is not None:
            layers.append(self._scratch / "values.json")
            layers[-1].write_text(json.dumps(tree))
        return values.load(layers, sets)

    def _without_schema(self, chart: Path) -> Path:
        copy = self._scratch / "no-schema" / chart.name
        if not copy.exists():
            shutil.copytree(chart, copy, ignore=shutil.ignore_patterns("values.schema.json"))
        return copy


@pytest.fixture(scope="session")
def render(tmp_path_factory: pytest.TempPathFactory) -> Render:
    """Objects of a chart: `render("values/phase1.yaml").get("Service/demo-server")`."""
    return Render(tmp_path_factory.mktemp("render"))


@pytest.fixture(scope="session")
def render_error(render: Render) -> Any:
    """What Helm says when it refuses: for `fail` in a template exactly the text that the template wrote."""
    return render.error
