"""What a container, or a script, starts: the simple commands behind shells and wrappers."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from vllm_phases.sources import shell
from vllm_phases.sources.document import yaml_in
from vllm_phases.sources.shell import Variables, Word

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vllm_phases.sources.document import Node
    from vllm_phases.sources.shell import Command

_YAML = (".yaml", ".yml")
_SHELLS = frozenset(("bash", "sh", "dash", "ash", "zsh"))
_COMMAND_OPTION = re.compile(r"-[a-z]*c[a-z]*")
_MAX_NESTING = 5
_API_SERVERS = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server")


@dataclass(frozen=True)
class Invocation:
    """A program with its words, and the variables that its command line sets before it.

    files       the YAML files that the script has written by then, by path
    background  whether the script goes on beside it
    """

    words: tuple[Word, ...]
    assignments: Mapping[str, Word]
    files: Mapping[str, Node] = field(default_factory=dict)
    background: bool = False

    def program(self) -> str:
        """The first word without its folder."""
        return PurePosixPath(self.words[0].text).name if self.words else ""


def invocations(
    words: Sequence[Word], values: Mapping[str, str | None], nesting: int = 0
) -> Iterator[Invocation]:
    """The commands that words start: themselves, or those of the script that they give to a shell."""
    script = _script(words)
    if script is None or nesting > _MAX_NESTING:
        yield Invocation(tuple(words), {})
        return
    text, arguments = script
    yield from scripted(text, Variables(dict(values), {"@": tuple(arguments[1:])}), nesting)


def scripted(text: Word, variables: Variables, nesting: int = 0) -> Iterator[Invocation]:
    """The commands of a script; those of scripts inside it stand where their text stands."""
    files: dict[str, Node] = {}
    for command in shell.commands(text.text, variables):
        placed = [_placed(word, text, nesting) for word in command.words]
        given = {**variables.exports, **command.assignments}
        assigned = {name: _placed(word, text, nesting) for name, word in given.items()}
        if command.document and placed and PurePosixPath(placed[0].text).name in _SHELLS:
            document = _placed(command.document, text, nesting)
            yield from scripted(document, variables.copy(), nesting)
            continue
        files.update(_written(command, text, exact=nesting == 0))
        inner = {**variables.values, **{name: word.text for name, word in assigned.items()}}
        for invocation in invocations(placed, inner, nesting + 1):
            yield replace(
                invocation,
                assignments={**assigned, **invocation.assignments},
                files={**files, **invocation.files},
                background=command.background or invocation.background,
            )


def _written(command: Command, script: Word, exact: bool) -> Iterator[tuple[str, Node]]:
    """The YAML file that a command writes from its here document: `cat >FILE <<EOF`, `tee FILE <<EOF`."""
    target, document = command.output, command.document
    if command.words and command.words[0].text == "tee":
        target = command.words[-1]
    if document is None or target is None or script.node is None or not target.text.endswith(_YAML):
        return
    node = script.node
    place = node.document.location_in(node.path, script.line + document.line if exact else script.line, 0)
    whole = exact and (node.document.kind == "command" or node.document.spot(node.path).literal)
    if root := yaml_in(document.text, node, place, whole):
        yield posixpath.normpath(target.text), root


def server(words: Sequence[Word]) -> int:
    """The position after the words that start the API server of vLLM; 0 when they do not."""
    for position, word in enumerate(words):
        if word.text in _API_SERVERS:
            return position + 1
        following = words[position + 1].text if position + 1 < len(words) else ""
        if following == "serve" and (
            PurePosixPath(word.text).name == "vllm" or word.text == "vllm.entrypoints.cli.main"
        ):
            return position + 2
    return 0


def _script(words: Sequence[Word]) -> tuple[Word, Sequence[Word]] | None:
    """The script after `bash -c`, with the words after it."""
    for position, word in enumerate(words):
        if PurePosixPath(word.text).name in _SHELLS:
            for offset, option in enumerate(words[position + 1 :], position + 1):
                if not option.text.startswith(("-", "+")):
                    break
                if _COMMAND_OPTION.fullmatch(option.text) and offset + 1 < len(words):
                    return words[offset + 1], words[offset + 2 :]
    return None


def _placed(word: Word, script: Word, nesting: int) -> Word:
    """A word of a script with its place in the file."""
    if word.node is not None:  # it came in by "$@"
        return word
    if nesting:
        return replace(word, node=script.node, line=script.line, column=script.column)
    column = word.column + (script.column if word.line == 0 else 0)
    return replace(word, node=script.node, line=script.line + word.line, column=column)
