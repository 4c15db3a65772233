"""`vllm-phases render`: the manifests of one set of values."""

from __future__ import annotations

from typing import Any

import click

from vllm_phases.commands.request import Request, options

_FINDINGS = 1


@click.command()
@options
@click.pass_context
def render(context: click.Context, /, **request: Any) -> None:
    """Print the manifests of one set of values, as `helm template` does.

    Messages go to standard error. Values that the chart's schema refuses are not rendered: exit code 1.
    """
    asked = Request(**request)
    values_set, checker = asked.one_set(), asked.checker()
    if refused := checker.refused(values_set.values):
        from vllm_phases.report.text import findings

        click.echo(findings(refused), err=True)
        context.exit(_FINDINGS)
    rendering = checker.renderer.render(checker.chart, values_set.values, checker.release)
    for warning in rendering.warnings:
        click.echo(f"warning: {warning}", err=True)
    for template, text in sorted(rendering.templates.items()):
        if not template.endswith(".txt") and text.strip():
            click.echo(f"---\n# Source: {template}\n{text.strip()}")
