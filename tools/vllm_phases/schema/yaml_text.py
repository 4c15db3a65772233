"""YAML text that Helm and PyYAML read alike."""

from __future__ import annotations

import re
from typing import Any

import yaml

# Text that no version of YAML takes for a number, a date, a boolean or null: words, paths, and quantities.
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*|[1-9][0-9]*(Ki|Mi|Gi|Ti|ms|s|m|h)")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def dump(value: Any) -> list[str]:
    """The lines of a value in block style; text is quoted unless it can be nothing else."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, default_flow_style=False, sort_keys=False, allow_unicode=True, width=10**6
    )
    return text.splitlines()


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists below their key, as Helm charts do."""
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal things out; an alias would surprise a reader."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    style = None if plain else "|" if "\n" in text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
