"""`vllm-phases check`: prove values before they are installed."""

from __future__ import annotations

from typing import Any

import click

from vllm_phases.commands.request import Request, options
from vllm_phases.finding import Severity

_FINDINGS, _NOTHING_TO_CHECK, _NOT_RENDERED = 1, 3, 4


@click.command()
@options
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def check(context: click.Context, /, output: str, **request: Any) -> None:
    """Check values: schema, rendering, Kubernetes objects, vLLM flags.

    All files given with -f make one set, as for helm. Without -f and --chart, every values/phase*.yaml is a
    set of its own.

    Exit codes: 0 no errors, 1 errors in the values, 2 wrong usage, 3 nothing to check, 4 Helm cannot render.
    """
    asked = Request(**request)
    values_sets = asked.values_sets()
    if not values_sets:
        click.echo(
            "nothing to check: no values/phase*.yaml beside charts/vllm-stack, here or in a folder above; "
            "name values files with -f",
            err=True,
        )
        context.exit(_NOTHING_TO_CHECK)
    checker = asked.checker()
    results = [checker.check(values_set) for values_set in values_sets]
    if output == "json":
        from vllm_phases.report.json import report as as_json

        click.echo(as_json(results, checker.chart))
    else:
        from vllm_phases.report.text import report as as_text

        click.echo(as_text(results))
    if not all(result.rendered for result in results):
        context.exit(_NOT_RENDERED)
    if any(result.count(Severity.ERROR) for result in results):
        context.exit(_FINDINGS)
