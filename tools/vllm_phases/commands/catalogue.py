"""`vllm-phases catalogue`: what each vLLM release knows, and how that knowledge is made."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vllm_phases.finding import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vllm_phases.catalogue import EngineRelease, Flag
    from vllm_phases.catalogue.difference import Change

_TITLES = {
    "connectors": "connectors",
    "kv_transfer": "kv-transfer fields",
    "flags": "flags",
    "env": "environment variables",
}
_COLOURS = {"+": "green", "-": "red", "~": "yellow"}

_format = click.option(
    "--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True
)


@click.group()
def catalogue() -> None:
    """What each vLLM release knows: flags, environment variables, connectors and kv-transfer fields."""


@catalogue.command()
def versions() -> None:
    """List the releases of the catalogue, oldest first."""
    from vllm_phases import catalogue as facts

    for version in facts.versions():
        click.echo(version)


@catalogue.command()
@click.argument("version")
@_format
def show(version: str, output: str) -> None:
    """Show what release VERSION knows."""
    release = _load(version)
    if output == "json":
        _echo_json(_contents(release))
        return
    _echo(f"vLLM {release.version}")
    for kind, lines in _text(release).items():
        _echo(f"\n{_TITLES[kind]} ({len(lines)})")
        for line in lines:
            _echo(f"  {line}")


@catalogue.command()
@click.argument("old")
@click.argument("new")
@_format
def diff(old: str, new: str, output: str) -> None:
    """Show what appears (+), vanishes (-) and changes (~) from release OLD to release NEW."""
    from vllm_phases.catalogue.difference import difference

    before, after = _load(old), _load(new)
    changes = difference(before, after)
    if output == "json":
        _echo_json(
            {
                "old": before.version,
                "new": after.version,
                **{kind: [_as_json(change) for change in kinds] for kind, kinds in changes.items()},
            }
        )
        return
    _echo(f"vLLM {before.version} to {after.version}")
    for kind, kinds in changes.items():
        if kinds:
            _echo(f"\n{_TITLES[kind]}")
        for change in kinds:
            line = f"  {change.sign} {change.name}{_details(change)}"
            _echo(click.style(line, fg=_COLOURS[change.sign]))
    if not any(changes.values()):
        _echo("\nno difference in " + ", ".join(_TITLES.values()))


@catalogue.command()
@click.argument("version")
@click.option(
    "--from",
    "tree",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="An unpacked release, in place of one that pip downloads.",
)
def add(version: str, tree: Path | None) -> None:
    """Read release VERSION and write it into the catalogue's data.

    The release's own argument parser is made in a Python of its own, with stand-ins for torch and all else
    that is missing. Run `vllm-phases catalogue chart` afterwards.
    """
    from vllm_phases.catalogue import sources, store

    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise UsageError(f"{version!r} is not a release number: give three numbers, such as 0.33.0")
    _progress("making a Python to read it with")
    with sources.interpreter() as python:
        contents = _read(python, version, tree)
    store.add(version, contents)
    counts = ", ".join(f"{len(contents[kind])} {title}" for kind, title in _TITLES.items())
    click.echo(f"vLLM {version}: {counts}")


@catalogue.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file is not up to date.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=".",
    help="The root of the repository. [default: this folder]",
)
def chart(check: bool, root: Path) -> None:
    """Write what templates need of the catalogue into the charts."""
    from vllm_phases.catalogue import chart_facts

    wanted = {root / file: text for file, text in chart_facts.render().items()}
    if missing := [str(file.parent) for file in wanted if not file.parent.is_dir()]:
        raise UsageError(f"{missing[0]} is no folder: run this at the root of the repository, or give --root")
    stale = {
        file: text
        for file, text in wanted.items()
        if not file.is_file() or file.read_text(encoding="utf-8") != text
    }
    for file, text in stale.items():
        if check:
            click.echo(f"{file} differs from the catalogue: run `vllm-phases catalogue chart`", err=True)
        else:
            file.write_text(text, encoding="utf-8")
            click.echo(f"{file} written")
    if not stale:
        click.echo("the charts are up to date")
    click.get_current_context().exit(1 if check and stale else 0)


def _load(version: str) -> EngineRelease:
    from vllm_phases.catalogue import load

    release = load(version)
    if release.version != version.removeprefix("v"):
        why = "newer than the catalogue" if release.newer_than_catalogue else "not in the catalogue"
        click.echo(f"note: vLLM {version} is {why}; {release.version} stands in for it", err=True)
    return release


def _read(python: str, version: str, tree: Path | None) -> dict[str, Any]:
    from vllm_phases.catalogue import sources

    if tree:
        return sources.read(python, tree, version)
    _progress(f"downloading vLLM {version}")
    with sources.release_tree(python, version) as downloaded:
        _progress("reading it")
        return sources.read(python, downloaded, version)


def _contents(release: EngineRelease) -> dict[str, Any]:
    flags = {flag.name: vars(flag) for flag in release.flags.values()}
    return {
        "version": release.version,
        "connectors": sorted(release.connectors),
        "kv_transfer": {name: vars(field) for name, field in release.kv_transfer_fields.items()},
        "flags": {name: flags[name] for name in sorted(flags)},
        "env": sorted(release.env),
    }


def _text(release: EngineRelease) -> dict[str, list[str]]:
    fields = release.kv_transfer_fields.items()
    flags = {flag.name: flag for flag in release.flags.values()}
    return {
        "connectors": sorted(release.connectors),
        "kv_transfer": [
            f"{name}: {field.type} = {'(computed)' if field.computed else _plain(field.default)}"
            for name, field in fields
        ],
        "flags": [_flag_line(flags[name]) for name in sorted(flags)],
        "env": sorted(release.env),
    }


def _flag_line(flag: Flag) -> str:
    parts = [", ".join(flag.options)]
    if flag.type:
        parts.append(f"{flag.type} {flag.nargs or ''}".rstrip())
    parts.append(f"default {_plain(flag.default)}")
    if flag.choices:
        parts.append(f"one of {_listed(flag.choices)}")
    return "; ".join(parts)


def _details(change: Change) -> str:
    """What changed of an entry, after its name."""
    if change.before is None or change.after is None:
        return ""
    return "  " + "; ".join(_aspects(change.before, change.after))


def _aspects(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    if "default" in before:
        yield f"default {_plain(before['default'])} -> {_plain(after['default'])}"
    for aspect, gained, lost in (
        ("choices", "takes value", "no value any more:"),
        ("spellings", "also", "no longer"),
    ):
        old, new = before.get(aspect, []), after.get(aspect, [])
        if more := [item for item in new if item not in old]:
            yield f"{gained} {_listed(more)}"
        if less := [item for item in old if item not in new]:
            yield f"{lost} {_listed(less)}"


def _as_json(change: Change) -> dict[str, Any]:
    words = {"+": "added", "-": "removed", "~": "changed"}
    return {"name": change.name, "change": words[change.sign], "before": change.before, "after": change.after}


def _listed(items: Iterable[Any]) -> str:
    return ", ".join(str(item) for item in items)


def _plain(value: Any) -> str:
    import json

    return value if isinstance(value, str) and value else json.dumps(value)


def _echo(line: str) -> None:
    """Coloured on a terminal only, and never under NO_COLOR (no-color.org)."""
    click.echo(line, color=False if os.environ.get("NO_COLOR") else None)


def _echo_json(content: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps(content, indent=2))


def _progress(step: str) -> None:
    click.echo(f"{step} …", err=True)
