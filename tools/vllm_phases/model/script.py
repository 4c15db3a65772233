"""Files of shell commands: the servers they start, with and without docker, as pods of one container."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vllm_phases.model.arguments import parse
from vllm_phases.model.command import Invocation, scripted, server
from vllm_phases.model.container import Container, Mount, Port, Variable, image
from vllm_phases.model.pod import Pod
from vllm_phases.sources.shell import Variables, Word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model.arguments import Argument, Arguments
    from vllm_phases.model.pod import Platform
    from vllm_phases.sources.document import Document, Node

_RUNTIMES = frozenset(("docker", "podman", "nerdctl"))
# What `docker … create` and `docker … run` may be about, beside containers.
_OTHER_OBJECTS = frozenset(
    ("manifest", "network", "volume", "buildx", "context", "service", "config", "secret", "compose")
)
# Options of `docker run` without a value; any other takes the next word (docker/cli: cli/command/container).
_SWITCHES = frozenset(
    (
        "d", "detach", "i", "interactive", "t", "tty", "it", "ti", "dit", "itd", "rm", "init", "privileged",
        "P", "publish-all", "read-only", "no-healthcheck", "oom-kill-disable", "sig-proxy", "q", "quiet",
        "disable-content-trust", "help",
    )
)  # fmt: skip


def pods(document: Document) -> Iterator[Pod]:
    """A pod for each command of a script; the engines among them are found like everywhere."""
    root = document.root
    for invocation in scripted(Word(str(document.tree), node=root), Variables()):
        if found := _docker(invocation):
            yield _pod("docker", root, _run(root, *found))
        elif server(invocation.words) or _is_program(invocation):
            variables = {
                name: Variable(name, word.text if word.known else None, "value", root, word)
                for name, word in invocation.assignments.items()
            }
            started = _started(root, invocation.words, variables)
            yield _pod("shell", root, replace(started, invocation=invocation))


def _is_program(invocation: Invocation) -> bool:
    """Whether a command may be a router or a proxy; what else a script does is nobody's pod."""
    return any("router" in word.text or "proxy" in word.text for word in invocation.words[:3])


def _docker(invocation: Invocation) -> tuple[list[Word], list[Word]] | None:
    """The options of `docker run`, and the image with what follows it."""
    words, texts = invocation.words, [word.text for word in invocation.words]
    if invocation.program() not in (*_RUNTIMES, "sudo") or not {"run", "create"} & set(texts[:5]):
        return None
    position = next(index for index, text in enumerate(texts) if text in ("run", "create")) + 1
    if texts[position - 2] in _OTHER_OBJECTS:
        return None
    start = position
    while position < len(words) and texts[position].startswith("-"):
        switch = texts[position].lstrip("-")
        position += 1 if "=" in switch or switch in _SWITCHES else 2
    return list(words[start:position]), list(words[position:])


def _run(root: Node, options: list[Word], rest: list[Word]) -> Container:
    given = parse(options, None)
    entrypoint = [option.values[0] for option in given.all("entrypoint") if option.values]
    started = _started(
        root, (*entrypoint, *rest[1:]), {found.name: found for found in _variables(given, root)}
    )
    return replace(
        started,
        image=image(rest[0].text if rest else "", root),
        has_command=bool(entrypoint),
        complete="env-file" not in given,
        ports=tuple(_port(option, root) for option in _options(given, "p", "publish")),
        mounts=tuple(_mount(option, root) for option in _options(given, "v", "volume")),
        options=given,
    )


def _started(root: Node, words: tuple[Word, ...], variables: dict[str, Variable]) -> Container:
    """What a command line starts, outside any container."""
    return Container(
        node=root,
        name="",
        image=image("", root),
        words=words,
        has_command=True,
        variables=variables,
        complete=False,
        ports=(),
        mounts=(),
    )


def _options(options: Arguments, *names: str) -> Iterator[Argument]:
    for name in names:
        yield from options.all(name)


def _variables(options: Arguments, root: Node) -> Iterator[Variable]:
    for option in _options(options, "e", "env"):
        word = option.values[0] if option.values else None
        name, equals, value = word.text.partition("=") if word else ("", "", "")
        known = bool(equals) and word is not None and word.known
        yield Variable(name, value if known else None, "value" if equals else "host", root, word)


def _port(option: Argument, root: Node) -> Port:
    text = option.values[0].text if option.values else ""
    *host, container = text.partition("/")[0].split(":")
    published = int(host[-1]) if host and host[-1].isdecimal() else None
    return Port("", int(container) if container.isdecimal() else None, published, root)


def _mount(option: Argument, root: Node) -> Mount:
    source, _, rest = (option.values[0].text if option.values else "").partition(":")
    target, _, mode = rest.partition(":")
    return Mount(source, target or source, "", "ro" in mode.split(","), root)


def _pod(platform: Platform, root: Node, container: Container) -> Pod:
    return Pod(
        platform, root, root, None, "", (container,), {mount.volume: root for mount in container.mounts}
    )
