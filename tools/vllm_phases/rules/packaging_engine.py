"""PKG: what an engine finds in its container, or in its environment without anybody's doing."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.model.engine import is_official_image
from vllm_phases.rules import repairs
from vllm_phases.rules.labels import kustomized
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Argument, Release, Service, Variable, Word

_PLAIN_GROUPS = (
    "",
    "apps",
    "batch",
    "leaderworkerset.x-k8s.io",
)  # controllers of others mount volumes of theirs
_ELSEWHERE = ("configs", "secrets", "volumes_from", "extends", "build", "tmpfs", "develop", "post_start")


@rule(
    "PKG011", "service-link", Severity.ERROR, scope=Engine, fix="sets enableServiceLinks: false on the pod."
)
def service_link(engine: Engine, context: Context) -> Iterator[Problem]:
    """A Service whose name makes Kubernetes set a variable that vLLM reads.

    Why:
        Each Service of the namespace puts NAME_PORT=tcp://… into every pod. From one called vllm that is
        VLLM_PORT, and the engine ends: `VLLM_PORT … appears to be a URI`. Other names that begin with vllm only
        make it log a warning for each variable.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B]
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: vllm}
        spec: {selector: {app: demo-0}, ports: [{port: 8000}]}
        ```

    Good:
        ```yaml
        enableServiceLinks: false
        containers: [{name: vllm, image: "vllm/vllm-openai:v0.33.0", args: [Qwen/Qwen3-8B]}]
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: vllm}
        spec: {selector: {app: demo-0}, ports: [{port: 8000}]}
        ```
        ```yaml
        args: [Qwen/Qwen3-8B]
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: vllm}
        spec: {clusterIP: None, selector: {app: demo-0}, ports: [{port: 8000}]}
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/15613
        - https://kubernetes.io/docs/tutorials/services/connect-applications-service/#environment-variables
    """
    pod = engine.pod
    if pod.platform != "kubernetes" or pod.spec.at("enableServiceLinks").value is False:
        return
    linked = _linked(context.release)
    reads = engine.release.env if engine.release else frozenset(("VLLM_PORT",))
    strict = bool(engine.arguments.truth("fail-on-environ-validation"))
    for name in sorted(linked if strict else linked.keys() & reads):
        service = next((one for one in linked[name] if one.object.namespace == pod.namespace), None)
        if service is None or name in engine.variables:
            continue
        effect = "to a URL in this pod, where vLLM reads a number"
        if name not in reads:
            effect = "in this pod, with which --fail-on-environ-validation ends vLLM"
        message = f"Service {service.object.name} sets {name} {effect}"
        weight = Severity.WARNING if kustomized(context.release) else None
        repair = repairs.entry_set(pod.spec, "enableServiceLinks", False)
        yield Problem(pod.spec, message, "Set enableServiceLinks: false on the pod.", weight, repair)


@rule("PKG012", "file-not-there", Severity.ERROR, scope=Engine)
def file_not_there(engine: Engine, context: Context) -> Iterator[Problem]:
    """A path that neither the official image nor any volume of the container has.

    Why:
        The engine ends, or goes on without the settings that the file holds. Where the model is a path, vLLM
        takes one that is not there for a name on the hub and refuses it.

    Bad:
        ```yaml
        env: [{name: LMCACHE_CONFIG_FILE, value: /opt/kv/local.yaml}]
        ```
        ```yaml
        args: [/models/Qwen3-8B]
        ```

    Good:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [/models/Qwen3-8B]
            env: [{name: LMCACHE_CONFIG_FILE, value: /opt/kv/local.yaml}]
            volumeMounts: [{name: models, mountPath: /models}, {name: kv, mountPath: /opt/kv/local.yaml, subPath: a}]
        ```
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [/models/Qwen3-8B]
            volumes: ["${MODELS:?where the models are}:/models"]
        ```
        ```yaml
        image: registry.example.net/ours/engine-with-models:1.0
        command: [vllm, serve, /models/Qwen3-8B]
        ```
        ```yaml
        command: [sh, -c, "curl -o /opt/kv/a.yaml http://a/b; LMCACHE_CONFIG_FILE=/opt/kv/a.yaml vllm serve Qwen/Qwen3-8B"]
        ```

    References:
        - https://github.com/LMCache/LMCache/issues/906
        - docker/Dockerfile of vLLM
    """
    if not is_official_image(engine.container.image) or _may_come_from_elsewhere(engine):
        return
    facts = context.facts("packaging")["files"]
    for name, path, where in _paths(engine, facts["variables"], facts["flags"]):
        plain = path.strip("\"'")
        there = (*facts["image"], *(mount.path for mount in engine.container.mounts))
        if plain.startswith("/") and not any(_lies_in(plain, folder) for folder in there if folder):
            message = f"{name} is {plain}, which no volume and not the image has"
            yield Problem(where, message, "Mount a volume or ConfigMap there.")


def _paths(
    engine: Engine, variables: list[str], flags: list[str]
) -> Iterator[tuple[str, str, Variable | Argument | Word]]:
    for name in variables:
        variable = engine.variables.get(name)
        if variable is not None and variable.value:
            yield name, variable.value, variable
    for flag in flags:
        option = engine.arguments.last(flag)
        if option is not None and option.value:
            yield f"--{flag}", option.value, option
    if engine.model and engine.arguments.positionals:
        yield "the model", engine.model, engine.arguments.positionals[0]


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _may_come_from_elsewhere(engine: Engine) -> bool:
    """Whether a script of the container, or something that the model does not read, may make files."""
    container = engine.container
    scripted = any(" " in word.text and "vllm" in word.text for word in container.words)
    options = container.options
    mounted = options is not None and any(name in options for name in ("mount", "volumes-from", "tmpfs"))
    injected = engine.pod.owner is not None and engine.pod.owner.group not in _PLAIN_GROUPS
    unread = any(not mount.path.startswith("/") for mount in container.mounts)
    composed = engine.pod.platform == "compose" and any(container.node.at(key) for key in _ELSEWHERE)
    return scripted or mounted or injected or unread or composed or engine.pod.platform == "shell"


@functools.lru_cache(maxsize=4)
def _linked(release: Release) -> dict[str, list[Service]]:
    """The Services that give pods a variable that begins with VLLM_, by its name."""
    found: dict[str, list[Service]] = {}
    for service in release.services:
        name = service.object.name.upper().replace("-", "_") + "_PORT"
        if name.startswith("VLLM_") and not service.headless and service.type != "ExternalName":
            found.setdefault(name, []).append(service)
    return found
