"""From a chart and values to text: the one protocol, and what goes in and out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vllm_phases.values import Values

DEFAULT_KUBE_VERSION = "1.34.0"


@dataclass(frozen=True)
class Release:
    """What a chart sees as .Release and .Capabilities; kube_version is "1.34" or "1.34.0"."""

    name: str = "release-name"
    namespace: str = "default"
    kube_version: str = DEFAULT_KUBE_VERSION
    api_versions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rendering:
    """Template path ("chart/templates/x.yaml") to rendered text, NOTES.txt included, and Helm's warnings."""

    templates: Mapping[str, str]
    warnings: tuple[str, ...] = ()


class RenderError(Exception):
    """Helm refused to load or render the chart.

    The message is Helm's without its wrapping: for `fail` in a template, the text that the chart wrote.
    template, line and column say where Helm stood; they are "" and 0 where Helm named no template.
    """

    def __init__(self, message: str, *, template: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.template = template
        self.line = line
        self.column = column

    @property
    def place(self) -> str:
        """ "template:line:column: ", or "" where Helm named no template."""
        return f"{self.template}:{self.line}:{self.column}: " if self.template else ""


class Renderer(Protocol):
    """Renders a chart (folder or .tgz) with the values of the user."""

    def render(self, chart: Path, values: Values, release: Release) -> Rendering:
        """Render every template; RenderError when Helm refuses."""
