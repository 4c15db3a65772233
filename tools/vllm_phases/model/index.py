"""The parts of a release by what others find them by, so that many objects cost no pairwise search."""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vllm_phases.model.engine import Engine
    from vllm_phases.model.llmd import Picker, PickerConfig, Pool, Sidecar
    from vllm_phases.model.network import Route, Service
    from vllm_phases.model.pod import Pod
    from vllm_phases.model.release import Release

_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(frozen=True, eq=False, repr=False)
class Index:
    """Look-ups in a release, each made when it is first needed. Pods are known by id(pod)."""

    release: Release

    @functools.cached_property
    def pods_by_label(self) -> Mapping[tuple[str, str], list[Pod]]:
        """Pods by each of their labels."""
        return _grouped((pair, pod) for pod in self.release.pods for pair in pod.labels.items())

    @functools.cached_property
    def engines_by_pod(self) -> Mapping[int, list[Engine]]:
        """Engines by their pod."""
        return _grouped((id(engine.pod), engine) for engine in self.release.engines)

    @functools.cached_property
    def sidecars_by_pod(self) -> Mapping[int, list[Sidecar]]:
        """Routing sidecars by their pod."""
        return _grouped((id(sidecar.pod), sidecar) for sidecar in self.release.sidecars)

    @functools.cached_property
    def services_by_pod(self) -> Mapping[int, list[Service]]:
        """Services by each pod that they select."""
        return _grouped(
            (id(pod), service)
            for service in self.release.services
            for pod in self.selected(service.selector, service.object.namespace)
        )

    @functools.cached_property
    def pools_by_pod(self) -> Mapping[int, list[Pool]]:
        """Pools, and pickers' own selections, by each pod that they select."""
        return _grouped(
            (id(pod), pool)
            for pool in (*self.release.pools, *self.release.selections)
            for pod in self.selected(pool.selector, pool.object.namespace)
        )

    @functools.cached_property
    def services_by_name(self) -> Mapping[str, list[Service]]:
        """Services by name, of all namespaces."""
        return _grouped((service.object.name, service) for service in self.release.services)

    @functools.cached_property
    def pools_by_name(self) -> Mapping[str, list[Pool]]:
        """Pools by name, of all namespaces and both groups."""
        return _grouped((pool.object.name, pool) for pool in self.release.pools)

    @functools.cached_property
    def pools_by_picker(self) -> Mapping[str, list[Pool]]:
        """Pools by the name of their picker's Service."""
        return _grouped((pool.picker, pool) for pool in self.release.pools if pool.picker)

    @functools.cached_property
    def pickers_by_pod(self) -> Mapping[int, list[Picker]]:
        """Endpoint pickers by their pod."""
        return _grouped((id(picker.pod), picker) for picker in self.release.pickers)

    @functools.cached_property
    def pickers_by_pool(self) -> Mapping[str, list[Picker]]:
        """Endpoint pickers by the pool that their options name."""
        return _grouped((picker.pool_name, picker) for picker in self.release.pickers if picker.pool_name)

    @functools.cached_property
    def configs_by_holder(self) -> Mapping[str, list[PickerConfig]]:
        """Configurations of pickers by the name of their ConfigMap."""
        return _grouped(
            (config.holder.name, config) for config in self.release.picker_configs if config.holder
        )

    @functools.cached_property
    def routes_by_backend(self) -> Mapping[tuple[str, str], list[Route]]:
        """Routes by kind and name of what they send to."""
        return _grouped(
            ((backend.kind, backend.name), route)
            for route in self.release.routes
            for backend in route.backends
        )

    def selected(self, selector: Mapping[str, str], namespace: str) -> list[Pod]:
        """The pods that a selector takes in a namespace; an empty selector takes none."""
        from vllm_phases.model.objects import same_namespace

        if not selector:
            return []
        candidates = min((self.pods_by_label.get(pair, []) for pair in selector.items()), key=len)
        return [
            pod
            for pod in candidates
            if same_namespace(pod.namespace, namespace) and selector.items() <= pod.labels.items()
        ]


def _grouped(pairs: Iterable[tuple[_K, _V]]) -> Mapping[_K, list[_V]]:
    groups: dict[_K, list[_V]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return dict(groups)
