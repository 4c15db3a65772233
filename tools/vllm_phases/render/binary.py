"""The renderer for those who trust only their own `helm`."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vllm_phases.finding import UsageError
from vllm_phases.render import Release, Rendering
from vllm_phases.render.errors import render_error

if TYPE_CHECKING:
    from vllm_phases.values import Values

_SOURCE = re.compile(r"^---\n# Source: (?P<template>.+)\n", re.MULTILINE)
_WARNING = re.compile(r'^level=WARN msg="(.*?)"')
_NOTICE = re.compile(r"level=INFO|found symbolic link in path")


@dataclass(frozen=True)
class HelmBinary:
    """Renders with `helm template` of the program at `path`; hooks are included, notes are not."""

    path: str = "helm"

    def render(self, chart: Path, values: Values, release: Release) -> Rendering:
        """Render every template; UsageError if the program cannot be run, RenderError when it refuses."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(values.tree, file)
            file.flush()
            process = self._run(chart, Path(file.name), release)
        if process.returncode:
            raise render_error(process.stderr)
        return Rendering(_templates(process.stdout), _warnings(process.stderr))

    def _run(self, chart: Path, values: Path, release: Release) -> subprocess.CompletedProcess[str]:
        command = [self.path, "template", release.name, str(chart), "--namespace", release.namespace]
        command += ["--values", str(values), "--kube-version", release.kube_version]
        command += [word for version in release.api_versions for word in ("--api-versions", version)]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise UsageError(f"cannot run helm at {self.path}: {error.strerror}") from None


def _templates(output: str) -> dict[str, str]:
    """Split what `helm template` prints back into its templates; one template may print several documents."""
    templates: dict[str, str] = {}
    parts = _SOURCE.split("---\n" + output if not output.startswith("---\n") else output)
    for template, text in zip(parts[1::2], parts[2::2], strict=True):
        templates[template] = f"{templates[template]}---\n{text}" if template in templates else text
    return templates


def _warnings(stderr: str) -> tuple[str, ...]:
    """Helm 4 logs `level=WARN msg="…"`, Helm 3 writes plain lines; both log the links they follow."""
    lines = [_WARNING.sub(r"\1", line).strip() for line in stderr.splitlines() if not _NOTICE.search(line)]
    return tuple(filter(None, lines))
