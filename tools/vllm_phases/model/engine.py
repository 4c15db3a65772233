"""The containers that run `vllm serve`, as vLLM itself would see them."""

from __future__ import annotations

import functools
import posixpath
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vllm_phases import catalogue
from vllm_phases.catalogue import UnknownVersion
from vllm_phases.model.arguments import Arguments, parse, whole_number
from vllm_phases.model.command import Invocation, invocations, server
from vllm_phases.model.config_file import expanded
from vllm_phases.model.gpu import GpuRequest, gpu_request
from vllm_phases.model.kv import KvTransfer, kv_transfer
from vllm_phases.model.mounts import mounted
from vllm_phases.sources.document import embedded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vllm_phases.catalogue import EngineRelease
    from vllm_phases.model.arguments import Argument
    from vllm_phases.model.container import Container, Image, Variable
    from vllm_phases.model.environment import ConfigData
    from vllm_phases.model.pod import Pod
    from vllm_phases.sources.document import Node
    from vllm_phases.sources.shell import Word

VERSION_ANNOTATION = "vllm-phases.dev/vllm-version"
_VERSION_LABEL = "app.kubernetes.io/version"
_OUR_CHARTS = frozenset(("vllm-base", "vllm-pd-nccl", "vllm-llmd", "vllm-hami-decode"))
_ROLES = ("prefill", "decode")
_ROLE_LABELS = ("llm-d.ai/role", "app.kubernetes.io/component", "role")
_KV_ROLES = {"kv_producer": "prefill", "kv_consumer": "decode", "kv_both": "both"}
_HTTP_PORT = 8000
_ENV_WORD = re.compile(r"([A-Za-z_]\w*)=")


@dataclass(frozen=True)
class Version:
    """The vLLM version of an engine and what says so: "option", "annotation", "label" or "image"."""

    text: str
    source: str
    node: Node


@dataclass(frozen=True, eq=False, repr=False)
class Engine:
    """One engine: a container, or a command line, that starts vLLM's API server.

    version    None where nothing tells it
    release    what the catalogue knows of that version; None without one, or where it is too old
    words      what follows `vllm serve`, with the options of the file that --config names
    config     that file, where its content is known
    background whether a script starts it and goes on
    arguments  read with the parser of that release, or else of the newest
    variables  those of the container, and over them those that its command line sets
    """

    pod: Pod
    container: Container
    version: Version | None
    release: EngineRelease | None
    words: tuple[Word, ...]
    arguments: Arguments
    variables: dict[str, Variable]
    kv: KvTransfer | None
    gpu: GpuRequest
    start: Word | None
    config: Node | None = None
    background: bool = False

    @property
    def node(self) -> Node:
        """The container."""
        return self.container.node

    @functools.cached_property
    def role(self) -> str:
        """Its part in disaggregation: "prefill", "decode", "both", or "" where nothing tells.

        What the KV connector is told counts first, then labels, then names.
        """
        given = _KV_ROLES.get(self.kv.role, "") if self.kv else ""
        labels = (self.pod.labels.get(label, "") for label in _ROLE_LABELS)
        named = (
            role
            for role in _ROLES
            if role in re.split(r"[^a-z]+", f"{self.pod.name} {self.pod.group}".lower())
        )
        told = next((label for label in labels if label in _ROLES), "") or next(named, "")
        return (given if given != "both" else told or given) or told

    def number(self, flag: str) -> int | None:
        """The whole number of a flag, or its default in the release; None where it cannot be known."""
        if flag in self.arguments:
            return self.arguments.number(flag)
        default = self._default(flag)
        return None if self.arguments.open or isinstance(default, bool) else whole_number(_text(default))

    def text(self, flag: str) -> str | None:
        """The value of a flag, or its default in the release; None where it cannot be known."""
        if flag in self.arguments:
            return self.arguments.text(flag)
        return None if self.arguments.open else _text(self._default(flag))

    def truth(self, flag: str) -> bool | None:
        """Whether a switch is on, by default too; None where it cannot be known."""
        if flag in self.arguments:
            return self.arguments.truth(flag)
        default = self._default(flag)
        return default if isinstance(default, bool) and not self.arguments.open else None

    @property
    def model(self) -> str | None:
        """The model's name or path; None where it is not known."""
        first = self.arguments.positionals[:1]
        if first and not first[0].opaque:
            return first[0].text if first[0].known else None
        return self.arguments.text("model")

    @property
    def port(self) -> int | None:
        """The port of the HTTP server."""
        return (
            self.number("port") if "port" in self.arguments else None if self.arguments.open else _HTTP_PORT
        )

    @property
    def gpus_needed(self) -> int | None:
        """Cards that its processes in this pod take: tensor x pipeline x local data parallel size."""
        local = (
            "data-parallel-size-local"
            if "data-parallel-size-local" in self.arguments
            else "data-parallel-size"
        )
        sizes = [self.number(flag) for flag in ("tensor-parallel-size", "pipeline-parallel-size", local)]
        product = 1
        for size in sizes:
            if size is None:
                return None
            product *= size
        return product

    def configured(self, option: Argument) -> bool:
        """Whether an option stands in the file that --config names, and not on the command line."""
        node = option.word.node
        return self.config is not None and node is not None and node.document is self.config.document

    def variable(self, name: str) -> str | None:
        """The known value of an environment variable."""
        found = self.variables.get(name)
        return found.value if found else None

    def _default(self, flag: str) -> Any:
        found = (self.release or _newest()).flags.get(f"--{flag}")
        return found.default if found else None


