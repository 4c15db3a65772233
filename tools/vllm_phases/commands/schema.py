"""`vllm-phases schema`: make every values.schema.json, values.yaml and docs/values.md, or check them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vllm_phases.finding import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

_HINT_LINES = 12


@click.group()
def schema() -> None:
    """Make the charts' schemas, default values and documentation from schemas/*.yaml."""


def _folders(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say where the sources are and where the results go."""
    path: Any = click.Path(path_type=Path)
    for option, kind, default in (
        ("--docs", "FILE", "docs/values.md beside the schemas"),
        ("--charts", "DIR", "charts beside the schemas"),
        ("--schemas", "DIR", "schemas here or in the nearest folder above"),
    ):
        command = click.option(option, type=path, metavar=kind, help=f"Default: {default}.")(command)
    return command


@schema.command()
@_folders
def generate(schemas: Path | None, charts: Path | None, docs: Path | None) -> None:
    """Write every generated file. Nothing is written if a source is wrong."""
    from vllm_phases.schema.generation import stale, write

    wanted = _wanted(schemas, charts, docs)
    changed = stale(wanted)
    write({path: wanted[path] for path in changed})
    for path in wanted:
        click.echo(f"{path.as_posix()}: {'written' if path in changed else 'unchanged'}")


@schema.command()
@_folders
@click.pass_context
def check(context: click.Context, schemas: Path | None, charts: Path | None, docs: Path | None) -> None:
    """Fail if a source is wrong, or a generated file is not what the sources say."""
    from vllm_phases.schema.generation import stale

    wanted = _wanted(schemas, charts, docs)
    drifted = stale(wanted)
    for path, text in drifted.items():
        click.echo(f"{path.as_posix()}: not what the schemas say; run `vllm-phases schema generate`")
        click.echo(_hint(text, wanted[path]))
    if drifted:
        context.exit(1)
    click.echo(f"{len(wanted)} generated files match the schemas")


def _wanted(schemas: Path | None, charts: Path | None, docs: Path | None) -> dict[Path, str]:
    from vllm_phases.schema.generation import load, texts

    folder = schemas or _nearest()
    beside = folder.parent
    return texts(load(folder), charts or beside / "charts", docs or beside / "docs" / "values.md")


def _nearest() -> Path:
    """The schemas folder here or in the nearest folder above, relative to here."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "schemas" / "charts").is_dir():
            return Path(os.path.relpath(folder / "schemas"))
    raise UsageError(f"no schemas/charts in {here.as_posix()} or above: name the folder with --schemas")


def _hint(found: str, wanted: str) -> str:
    """The first lines of the difference, from what stands in the file to what should."""
    from difflib import unified_diff

    names = ("in the file", "from the schemas")
    lines = list(unified_diff(found.splitlines(), wanted.splitlines(), *names, n=1, lineterm=""))
    more = [f"… {len(lines) - _HINT_LINES} more lines"] if len(lines) > _HINT_LINES else []
    return "\n".join(f"  {line}" for line in lines[:_HINT_LINES] + more)
