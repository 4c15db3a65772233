"""`vllm-phases rules`: the list of rules, and docs/rules.md from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

_DRIFT = 1
_PATH: Any = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--write", type=_PATH, metavar="FILE", help="Write the documentation of every rule to a file.")
@click.option("--check", type=_PATH, metavar="FILE", help="Fail if a file is not that documentation.")
@click.pass_context
def rules(context: click.Context, write: Path | None, check: Path | None) -> None:
    """List the rules of the linter, or write docs/rules.md."""
    from vllm_phases.rules import all_rules
    from vllm_phases.rules.documentation import book

    if write is not None:
        write.write_text(book(all_rules()), encoding="utf-8")
        click.echo(f"{write.as_posix()}: {len(all_rules())} rules written")
    elif check is not None:
        name = check.as_posix()
        if not check.is_file() or check.read_text(encoding="utf-8") != book(all_rules()):
            click.echo(f"{name}: not what the rules say; run `vllm-phases rules --write {name}`")
            context.exit(_DRIFT)
        click.echo(f"{name} matches the rules")
    else:
        width = max(len(rule.name) for rule in all_rules())
        for rule in all_rules():
            fix = "fix" if rule.fix else ""
            click.echo(f"{rule.id:<8} {rule.severity.value:<8} {fix:<4} {rule.name:<{width}}  {rule.summary}")
