"""What a user asks `check` and `render` for: the options that both share, and what they stand for."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vllm_phases.finding import UsageError
from vllm_phases.render import DEFAULT_KUBE_VERSION, Release

if TYPE_CHECKING:
    from collections.abc import Callable

    from vllm_phases.check import Checker, ValuesSet
    from vllm_phases.render import Renderer

_CHART = Path("charts/vllm-stack")
_PATH: Any = click.Path(path_type=Path)
_RENDERER = "Helm's engine inside this program, or a helm program."
_OPTIONS = (
    click.option("-f", "--values", "files", type=_PATH, multiple=True, help="Values file; repeat to merge."),
    click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="One value, as for helm; repeat."),
    click.option("--chart", type=_PATH, help=f"Folder or .tgz. Default: {_CHART} here or in a folder above."),
    click.option("--kube-version", default=DEFAULT_KUBE_VERSION, help="Kubernetes to render and check for."),
    click.option("--renderer", type=click.Choice(["embedded", "helm"]), default="embedded", help=_RENDERER),
    click.option("--helm", type=_PATH, default="helm", help="The program for --renderer helm."),
)


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that make a Request."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class Request:
    """The options as given; relative paths are relative to the current folder."""

    files: tuple[Path, ...]
    sets: tuple[str, ...]
    chart: Path | None
    kube_version: str
    renderer: str
    helm: Path

    def release(self) -> Release:
        """The release to render; UsageError for a Kubernetes version that is none."""
        if not re.fullmatch(r"v?\d+\.\d+(\.\d+.*)?", self.kube_version):
            raise UsageError(
                f"--kube-version {self.kube_version}: write a version such as {DEFAULT_KUBE_VERSION}"
            )
        return Release(kube_version=self.kube_version)

    def chosen_chart(self) -> Path:
        """The chart; UsageError if it is not there."""
        chart = self.chart or next((root / _CHART for root in _roots()), None)
        if chart is None:
            raise UsageError(f"no {_CHART} here or in a folder above; name a chart with --chart")
        if not chart.exists():
            raise UsageError(f"{chart}: no such chart")
        return chart

    def checker(self) -> Checker:
        """What checks sets of values against the chart."""
        from vllm_phases import configuration
        from vllm_phases.check import Checker
        from vllm_phases.schema.validate import ValuesSchema

        release, chart = self.release(), self.chosen_chart()
        selection = configuration.load(Path.cwd()).selection()
        return Checker(chart, ValuesSchema(chart), self.chosen_renderer(), release, selection)

    def chosen_renderer(self) -> Renderer:
        """The embedded Helm, or the program."""
        if self.renderer == "helm":
            from vllm_phases.render.binary import HelmBinary

            return HelmBinary(str(self.helm))
        from vllm_phases.render.embedded import EmbeddedRenderer

        return EmbeddedRenderer()

    def one_set(self) -> ValuesSet:
        """All files and --set together, as Helm takes them."""
        return self._set(self.files)

    def values_sets(self) -> tuple[ValuesSet, ...]:
        """The files given, as one set; without any, each values/phase*.yaml beside the charts as its own."""
        if self.files or self.chart:
            return (self.one_set(),)
        return tuple(
            self._set((file,)) for root in _roots() for file in sorted((root / "values").glob("phase*.yaml"))
        )

    def _set(self, files: tuple[Path, ...]) -> ValuesSet:
        from vllm_phases import values
        from vllm_phases.check import ValuesSet

        return ValuesSet(files, values.load(files, self.sets))


def _roots() -> tuple[Path, ...]:
    """The nearest folder, from here upwards, that holds the charts, as a relative path; or none."""
    here = Path.cwd()
    holders = (folder for folder in (here, *here.parents) if (folder / _CHART / "Chart.yaml").is_file())
    return tuple(Path(os.path.relpath(folder)) for folder in list(holders)[:1])
