"""`vllm-phases lint`: judge anybody's vLLM deployment before it runs."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vllm_phases.configuration import LEVELS
from vllm_phases.finding import UsageError, reading_order
from vllm_phases.render import DEFAULT_KUBE_VERSION

if TYPE_CHECKING:
    from vllm_phases.configuration import Configuration
    from vllm_phases.finding import Finding
    from vllm_phases.model import Release

_FINDINGS, _NOTHING_TO_CHECK, _INTERNAL = 1, 3, 4
_FORMATS = ("text", "json", "sarif", "github", "junit")
_IDS = "Rule ids or beginnings of them, with commas: KV,ARG001."


@dataclass(frozen=True)
class Task:
    """What to judge, and by which settings; contents keeps what was read, by the name of its file."""

    paths: tuple[str, ...]
    configuration: Configuration
    unsafe: bool
    contents: dict[str, bytes] = field(default_factory=dict)


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
@click.option("--fail-on", type=click.Choice(LEVELS), help="Least severity that fails. [default: error]")
@click.option("--format", "output", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option("--fix", is_flag=True, help="Put right what has one right answer, and tell what is left.")
@click.option(
    "--unsafe-fixes", is_flag=True, help="With --fix: also what is only likely, such as misspellings."
)
@click.option("--diff", is_flag=True, help="Print what --fix would change, and write nothing.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever is found.")
@click.option("--kube-version", help=f"Kubernetes to judge for. [default: {DEFAULT_KUBE_VERSION}]")
@click.pass_context
def lint(  # noqa: PLR0913  # one for each option
    context: click.Context,
    /,
    *,
    paths: tuple[str, ...],
    output: str,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    exit_zero: bool,
    **given: Any,
) -> None:
    """Judge any vLLM deployment: Kubernetes objects, docker compose files, shell commands.

    PATH is a file or a folder; without one, or with -, standard input is read, such as the output of
    `helm template` or `kustomize build`; --fix then prints it repaired, and the findings on standard error.
    Options may stand in .vllm-phases.yaml or in [tool.vllm-phases] of pyproject.toml.

    Exit codes: 0 clean, 1 findings, 2 wrong usage, 3 nothing to check, 4 internal failure.
    """
    if unsafe_fixes and not (fix or diff):
        raise UsageError("--unsafe-fixes goes with --fix or --diff")
    task = Task(_named(paths), _configured(given), unsafe_fixes)
    if diff:
        code = _differ(task)
    elif fix:
        code = _fix(task, output)
    else:
        code = _judge(task, output)
    if code == _NOTHING_TO_CHECK:
        click.echo(
            "nothing to check: no vLLM engine, router, endpoint picker or InferencePool here", err=True
        )
    if not exit_zero:
        context.exit(code)


def _named(paths: tuple[str, ...]) -> tuple[str, ...]:
    if not paths and sys.stdin.isatty():
        raise UsageError("name files or folders, or pipe manifests in: helm template … | vllm-phases lint")
    return paths or ("-",)


def _configured(given: dict[str, Any]) -> Configuration:
    """The configuration with the options of the command line over it, held against what is known."""
    from vllm_phases import catalogue, configuration

    lists = {
        key: tuple(part.strip() for text in given.pop(key) for part in text.split(",") if part.strip())
        for key in ("select", "ignore")
    }
    settled = configuration.merged(configuration.load(Path.cwd()), {**given, **lists})
    if settled.vllm_version:
        catalogue.load(settled.vllm_version)  # UsageError for what is none
    if settled.kube_version:
        from vllm_phases.objects import published

        published.minor_version(settled.kube_version)  # UsageError for what has no schemas
    return settled


def _judge(task: Task, output: str, err: bool = False, fixed: int | None = None) -> int:
    """Show what is found, and how many fixes were made before; the exit code."""
    linted = _linted(task)
    click.echo(_shown(linted, output), err=err)
    if fixed is not None:
        click.echo(f"{fixed} fixed", err=err or output != "text")
    return _exit_code(linted, task.configuration)


def _fix(task: Task, output: str) -> int:
    """Write what fixes change; of standard input, to standard output."""
    from vllm_phases import fixing
    from vllm_phases.sources.files import STDIN_NAME

    contents = task.contents
    repaired = fixing.repair(contents, lambda: _linted(task).findings, task.unsafe)
    fixing.write({name: contents[name] for name in repaired.before if name != STDIN_NAME})
    if STDIN_NAME in contents:
        click.echo(contents[STDIN_NAME], nl=False)
    return _judge(task, output, STDIN_NAME in contents, repaired.made)


def _differ(task: Task) -> int:
    """Print what fixes would change; 1 where that is anything."""
    from vllm_phases import fixing

    repaired = fixing.repair(task.contents, lambda: _linted(task).findings, task.unsafe)
    for name, before in sorted(repaired.before.items()):
        click.echo(fixing.difference(name, before, task.contents[name]), nl=False)
    click.echo(f"{repaired.made} would be fixed", err=True)
    return _FINDINGS if repaired.made else 0


def _linted(task: Task) -> Linted:
    from vllm_phases import rules, sources, suppression
    from vllm_phases.model import Release

    configuration = task.configuration
    selection = configuration.selection()
    read = sources.read(task.paths, sys.stdin.buffer, configuration.excludes, task.contents)
    release = Release(read.documents, configuration.vllm_version)
    context = rules.Context(release, configuration.kube_version or DEFAULT_KUBE_VERSION)
    own = (finding for finding in read.findings if finding.rule_id in selection)
    excuses = dict.fromkeys(
        (
            *(found for document in read.documents for found in suppression.in_comments(document)),
            *suppression.in_annotations(release),
        )
    )
    ran = {rule_id for rule_id in rules.known_ids() if rule_id in selection}
    kept = suppression.apply([*own, *rules.run(context, selection)], tuple(excuses), ran)
    return Linted(release, tuple(sorted(dict.fromkeys(kept), key=reading_order)), read.texts)


def _exit_code(linted: Linted, configuration: Configuration) -> int:
    if any(finding.rule_id == "LINT004" for finding in linted.findings):
        return _INTERNAL
    failing = LEVELS[: LEVELS.index(configuration.fail_on) + 1]
    if any(finding.severity.value in failing for finding in linted.findings):
        return _FINDINGS
    return 0 if linted.release.serves else _NOTHING_TO_CHECK


def _shown(linted: Linted, output: str) -> str:
    from vllm_phases.report.lint import FORMATS

    return FORMATS[output](linted.findings, linted.texts)
