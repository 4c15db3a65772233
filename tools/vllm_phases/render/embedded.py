"""The renderer that needs no program: Helm's own engine as a library."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vllm_phases.render import Release, RenderError, Rendering, library

if TYPE_CHECKING:
    from pathlib import Path

    from helm_python.chart import Chart

    from vllm_phases.values import Values

_WARNING = re.compile(r"\S+ \S+ WARN (.*)")


class EmbeddedRenderer:
    """Renders with the Helm library that this Python package carries."""

    def render(self, chart: Path, values: Values, release: Release) -> Rendering:
        """Render every template; RenderError when Helm refuses the chart, the values or a template."""
        with library.calls() as printed, library.load(chart) as loaded:
            _require_dependencies(loaded)
            _require_kubernetes(loaded, release)
            templates = library.render(loaded, values.tree, release)
        return Rendering(templates, tuple(match[1] for line in printed if (match := _WARNING.match(line))))


def _require_dependencies(chart: Chart) -> None:
    """Refuse a chart without its subcharts, as `helm install` does; rendering alone passes over them."""
    declared = {dependency["name"] for dependency in chart.metadata.get("dependencies", ())}
    if missing := declared - {dependency["name"] for dependency in chart.dependencies}:
        raise RenderError(
            f"found in Chart.yaml, but missing in charts/ directory: {', '.join(sorted(missing))}"
        )


def _require_kubernetes(chart: Chart, release: Release) -> None:
    """Hold the chart's kubeVersion, as `helm install` does; Helm's own version arithmetic decides."""
    constraint = chart.metadata.get("kubeVersion")
    if not constraint:
        return
    probe = {
        "probe/Chart.yaml": b"{apiVersion: v2, name: probe, version: 0.0.0}",
        "probe/templates/suits": b"{{ semverCompare .Values.constraint .Capabilities.KubeVersion.Version }}",
    }
    with library.load_files(probe) as loaded:
        answer = library.render(loaded, {"constraint": constraint}, release)["probe/templates/suits"]
    if answer != "true":
        version = release.kube_version.removeprefix("v")
        raise RenderError(
            f"chart requires kubeVersion: {constraint} which is incompatible with Kubernetes v{version}"
        )
