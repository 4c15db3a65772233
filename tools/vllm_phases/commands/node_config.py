"""`vllm-phases node-config`: what the GPU nodes need to be told for one set of values."""

from __future__ import annotations

from typing import Any

import click

from vllm_phases.commands.request import Request, options

_FINDINGS, _NOTHING = 1, 3
_NODE = "A node on which HAMi makes MIG instances; repeat."


@click.command(name="node-config")
@options
@click.option(
    "--node", "nodes", multiple=True, metavar="NAME", help="A node on which HAMi makes MIG instances."
)
@click.pass_context
def node_config(context: click.Context, /, nodes: tuple[str, ...], **request: Any) -> None:
    """Print what GPU nodes need to be told for values that share GPUs.

    Configurations of NVIDIA's device plugin for time-slicing, MPS and MIG, layouts of MIG, values of HAMi's
    chart: each a YAML document, derived from the engines that the values render. Exit code 3 when no engine
    shares a GPU.
    """
    from vllm_phases import manifests
    from vllm_phases.node_config import configs, shares, text

    asked = Request(**request)
    values_set, checker = asked.one_set(), asked.checker()
    if refused := checker.refused(values_set.values):
        from vllm_phases.report.text import findings

        click.echo(findings(refused), err=True)
        context.exit(_FINDINGS)
    rendering = checker.renderer.render(checker.chart, values_set.values, checker.release)
    found = shares(manifest.document for manifest in manifests.parse(rendering))
    if not found:
        click.echo("no engine of these values shares a GPU", err=True)
        context.exit(_NOTHING)
    for config in configs(found, nodes):
        click.echo("---\n" + "\n".join(f"# {line}" for line in config.comment))
        click.echo(text(config.content).strip())
