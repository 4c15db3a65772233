"""From rendered text to Kubernetes objects, read as the API server reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vllm_phases.render.errors import NOT_A_MAPPING, broken_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.render import Rendering

_SEPARATOR = re.compile(r"^---(?=\s|$)")
_BROKEN = re.compile(r"error converting YAML to JSON: yaml: (.*)", re.DOTALL)


@dataclass(frozen=True)
class Manifest:
    """One Kubernetes object; line is where its document starts in the rendered template, counted from 1."""

    template: str
    line: int
    document: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The object's kind, "" when it has none."""
        return str(self.document.get("kind", ""))

    @property
    def name(self) -> str:
        """The object's metadata.name, "" when it has none."""
        metadata = self.document.get("metadata")
        return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""

    @property
    def id(self) -> str:
        """Kind and name, such as "Deployment/demo-server"."""
        return f"{self.kind}/{self.name}"


def parse(rendering: Rendering) -> tuple[Manifest, ...]:
    """Every object of a rendering, in the order of template path and document; NOTES.txt is no object.

    RenderError names the template and line of a document that is not YAML or not an object.
    """
    return tuple(
        Manifest(template, line, document)
        for template, text in sorted(rendering.templates.items())
        if not template.endswith(".txt")
        for line, source in _documents(text)
        if (document := _read(template, line, source))
    )


def _documents(text: str) -> Iterator[tuple[int, str]]:
    """The documents of a YAML stream with the line on which each starts."""
    start = 1
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if _SEPARATOR.match(line):
            yield start, "\n".join(lines)
            start, lines = number, ["   " + line[3:]]
        else:
            lines.append(line)
    yield start, "\n".join(lines)


def _read(template: str, line: int, source: str) -> dict[str, Any]:
    """Parse with Helm's own YAML reader, which is also the API server's: `1e3` is a number, `y` is true."""
    from helm_python.chart import values_from_yaml
    from helm_python.errors import HelmValuesError

    try:
        return values_from_yaml(source)
    except HelmValuesError as error:
        broken = _BROKEN.match(error.detail)
        raise broken_manifest(template, line, broken[1] if broken else NOT_A_MAPPING) from None
