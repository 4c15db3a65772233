"""Which part of a release finds which other part."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from vllm_phases.model.objects import same_namespace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.model.engine import Engine
    from vllm_phases.model.llmd import Picker, PickerConfig, Pool, Router, Sidecar
    from vllm_phases.model.network import Autoscaler, Route, Service
    from vllm_phases.model.objects import Object
    from vllm_phases.model.pod import Pod
    from vllm_phases.model.release import Release
    from vllm_phases.sources.shell import Word

_EVERY_COUPLE = 64
_URL = re.compile(r"(?:(?P<scheme>\w+)://)?(?P<host>\[[^\]]*\]|[^:/\s]+)(?::(?P<port>\d+))?(?:/.*)?")


@dataclass(frozen=True)
class Url:
    """An address that a router is given."""

    scheme: str
    host: str
    port: int | None
    word: Word


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether a selector takes pods of these labels; an empty one takes none."""
    return bool(selector) and selector.items() <= labels.items()


def pods_of(release: Release, selecting: Service | Pool) -> tuple[Pod, ...]:
    """The pods that a Service or a pool selects."""
    return tuple(release.index.selected(selecting.selector, selecting.object.namespace))


def engines_of(release: Release, selecting: Service | Pool) -> tuple[Engine, ...]:
    """The engines that a Service or a pool selects."""
    return tuple(engine for pod in pods_of(release, selecting) for engine in engines_in(release, pod))


def services_of(release: Release, pod: Pod) -> tuple[Service, ...]:
    """The Services that select a pod."""
    return tuple(release.index.services_by_pod.get(id(pod), ()))


def pools_of(release: Release, pod: Pod) -> tuple[Pool, ...]:
    """The pools that select a pod, and the selections of pickers that do."""
    return tuple(release.index.pools_by_pod.get(id(pod), ()))


def engines_in(release: Release, pod: Pod) -> tuple[Engine, ...]:
    """The engines of a pod."""
    return tuple(release.index.engines_by_pod.get(id(pod), ()))


def sidecar_of(release: Release, engine: Engine) -> Sidecar | None:
    """The routing sidecar in an engine's pod."""
    return next(iter(release.index.sidecars_by_pod.get(id(engine.pod), ())), None)


def engine_of(release: Release, sidecar: Sidecar) -> Engine | None:
    """The engine behind a routing sidecar."""
    return next(iter(engines_in(release, sidecar.pod)), None)


def picker_of(release: Release, pool: Pool) -> Picker | None:
    """The endpoint picker that a pool refers to by its Service, or that names the pool."""
    if pool.chooser:
        return pool.chooser
    service = service_at(release, pool.picker, pool.object.namespace) if pool.picker else None
    for pod in pods_of(release, service) if service else ():
        for picker in release.index.pickers_by_pod.get(id(pod), ()):
            return picker
    named = release.index.pickers_by_pool.get(pool.object.name, ())
    return next((picker for picker in named if _meet(picker.pod, pool.object)), None)


def pool_of(release: Release, picker: Picker) -> Pool | None:
    """The pool that a picker serves: by its options, by the Service that pools refer to, or its selection."""
    for pool in release.index.pools_by_name.get(picker.pool_name or "", ()):
        if _meet(picker.pod, pool.object):
            return pool
    for service in services_of(release, picker.pod):
        for pool in release.index.pools_by_picker.get(service.object.name, ()):
            if _meet(picker.pod, pool.object):
                return pool
    return next((own for own in release.selections if own.chooser is picker), None)


def config_of(release: Release, picker: Picker) -> PickerConfig | None:
    """The configuration that a picker reads: the one of a ConfigMap mounted at --config-file."""
    key = (picker.config_file or "").rpartition("/")[2]
    held = [
        config
        for volume in picker.pod.volumes.values()
        for config in release.index.configs_by_holder.get(volume.text("configMap", "name"), ())
        if config.holder and _meet(picker.pod, config.holder)
    ]
    return next((config for config in held if config.key == key), next(iter(held), None))


