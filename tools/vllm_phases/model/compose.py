"""Services of docker compose files, as pods of one container (https://github.com/compose-spec)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vllm_phases.model.container import Container, Mount, Port, Variable, image
from vllm_phases.model.pod import Pod
from vllm_phases.sources import shell
from vllm_phases.sources.shell import Word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.sources.document import Document, Node

_INTERPOLATION = re.compile(
    r"\$\$|\$\{(?P<braced>\w+)(?:(?P<rule>:?[-?+])(?P<default>[^}]*))?\}|\$(?P<name>[A-Za-z_]\w*)"
)


def pods(document: Document) -> Iterator[Pod]:
    """A pod for each service."""
    for _, service in document.root.entries("services"):
        if isinstance(service.value, dict):
            container = _container(service)
            volumes = {mount.volume: mount.node for mount in container.mounts}
            yield Pod("compose", service, service, None, "", (container,), volumes)


def interpolate(node: Node) -> Word:
    """A scalar with compose's own ${…} resolved; what the shell of the user decides stays as written."""
    unknown: list[str] = []

    def resolved(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        if match["rule"] in ("-", ":-"):
            return match["default"]
        unknown.append(match["braced"] or match["name"])
        return match[0]

    text = _INTERPOLATION.sub(resolved, node.text())
    return Word(text, not unknown, node=node)


def _container(service: Node) -> Container:
    entrypoint, command = service.at("entrypoint"), service.at("command")
    variables = {variable.name: variable for variable in _variables(service)}
    return Container(
        node=service,
        name=str(service.path[-1]),
        image=image(interpolate(service.at("image")).text, service.at("image")),
        words=(*_words(entrypoint), *_words(command)),
        has_command=bool(entrypoint),
        variables=variables,
        complete=not service.at("env_file") and not service.at("extends"),
        ports=tuple(_port(node) for node in service.items("ports")),
        mounts=tuple(_mount(node) for node in service.items("volumes")),
    )


def _words(node: Node) -> Iterator[Word]:
    """The words of a command that is a list, or one text in the shell's quoting."""
    if isinstance(node.value, list):
        yield from (interpolate(item) for item in node.items())
    elif node:
        whole = interpolate(node)
        exact = whole.text == node.text()
        for command in shell.commands(whole.text, shell.Variables(), expands=False):
            for word in command.words:
                known = whole.known or "$" not in word.text
                opaque = not known and " " not in word.text
                line, column = (word.line, word.column) if exact else (0, 0)
                yield Word(word.text, known, opaque=opaque, line=line, column=column, node=node)


def _variables(service: Node) -> Iterator[Variable]:
    for name, node in service.entries("environment"):
        yield _variable(name, interpolate(node) if node else None, node)
    for item in service.items("environment"):
        name, equals, _ = item.text().partition("=")
        word = interpolate(item)
        yield _variable(name, Word(word.text[len(name) + 1 :], word.known) if equals else None, item)


def _variable(name: str, word: Word | None, node: Node) -> Variable:
    if word is None:
        return Variable(name, None, "host", node)
    return Variable(name, word.text if word.known else None, "value", node)


def _port(node: Node) -> Port:
    if isinstance(node.value, dict):
        return Port(node.text("name"), node.number("target"), node.number("published"), node)
    *host, container = interpolate(node).text.partition("/")[0].split(":")
    published = int(host[-1]) if host and host[-1].isdecimal() else None
    return Port("", int(container) if container.isdecimal() else None, published, node)


def _mount(node: Node) -> Mount:
    if isinstance(node.value, dict):
        read_only = node.at("read_only").value is True
        return Mount(node.text("source"), node.text("target"), "", read_only, node)
    source, _, rest = interpolate(node).text.partition(":")
    target, _, mode = rest.partition(":")
    return Mount(source, target or source, "", "ro" in mode.split(","), node)
