"""`vllm-phases pack`: where the pods of a release would run, and on which cards."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vllm_phases.commands.request import Request, options
from vllm_phases.finding import UsageError

if TYPE_CHECKING:
    from vllm_phases.model.pod import Pod
    from vllm_phases.packing.cards import GpuNode
    from vllm_phases.packing.cluster import Packing, Placed
    from vllm_phases.packing.pods import Settings

_PENDING, _NOTHING_TO_PACK = 1, 3
_PATH: Any = click.Path(path_type=Path)


@dataclass(frozen=True)
class Asked:
    """What is packed on what: a number of nodes or a file, and the card of nodes given by number."""

    nodes: str
    gpu: str | None
    settings: Settings


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH|-]…")
@options
@click.option("--nodes", required=True, metavar="N|FILE", help="How many usual nodes, or a file with nodes.")
@click.option("--gpu", help="Card of a number of nodes, such as h200. [default: h100-80]")
@click.option("--gpu-policy", default="spread", help="HAMi's gpuSchedulerPolicy, where a pod has none.")
@click.option("--node-policy", default="binpack", help="HAMi's nodeSchedulerPolicy, where a pod has none.")
@click.option("--webhook/--no-webhook", default=True, help="Whether HAMi's webhook completes the pods.")
@click.option("--svg", type=_PATH, metavar="FILE", help="Write the picture as SVG, too.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text")
@click.pass_context
def pack(  # noqa: PLR0913  # one for each option
    context: click.Context,
    /,
    *,
    paths: tuple[str, ...],
    nodes: str,
    gpu: str | None,
    gpu_policy: str,
    node_policy: str,
    webhook: bool,
    svg: Path | None,
    output: str,
    **request: Any,
) -> None:
    """Show on which cards HAMi would put the pods of a release, and what stays Pending.

    The release is one set of values (-f, as for `render`), or manifests in PATH, by default standard input.
    FILE has Node objects (kubectl get nodes -o yaml), or shapes: {nodes: [{count: 4, gpu: h200, cards: 8}]}.

    Exit codes: 0 all placed, 1 some stay Pending, 2 wrong usage, 3 no pod wants a GPU, 4 Helm cannot render.
    """
    from vllm_phases.packing.pods import Settings

    asked = Asked(nodes, gpu, Settings(gpu_policy, node_policy, webhook))
    pods = _pods(paths, Request(**request), nodes)
    packing, notes = _packed(pods, asked)
    if not packing.arrivals:
        click.echo("nothing to pack: no pod here wants a GPU", err=True)
        context.exit(_NOTHING_TO_PACK)
    _show(packing, notes, svg, output)
    if packing.pending:
        context.exit(_PENDING)


def _pods(paths: tuple[str, ...], request: Request, nodes: str) -> list[Pod]:
    """The pods of what is given, in the order in which Helm, or kubectl, creates them."""
    from vllm_phases.model import Release
    from vllm_phases.packing.pods import in_helm_order

    given = request.files or request.sets or request.chart
    if given and paths:
        raise UsageError("give values (-f, --set, --chart) or manifests, not both")
    if given:
        return in_helm_order(Release(_rendered(request)).pods)
    paths = paths or ("-",)
    if "-" in paths and nodes == "-":
        raise UsageError("--nodes -: standard input has the manifests; give the nodes in a file")
    if "-" in paths and sys.stdin.isatty():
        raise UsageError(
            "name values with -f, or manifests; or pipe them in: helm template … | vllm-phases pack"
        )
    from vllm_phases import sources

    read = sources.read(paths, sys.stdin.buffer)
    if broken := next((found for found in read.findings if found.severity.value == "error"), None):
        raise UsageError(f"{broken.location}: {broken.message}")
    return list(Release(read.documents).pods)


def _rendered(request: Request) -> Any:
    """The documents of a rendered release; UsageError for values that its schema refuses."""
    from vllm_phases import manifests, model

    values_set, checker = request.one_set(), request.checker()
    if refused := checker.refused(values_set.values):
        from vllm_phases.report.text import findings

        raise UsageError(f"these values are refused, see `vllm-phases check`\n{findings(refused)}")
    rendering = checker.renderer.render(checker.chart, values_set.values, checker.release)
    return tuple(
        model.Document(one.template, "kubernetes", one.document, line=one.line)
        for one in manifests.parse(rendering)
    )


def _packed(pods: list[Pod], asked: Asked) -> tuple[Packing, list[str]]:
    """The packing, and what a reader of it must know."""
    from vllm_phases.packing import cluster, notes
    from vllm_phases.packing.pods import arrivals, asks_hami

    nodes, running = _nodes(asked, any(asks_hami(pod) for pod in pods))
    coming = arrivals(pods, asked.settings, any(node.cards for node in nodes))
    packing = cluster.pack(nodes, coming, running)
    return packing, list(notes.notes(packing, pods))


def _nodes(asked: Asked, hami: bool) -> tuple[tuple[GpuNode, ...], tuple[Placed, ...]]:
    from vllm_phases.packing import nodes, shapes

    if asked.nodes.lstrip("-").isdecimal():
        return shapes.usual(int(asked.nodes), asked.gpu, hami), ()
    if asked.gpu:
        raise UsageError(f"--gpu {asked.gpu} goes with a number of nodes; {asked.nodes} says it itself")
    return nodes.read(asked.nodes, sys.stdin.buffer, hami)


def _show(packing: Packing, notes: list[str], svg: Path | None, output: str) -> None:
    """Print what came of it; write the SVG first, so that nothing is printed where it cannot be."""
    from vllm_phases.packing.advice import stuck
    from vllm_phases.packing.picture import picture

    waiting, drawn = stuck(packing.pending), picture(packing)
    if svg:
        from vllm_phases.report import pack_svg

        try:
            svg.write_text(pack_svg.report(drawn, waiting), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--svg {svg}: cannot be written: {error.strerror}") from None
    if output == "json":
        from vllm_phases.report import pack_json

        click.echo(pack_json.report(packing, waiting, notes))
        return
    from vllm_phases.report import pack as text

    plain = False if os.environ.get("NO_COLOR") else None  # https://no-color.org
    click.echo(text.report(drawn, waiting, notes), color=plain)