def engines(pod: Pod, version: str | None, config: ConfigData) -> Iterator[Engine]:
    """The engines of a pod; `version` is the user's word on the version of all of them.

    config  reads the ConfigMaps of the pod's namespace
    """
    for container in pod.containers:
        if container.init and not container.native_sidecar:
            continue
        for started in _servers(container):
            yield _engine(pod, container, started, version, config)


def is_engine_image(image: Image) -> bool:
    """Whether an image starts `vllm serve` by itself."""
    facts = catalogue.facts("engine_images").get(image.name)
    return facts is not None and not set(facts["except"]) & set(image.path.split("/"))


def is_official_image(image: Image) -> bool:
    """Whether an image is vLLM's own, also by way of a mirror, so that its contents are known."""
    return is_engine_image(image) and image.path.split("/")[-2:-1] == ["vllm"]


def _servers(container: Container) -> Iterator[tuple[Invocation, int]]:
    values = {name: variable.value for name, variable in container.variables.items()}
    for invocation in invocations(container.words, values):
        if start := server(invocation.words):
            yield invocation, start
        elif not container.has_command and invocation.words == container.words and _serves(container):
            yield invocation, 0


def _serves(container: Container) -> bool:
    """Whether a container without a command runs an entrypoint that serves."""
    simulated = "sim" in container.image.name.split("-")
    return is_engine_image(container.image) or (container.name == "vllm" and not simulated)


def _engine(
    pod: Pod, container: Container, started: tuple[Invocation, int], given: str | None, config: ConfigData
) -> Engine:
    from vllm_phases.model.container import Variable

    invocation, start = started
    command = container.invocation or invocation
    find = _finder(pod, container, command, config)
    version = _version(pod, container, given)
    release = _release(version)
    words, file = expanded(invocation.words[start:], release or _newest(), find)
    arguments = parse(words, release or _newest())
    if pod.merged:
        arguments = replace(arguments, open=True)
    node = container.node
    assigned = {
        name: Variable(name, word.text if word.known else None, "value", node, word)
        for name, word in {**invocation.assignments, **_assigned(invocation.words[:start])}.items()
    }
    return Engine(
        pod=pod,
        container=container,
        version=version,
        release=release,
        words=words,
        arguments=arguments,
        variables={**container.variables, **assigned},
        kv=kv_transfer(arguments),
        gpu=gpu_request(pod, container),
        start=invocation.words[start - 1] if start else None,
        config=file,
        background=command.background,
    )


def _finder(
    pod: Pod, container: Container, command: Invocation, config: ConfigData
) -> Callable[[str], Node | None]:
    """Finds the YAML document at a path: one that the script has written, or one that is mounted."""

    def find(path: str) -> Node | None:
        written = command.files.get(posixpath.normpath(path))
        found = None if written else mounted(pod, container, path, config)
        return written or (embedded(found) if found else None)

    return find


def _assigned(words: tuple[Word, ...]) -> dict[str, Word]:
    """What `env NAME=value` before the server sets."""
    matches = ((_ENV_WORD.match(word.text), word) for word in words)
    return {match[1]: replace(word, text=word.text[match.end() :]) for match, word in matches if match}


def _version(pod: Pod, container: Container, given: str | None) -> Version | None:
    """The user's word, an annotation, the label of our own charts, or the tag of an official image."""
    if given:
        return Version(given, "option", container.node)
    for metadata in filter(None, (pod.metadata, pod.owner.node.at("metadata") if pod.owner else None)):
        annotation = metadata.at("annotations", VERSION_ANNOTATION)
        if annotation.text():
            return Version(annotation.text(), "annotation", annotation)
    if pod.labels.get("app.kubernetes.io/name") in _OUR_CHARTS and pod.labels.get(_VERSION_LABEL):
        return Version(pod.labels[_VERSION_LABEL], "label", pod.metadata.at("labels", _VERSION_LABEL))
    if is_engine_image(container.image):
        pattern = catalogue.facts("engine_images")[container.image.name]["tag"]
        if match := re.match(pattern, container.image.tag):
            return Version(match["version"], "image", container.image.node)
    return None


def _release(version: Version | None) -> EngineRelease | None:
    try:
        return catalogue.load(version.text) if version else None
    except UnknownVersion:
        return None


@functools.cache
def _newest() -> EngineRelease:
    return catalogue.load(catalogue.versions()[-1])


def _text(default: Any) -> str | None:
    return None if default is None else str(default)
