"""`vllm-phases lint`: judge anybody's vLLM deployment before it runs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from vllm_phases.finding import reading_order
from vllm_phases.render import DEFAULT_KUBE_VERSION

if TYPE_CHECKING:
    from vllm_phases.finding import Finding
    from vllm_phases.model import Release

_FINDINGS, _NOTHING_TO_CHECK, _INTERNAL = 1, 3, 4
_FORMATS = ("text", "json", "sarif", "github", "junit")
_LEVELS = ("error", "warning", "note")
_IDS = "Rule ids or beginnings of them, with commas: KV,ARG001."


@dataclass(frozen=True)
class Linted:
    """What came of one run."""

    release: Release
    findings: tuple[Finding, ...]
    texts: dict[str, str]


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH|-]…")
@click.option("--vllm-version", help="vLLM of every engine, where image tags do not tell it.")
@click.option("--select", multiple=True, metavar="IDS", help=f"Only these. {_IDS}")
@click.option("--ignore", multiple=True, metavar="IDS", help=f"Not these. {_IDS}")
@click.option(
    "--fail-on", type=click.Choice(_LEVELS), default=None, help="Least severity that fails. [error]"
)
@click.option("--format", "output", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever is found.")
@click.option("--kube-version", default=DEFAULT_KUBE_VERSION, help="Kubernetes to judge for.")
@click.pass_context
def lint(context: click.Context, /, **given: Any) -> None:
    """Judge any vLLM deployment: Kubernetes objects, docker compose files, shell commands.

    PATH is a file or a folder; without one, or with -, standard input is read, such as the output of
    `helm template` or `kustomize build`.

    Exit codes: 0 clean, 1 findings, 2 wrong usage, 3 nothing to check, 4 internal failure.
    """
    linted = _linted(given)
    _show(linted, given["output"])
    if given["exit_zero"]:
        return
    if any(finding.rule_id == "LINT004" for finding in linted.findings):
        context.exit(_INTERNAL)
    levels = _LEVELS[: _LEVELS.index(given["fail_on"] or "error") + 1]
    if any(finding.severity.value in levels for finding in linted.findings):
        context.exit(_FINDINGS)
    if not linted.release.serves:
        click.echo(
            "nothing to check: no vLLM engine, router, endpoint picker or InferencePool here", err=True
        )
        context.exit(_NOTHING_TO_CHECK)


def _linted(given: dict[str, Any]) -> Linted:
    from vllm_phases import catalogue, rules, sources
    from vllm_phases.model import Release

    if version := given["vllm_version"]:
        catalogue.load(version)  # UsageError for what is none
    selection = _selection(given)
    read = sources.read(given["paths"] or (sources.STDIN,), sys.stdin.buffer)
    release = Release(read.documents, version)
    found = rules.run(rules.Context(release, given["kube_version"]), selection)
    own = (finding for finding in read.findings if finding.rule_id in selection)
    findings = sorted(dict.fromkeys((*own, *found)), key=reading_order)
    return Linted(release, tuple(findings), read.texts)


def _selection(given: dict[str, Any]) -> Any:
    from vllm_phases.rules import Selection, known_ids
    from vllm_phases.rules.selection import validate

    prefixes = {
        option: tuple(part.strip() for text in given[option] for part in text.split(",") if part.strip())
        for option in ("select", "ignore")
    }
    for option, listed in prefixes.items():
        validate(listed, known_ids(), f"--{option}")
    return Selection(prefixes["select"], prefixes["ignore"])


def _show(linted: Linted, output: str) -> None:
    from vllm_phases.report import lint as reports

    click.echo(reports.FORMATS[output](linted.findings, linted.texts))