def urls(router: Router, *options: str) -> tuple[Url, ...]:
    """The addresses that a router is given by some options, in order."""
    found = (
        (word, match)
        for name in options
        for option in router.arguments.all(name)
        for value in option.values
        for word in (value,)
        for part in value.text.split(",")
        if (match := _URL.fullmatch(part.strip())) and not part.strip().isdecimal()
    )
    return tuple(
        Url(match["scheme"] or "", match["host"], int(match["port"]) if match["port"] else None, word)
        for word, match in found
    )


def service_at(release: Release, host: str, namespace: str) -> Service | None:
    """The Service that a host name means inside a cluster: NAME or NAME.NAMESPACE[.svc…]."""
    name, _, rest = host.partition(".")
    inside = rest.partition(".")[0] or namespace
    named = release.index.services_by_name.get(name, ())
    return next((service for service in named if same_namespace(service.object.namespace, inside)), None)


def pairs(release: Release) -> Iterator[tuple[Engine, Engine]]:
    """Each prefill engine with each decode engine that may take over its requests.

    They belong together when a pool selects both, or a router sends to both; where neither is among the
    documents, when they share a namespace and every label but that of the role, or the rest of their name.
    """
    seen: set[tuple[int, int]] = set()
    for group in _groups(release):
        prefill = [engine for engine in group if engine.role == "prefill"]
        decode = [engine for engine in group if engine.role == "decode"]
        for one, other in _couples(prefill, decode):
            if (id(one), id(other)) not in seen:
                seen.add((id(one), id(other)))
                yield one, other


def _couples(prefill: list[Engine], decode: list[Engine]) -> Iterator[tuple[Engine, Engine]]:
    """Every couple; in a large group each with the first of the other side, which shows differences too."""
    if len(prefill) * len(decode) <= _EVERY_COUPLE:
        yield from product(prefill, decode)
        return
    yield from ((one, decode[0]) for one in prefill)
    yield from ((prefill[0], other) for other in decode)


def routed(release: Release, router: Router) -> tuple[Engine, ...]:
    """The engines that a router sends to by the URLs of its options."""
    names = ("prefill", "decode", "worker-urls", "static-backends", "encode")
    found: dict[int, Engine] = {}
    for url in urls(router, *names):
        service = service_at(release, url.host, router.pod.namespace)
        for engine in engines_of(release, service) if service else _compose_engines(release, url.host):
            found[id(engine)] = engine
    return tuple(found.values())


def scaled(release: Release, autoscaler: Autoscaler) -> Object | None:
    """The object that an autoscaler scales."""
    return release.find(*autoscaler.target, autoscaler.object.namespace)


def routes_to(release: Release, kind: str, name: str, namespace: str) -> tuple[Route, ...]:
    """The routes that send to something."""
    named = release.index.routes_by_backend.get((kind, name), ())
    return tuple(route for route in named if same_namespace(route.object.namespace, namespace))


def _groups(release: Release) -> Iterator[tuple[Engine, ...]]:
    grouped: set[int] = set()
    known = [engines_of(release, pool) for pool in (*release.pools, *release.selections)]
    known += [routed(release, router) for router in release.routers]
    for group in known:
        grouped.update(id(engine) for engine in group)
        yield group
    rest: dict[tuple[object, ...], list[Engine]] = {}
    for engine in release.engines:
        if id(engine) not in grouped and engine.role in ("prefill", "decode"):
            rest.setdefault(_family(engine), []).append(engine)
    yield from map(tuple, rest.values())


def _family(engine: Engine) -> tuple[object, ...]:
    """What engines of one deployment have in common: the file or namespace, and the name without the role."""
    stem = re.sub(r"[-_.]?(prefill|decode)(er)?[-_.]?", "-", engine.pod.name.lower()).strip("-")
    place = engine.pod.namespace if engine.pod.platform == "kubernetes" else engine.node.document.file
    return engine.pod.platform, place, stem


def _compose_engines(release: Release, host: str) -> Iterator[Engine]:
    for engine in release.engines:
        if engine.pod.platform == "compose" and engine.pod.name == host:
            yield engine


def _meet(pod: Pod, found: Object) -> bool:
    """Whether a pod and an object may share a namespace."""
    return same_namespace(pod.namespace, found.namespace)
