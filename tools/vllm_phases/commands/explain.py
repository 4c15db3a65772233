"""`vllm-phases explain`: one rule's documentation."""

from __future__ import annotations

import difflib

import click

from vllm_phases.finding import UsageError


@click.command()
@click.argument("rule_id", metavar="RULE")
def explain(rule_id: str) -> None:
    """Print why a rule of the linter exists, with examples."""
    from vllm_phases.rules import all_rules
    from vllm_phases.rules.documentation import page

    rules = {rule.id: rule for rule in all_rules()}
    names = {rule.name: rule.id for rule in rules.values()}
    wanted = names.get(rule_id.lower(), rule_id.upper())
    if wanted not in rules:
        near = difflib.get_close_matches(wanted, list(rules), n=1)
        raise UsageError(
            f"no rule {rule_id}" + (f"; did you mean {near[0]}?" if near else "; see `vllm-phases rules`")
        )
    click.echo(page(rules[wanted]))
