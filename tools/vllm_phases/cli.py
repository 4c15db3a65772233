"""The `vllm-phases` command: finds the sub-command; what goes wrong becomes one line and an exit code."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from vllm_phases import __version__
from vllm_phases.finding import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_USAGE, _NOT_RENDERED, _INTERNAL, _INTERRUPTED = 2, 4, 4, 130
_TRACEBACK = "VLLM_PHASES_TRACEBACK"
_COMMANDS = {
    "check": "Check values: schema, rendering, Kubernetes objects, vLLM flags.",
    "lint": "Judge any vLLM deployment: Kubernetes objects, docker compose files, shell commands.",
    "explain": "Print why a rule of the linter exists, with examples.",
    "rules": "List the rules of the linter, or write docs/rules.md.",
    "render": "Print the manifests of one set of values, as `helm template` does.",
    "schema": "Make the charts' schemas, default values and documentation from schemas/*.yaml.",
    "catalogue": "What each vLLM release knows: flags, environment variables, connectors and kv-transfer "
    "fields.",
}


class _Commands(click.Group):
    """Imports a sub-command's module only when it runs; its help text stands above for that reason."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module = importlib.import_module(f"vllm_phases.commands.{name}")
        command: click.Command = getattr(module, name)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="vllm-phases", message="%(prog)s %(version)s")
def commands() -> None:
    """Take a vLLM service from one process to disaggregated prefill and decode, and prove every step."""


def main() -> None:
    """The entry point.

    There is little cyclic garbage, and to look for it among all that was read takes long; so does freeing
    all of it at the end.
    """
    gc.disable()
    code = run(sys.argv[1:])
    with suppress(OSError):  # whoever read the output may be gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; whatever goes wrong is told in one line."""
    try:
        result: Any = commands.main(list(arguments), prog_name="vllm-phases", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.Abort:
        return _INTERRUPTED
    except Exception as error:
        if os.environ.get(_TRACEBACK):
            raise
        code, message = _explained(error)
        click.echo(message, err=True)
        return code


def _explained(error: Exception) -> tuple[int, str]:
    """Exit code and line for an error."""
    if isinstance(error, click.ClickException):
        message = error.format_message()  # the whole help where no command was given
        return _USAGE, message if message.startswith("Usage: ") else f"error: {message}"
    if isinstance(error, UsageError):
        return _USAGE, f"error: {error}"
    from vllm_phases.render import RenderError

    if isinstance(error, RenderError):
        return _NOT_RENDERED, f"error: Helm cannot render: {error.place}{error}"
    kind = type(error).__name__
    return _INTERNAL, f"internal error: {kind}: {error}; set {_TRACEBACK}=1 to see where"
