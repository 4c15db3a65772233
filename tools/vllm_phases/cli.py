"""The `vllm-phases` command: parses arguments and hands over to `vllm_phases.commands`."""

from __future__ import annotations

import click

from vllm_phases import __version__


@click.group()
@click.version_option(__version__, prog_name="vllm-phases")
def main() -> None:
    """Check and render vLLM releases, phase by phase."""
