"""Everything that the documents deploy together, read once."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from vllm_phases import catalogue
from vllm_phases.model import compose, deployments, llmd, network, pod, script
from vllm_phases.model.arguments import parse
from vllm_phases.model.command import invocations
from vllm_phases.model.engine import Engine, engines
from vllm_phases.model.index import Index
from vllm_phases.model.llmd import Component, Picker, PickerConfig, Pool, Router, Sidecar
from vllm_phases.model.objects import Object, objects, same_namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from vllm_phases.model.container import Container
    from vllm_phases.model.network import Autoscaler, Monitor, Policy, Route, Service
    from vllm_phases.model.pod import Pod
    from vllm_phases.sources.document import Document, Node

_T = TypeVar("_T")
_COMPONENTS: dict[str, type[Component]] = {"sidecar": Sidecar, "picker": Picker}


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """The documents of one run and what they mean. `vllm_version` is the user's word, None without one."""

    documents: tuple[Document, ...]
    vllm_version: str | None = None

    @functools.cached_property
    def deployments(self) -> tuple[Release, ...]:
        """What may be deployed together: itself, or its parts where files contradict each other."""
        parts = tuple(deployments.split(self.documents))
        return (self,) if len(parts) == 1 else tuple(Release(part, self.vllm_version) for part in parts)

    @functools.cached_property
    def objects(self) -> tuple[Object, ...]:
        """Every Kubernetes object."""
        return tuple(objects(self.documents))

    @functools.cached_property
    def pods(self) -> tuple[Pod, ...]:
        """Every pod template, compose service and command of a script."""
        return tuple(self._pods())

    @functools.cached_property
    def engines(self) -> tuple[Engine, ...]:
        """Every engine."""
        return tuple(
            engine
            for found in self.pods
            for engine in engines(found, self.vllm_version, self.config_data(found.namespace))
        )

    @functools.cached_property
    def components(self) -> tuple[Component, ...]:
        """Every routing sidecar, endpoint picker and router."""
        taken = {id(engine.container) for engine in self.engines}
        return tuple(
            component
            for found in self.pods
            for container in found.containers
            if id(container) not in taken
            for component in _components(found, container)
        )

    @property
    def sidecars(self) -> tuple[Sidecar, ...]:
        """llm-d's routing sidecars."""
        return tuple(found for found in self.components if isinstance(found, Sidecar))

    @property
    def pickers(self) -> tuple[Picker, ...]:
        """llm-d's endpoint pickers."""
        return tuple(found for found in self.components if isinstance(found, Picker))

    @property
    def routers(self) -> tuple[Router, ...]:
        """Routers that know engines by URL or by label."""
        return tuple(found for found in self.components if isinstance(found, Router))

    @functools.cached_property
    def picker_configs(self) -> tuple[PickerConfig, ...]:
        """Every EndpointPickerConfig in a ConfigMap or standing alone."""
        alone = (PickerConfig(found.node, None, "") for found in self.of_kind("EndpointPickerConfig"))
        held = (config for found in self.of_kind("ConfigMap") for config in llmd.picker_configs(found))
        return (*held, *alone)

    @functools.cached_property
    def pools(self) -> tuple[Pool, ...]:
        """Every InferencePool."""
        return self._read(llmd.pool)

    @functools.cached_property
    def selections(self) -> tuple[Pool, ...]:
        """What pickers without an InferencePool select themselves."""
        return tuple(found for picker in self.pickers if (found := llmd.selection(picker)))

    @functools.cached_property
    def services(self) -> tuple[Service, ...]:
        """Every Service."""
        return self._read(network.service)

    @functools.cached_property
    def routes(self) -> tuple[Route, ...]:
        """Every route and Ingress."""
        return self._read(network.route)

    @functools.cached_property
    def autoscalers(self) -> tuple[Autoscaler, ...]:
        """Every HorizontalPodAutoscaler and ScaledObject."""
        return self._read(network.autoscaler)

    @functools.cached_property
    def monitors(self) -> tuple[Monitor, ...]:
        """Every ServiceMonitor and PodMonitor."""
        return self._read(network.monitor)

    @functools.cached_property
    def policies(self) -> tuple[Policy, ...]:
        """Every NetworkPolicy."""
        return self._read(network.policy)

    @property
    def serves(self) -> bool:
        """Whether there is anything here that the linter knows about."""
        return bool(self.engines or self.components or self.pools or self.picker_configs)

    @functools.cached_property
    def index(self) -> Index:
        """Its parts by what others find them by."""
        return Index(self)

    def of_kind(self, kind: str) -> tuple[Object, ...]:
        """The objects of a kind."""
        return self._by_kind.get(kind, ())

    def find(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """The object of a kind and name that something in `namespace` would find."""
        found = self._by_name.get((kind, name), ())
        exact = (candidate for candidate in found if candidate.namespace == namespace)
        near = (candidate for candidate in found if same_namespace(candidate.namespace, namespace))
        return next(exact, None) or next(near, None)

    def config_data(self, namespace: str) -> Callable[[str], Mapping[str, Node] | None]:
        """Reads the data of ConfigMaps for pods of a namespace."""

        def data(name: str) -> Mapping[str, Node] | None:
            found = self.find("ConfigMap", name, namespace)
            return dict(found.node.entries("data")) if found else None

        return data

    @functools.cached_property
    def _by_kind(self) -> dict[str, tuple[Object, ...]]:
        return _grouped((found.kind, found) for found in self.objects)

    @functools.cached_property
    def _by_name(self) -> dict[tuple[str, str], tuple[Object, ...]]:
        return _grouped(((found.kind, found.name), found) for found in self.objects)

    def _read(self, reader: Callable[[Object], _T | None]) -> tuple[_T, ...]:
        return tuple(read for found in self.objects if (read := reader(found)) is not None)

    def _pods(self) -> Iterator[Pod]:
        for found in self.objects:
            yield from pod.pods(found, self.config_data(found.namespace))
        for document in self.documents:
            if document.kind == "compose":
                yield from compose.pods(document)
            elif document.kind == "command":
                yield from script.pods(document)


_K = TypeVar("_K")


def _grouped(pairs: Iterable[tuple[_K, Object]]) -> dict[_K, tuple[Object, ...]]:
    groups: dict[_K, list[Object]] = {}
    for key, found in pairs:
        groups.setdefault(key, []).append(found)
    return {key: tuple(group) for key, group in groups.items()}


def _components(found: Pod, container: Container) -> Iterator[Component]:
    """What a container is by its image, its program or its options (catalogue/data/components.yaml)."""
    values = {name: variable.value for name, variable in container.variables.items()}
    for invocation in invocations(container.words, values):
        arguments = parse(invocation.words, None)
        programs = {word.text.rsplit("/", 1)[-1] for word in invocation.words[:3]}
        options = {option.name for option in arguments.options}
        names = {container.image.name, *programs}
        for kind, facts in catalogue.facts("components").items():
            by_image = container.image.name in facts["images"] and not container.has_command
            if names & set(facts.get("others", ())):
                continue
            if by_image or programs & set(facts["programs"]) or options & set(facts["flags"]):
                yield _COMPONENTS.get(kind, Router)(kind, found, container, arguments)
                return
