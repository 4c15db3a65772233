"""RUN: probes of engines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.model.engine import is_engine_image
from vllm_phases.model.ranks import local_replicas, nodes
from vllm_phases.model.relations import engines_in
from vllm_phases.model.weights import billions
from vllm_phases.rules import repairs
from vllm_phases.rules.registry import Context, Problem, rule
from vllm_phases.sources.changes import Remove, Set
from vllm_phases.sources.repair import Repair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Probe
    from vllm_phases.model.container import ProbeKind

_KINDS: tuple[ProbeKind, ...] = ("startup", "liveness", "readiness")
_LARGE = 65
_BACKGROUND = re.compile(r"(?<![&>])&(?![&>\d])")


@rule("RUN011", "no-startup-probe", Severity.WARNING, scope=Engine)
def no_startup_probe(engine: Engine, context: Context) -> Iterator[Problem]:
    """A liveness probe that gives up while a model may still be loading.

    Why:
        The engine answers only when the model is loaded and warm. The kubelet kills it before, again and
        again; the log ends with "KeyboardInterrupt: terminated".

    Bad:
        ```yaml
        livenessProbe: {httpGet: {path: /health, port: 8000}, initialDelaySeconds: 60, periodSeconds: 10}
        ```

    Good:
        ```yaml
        startupProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 10, failureThreshold: 120}
        livenessProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 10, timeoutSeconds: 10}
        ```

    References:
        - https://github.com/kserve/kserve/issues/5062
    """
    liveness = engine.container.probe("liveness")
    least = context.facts("probes")["patience"]["seconds"]
    if liveness and not engine.container.probe("startup") and liveness.budget < least:
        message = (
            f"the liveness probe gives up {liveness.budget} s after the start, and there is no startup probe"
        )
        fix = "Add a startupProbe with periodSeconds 10 and failureThreshold 60 or more."
        yield Problem(liveness, message, fix)


@rule("RUN012", "startup-budget-short", Severity.WARNING, scope=Engine)
def startup_budget_short(engine: Engine, context: Context) -> Iterator[Problem]:
    """A startup probe with less time than the model takes to load.

    Why:
        The kubelet kills the engine while it loads, and it begins anew.

    Bad:
        ```yaml
        args: [meta-llama/Llama-3.3-70B-Instruct]
        startupProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 10, failureThreshold: 12}
        ```

    Good:
        ```yaml
        args: [meta-llama/Llama-3.3-70B-Instruct]
        startupProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 10, failureThreshold: 120}
        ```

    References:
        - https://github.com/kserve/kserve/issues/5062
        - catalogue/data/probes.yaml, loading (an estimate)
    """
    startup = engine.container.probe("startup")
    loading = context.facts("probes")["loading"]
    size = billions(engine.model or "")
    least = loading["base"] + loading["perBillion"] * size
    if startup and startup.budget < least:
        of = f" of about {size:g} billion parameters" if size else ""
        message = (
            f"the startup probe gives up after {startup.budget} s; a model{of} takes {least:.0f} at least"
        )
        yield Problem(startup, message, "Raise failureThreshold: a probe that succeeds ends it early.")


@rule("RUN013", "engine-gives-up-first", Severity.WARNING, scope=Engine, since="0.14.0")
def engine_gives_up_first(engine: Engine, context: Context) -> Iterator[Problem]:
    """A startup probe that waits longer than the engine itself, for a large model.

    Why:
        The API server ends when its engine is not ready after VLLM_ENGINE_READY_TIMEOUT_S, 600 s by default.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-235B-A22B, --tensor-parallel-size=8]
        startupProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 10, failureThreshold: 180}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-235B-A22B, --tensor-parallel-size=8]
        env: [{name: VLLM_ENGINE_READY_TIMEOUT_S, value: '1800'}]
        startupProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 10, failureThreshold: 180}
        ```

    References:
        - vllm 0.32.0, vllm/v1/engine/core_client.py
    """
    name = "VLLM_ENGINE_READY_TIMEOUT_S"
    startup, given = engine.container.probe("startup"), engine.variable(name)
    if startup is None or not engine.container.complete or (given is None and name in engine.variables):
        return
    waits = context.facts("probes")["readyTimeout"]["seconds"] if given is None else int(given or 0)
    if startup.budget > waits and billions(engine.model or "") >= _LARGE:
        message = f"the startup probe waits {startup.budget} s, but the API server gives up after {waits} s"
        where = engine.variables.get(name) or startup
        yield Problem(where, message, f"Set {name} to {startup.budget}.")


@rule("RUN014", "probe-port", Severity.ERROR, scope=Engine)
def probe_port(engine: Engine, context: Context) -> Iterator[Problem]:
    """A probe of a port on which nothing listens.

    Why:
        The pod is never ready, or killed again and again.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --port=8200]
        readinessProbe: {httpGet: {path: /health, port: 8000}}
        ```
        ```yaml
        ports: [{name: http, containerPort: 8000}]
        readinessProbe: {httpGet: {path: /health, port: web}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --port=8200]
        ports: [{name: http, containerPort: 8200}]
        readinessProbe: {httpGet: {path: /health, port: http}}
        ```

    References:
        - https://github.com/vllm-project/production-stack/pull/809
    """
    for probe in _probes(engine, "httpGet", "tcpSocket", "grpc"):
        given = probe.node.at(probe.action, "port")
        if not given.text() or "{{" in given.text() or engine.pod.platform != "kubernetes":
            continue
        served = _served(engine, context)
        named = {port.name for port in engine.container.ports}
        if not given.text().isdecimal() and given.text() not in named:
            message = (
                f"the {probe.kind} probe asks port {given.text()!r}, which the container does not declare"
            )
            yield Problem(given, message, "Name a port of the container, or give its number.")
        elif probe.port is not None and served and probe.port not in served:
            message = f"the {probe.kind} probe asks port {probe.port}, but the engine listens on "
            message += " and ".join(map(str, sorted(served)))
            yield Problem(given, message, f"Set port: {min(served)}.")


@rule("RUN015", "probe-of-headless", Severity.ERROR, scope=Engine, fix="removes the probe.")
def probe_of_headless(engine: Engine, context: Context) -> Iterator[Problem]:
    """A probe of an engine that runs without an HTTP server.

    Why:
        With --headless nothing listens: the pod is never ready, or killed again and again.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --nnodes=2, --node-rank=1, --master-addr=$(LEADER), --headless]
        readinessProbe: {httpGet: {path: /health, port: 8000}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --nnodes=2, --node-rank=1, --master-addr=$(LEADER), --headless]
        ```

    References:
        - vllm 0.33.0, vllm/entrypoints/cli/serve.py, run_headless
    """
    beside = engines_in(context.release, engine.pod)
    group = [one for one in beside if one.container is engine.container]
    if (
        engine is group[0]
        and all(one.arguments.truth("headless") for one in group)
        and _alone(engine, context)
    ):
        for probe in _probes(engine, "httpGet", "tcpSocket"):
            message = f"the engine is --headless, so the {probe.kind} probe is never answered"
            yield Problem(probe, message, "Remove the probe.", repair=Repair((Remove(probe.node),)))


@rule("RUN016", "probe-scheme", Severity.ERROR, scope=Engine, fix="sets the scheme that the engine speaks.")
def probe_scheme(engine: Engine, context: Context) -> Iterator[Problem]:
    """A probe by HTTP of an engine that speaks HTTPS, or the other way round.

    Why:
        The engine breaks the connection off, so the pod is never ready.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --ssl-certfile=/tls/tls.crt, --ssl-keyfile=/tls/tls.key]
        readinessProbe: {httpGet: {path: /health, port: 8000}}
        ```
        ```yaml
        readinessProbe: {httpGet: {path: /health, port: 8000, scheme: HTTPS}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --ssl-certfile=/tls/tls.crt, --ssl-keyfile=/tls/tls.key]
        readinessProbe: {httpGet: {path: /health, port: 8000, scheme: HTTPS}}
        ```

    References:
        - https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/
    """
    if engine.arguments.open:
        return
    right = "HTTPS" if "ssl-certfile" in engine.arguments else "HTTP"
    for probe in _asked(engine, context):
        given = (probe.node.text("httpGet", "scheme") or "HTTP").upper()
        if given in ("HTTP", "HTTPS") and given != right:
            message = f"the {probe.kind} probe speaks {given}, but the engine {right}"
            action = probe.node.at("httpGet")
            repair = repairs.entry_set(action, "scheme", right)
            yield Problem(action, message, f"Set scheme: {right}.", repair=repair)


@rule("RUN017", "probe-path", Severity.ERROR, scope=Engine, fix="sets the path /health.")
def probe_path(engine: Engine, context: Context) -> Iterator[Problem]:
    """A probe of a path that the engine does not answer with 200.

    Why:
        vLLM has /health and none of the names of other servers, and /v1 asks for the API key: 404 or 401, so
        the pod is never ready.

    Bad:
        ```yaml
        readinessProbe: {httpGet: {path: /healthz, port: 8000}}
        ```
        ```yaml
        env: [{name: VLLM_API_KEY, valueFrom: {secretKeyRef: {name: vllm, key: api-key}}}]
        readinessProbe: {httpGet: {path: /v1/models, port: 8000}}
        ```

    Good:
        ```yaml
        env: [{name: VLLM_API_KEY, valueFrom: {secretKeyRef: {name: vllm, key: api-key}}}]
        readinessProbe: {httpGet: {path: /health, port: 8000}}
        ```
        ```yaml
        readinessProbe: {httpGet: {path: /v1/models, port: 8000}}
        ```

    References:
        - vllm 0.33.0, vllm/entrypoints
    """
    facts = context.facts("probes")
    variable = engine.variables.get("VLLM_API_KEY")
    keyed = "api-key" in engine.arguments or (variable is not None and variable.value != "")
    served = engine.start is not None or is_engine_image(engine.container.image)
    for probe in _asked(engine, context) if served else ():
        path = probe.path.rstrip("/")
        guarded = any(path.startswith(f"{prefix}/") for prefix in facts["authenticated"]["paths"])
        if path in facts["unknown"]["paths"]:
            why = "which vLLM does not have"
        elif keyed and guarded and not probe.node.at("httpGet", "httpHeaders").value:
            why = "which asks for the API key"
        else:
            continue
        message = f"the {probe.kind} probe asks {probe.path}, {why}"
        health, place = facts["health"]["path"], probe.node.at("httpGet", "path")
        yield Problem(place, message, f"Set path: {health}.", repair=Repair((Set(place, health),)))


@rule("RUN018", "probe-timeout-short", Severity.WARNING, scope=Engine)
def probe_timeout_short(engine: Engine, context: Context) -> Iterator[Problem]:
    """A liveness probe that waits only a moment for an answer.

    Why:
        The API server is one process that also tokenizes: under load an answer takes seconds. With 1 s, the
        default, a busy engine is killed.

    Bad:
        ```yaml
        livenessProbe: {httpGet: {path: /health, port: 8000}, initialDelaySeconds: 900}
        ```

    Good:
        ```yaml
        livenessProbe: {httpGet: {path: /health, port: 8000}, initialDelaySeconds: 900, timeoutSeconds: 10}
        ```

    References:
        - https://github.com/llm-d/llm-d-benchmark/pull/1734
    """
    liveness = engine.container.probe("liveness")
    least = context.facts("probes")["liveness"]["seconds"]
    if liveness and liveness.action in ("httpGet", "exec") and 0 < liveness.timeout < least:
        default = "" if liveness.node.at("timeoutSeconds") else " by default"
        message = f"the liveness probe waits {liveness.timeout} s{default} for an answer"
        where = liveness.node.at("timeoutSeconds") if not default else liveness
        yield Problem(where, message, f"Set timeoutSeconds to {least} or more.")


@rule("RUN019", "no-readiness-probe", Severity.WARNING, scope=Engine)
def no_readiness_probe(engine: Engine, context: Context) -> Iterator[Problem]:
    """An engine with neither a readiness nor a startup probe.

    Why:
        Its pod counts as ready at once: for the minutes that a model loads, requests are refused, and a
        rollout takes the old pods away too early.

    Bad:
        ```yaml
        ports: [{name: http, containerPort: 8000}]
        ```

    Good:
        ```yaml
        ports: [{name: http, containerPort: 8000}]
        readinessProbe: {httpGet: {path: /health, port: http}, periodSeconds: 5, timeoutSeconds: 5}
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --headless]
        ```

    References:
        - https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/
    """
    probes = [engine.container.probe(kind) for kind in ("startup", "readiness")]
    headless = engine.arguments.truth("headless") or engine.arguments.open
    if engine.pod.as_written and not any(probes) and not headless:
        message = "the engine has no readiness probe, so it is sent requests while it loads"
        fix = "Add a readinessProbe with httpGet of /health, and a startupProbe."
        yield Problem(engine.node.at("readinessProbe"), message, fix)


@rule("RUN020", "health-of-one-node", Severity.NOTE, scope=Engine)
def health_of_one_node(engine: Engine, context: Context) -> Iterator[Problem]:
    """An engine over several nodes whose probes see one of them.

    Why:
        /health does not see that a rank on another node is dead: requests hang until NCCL gives up.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-235B-A22B, --tensor-parallel-size=16, --nnodes=2, --master-addr=$(LEADER)]
        livenessProbe: {httpGet: {path: /health, port: 8000}, initialDelaySeconds: 900, timeoutSeconds: 10}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-235B-A22B, --tensor-parallel-size=8]
        livenessProbe: {httpGet: {path: /health, port: 8000}, initialDelaySeconds: 900, timeoutSeconds: 10}
        ```
        ```yaml
        apiVersion: leaderworkerset.x-k8s.io/v1
        kind: LeaderWorkerSet
        metadata: {name: deep}
        spec:
          leaderWorkerTemplate:
            size: 2
            restartPolicy: RecreateGroupOnPodRestart
            workerTemplate:
              spec:
                containers:
                  - name: vllm
                    image: vllm/vllm-openai:v0.33.0
                    args:
                      - Qwen/Qwen3-235B-A22B
                      - --tensor-parallel-size=16
                      - --nnodes=2
                      - --node-rank=$(LWS_WORKER_INDEX)
                      - --master-addr=$(LWS_LEADER_ADDRESS)
                    livenessProbe: {httpGet: {path: /health, port: 8000}, initialDelaySeconds: 900, timeoutSeconds: 10}
        ```

    References:
        - vllm 0.33.0, the health route asks the engine core, not every rank
        - https://lws.sigs.k8s.io/docs/concepts/ (RecreateGroupOnPodRestart)
    """
    liveness, count = engine.container.probe("liveness"), nodes(engine)
    several = count is not None and count > 1 and not engine.arguments.truth("headless")
    if liveness and several and not _recreated(engine):
        message = f"the liveness probe does not see a dead rank on another of its {count} nodes"
        fix = "Recreate the whole group when a pod ends, and watch for requests that hang."
        yield Problem(liveness, message, fix)


def _recreated(engine: Engine) -> bool:
    """Whether the end of any pod of the engine makes all of them anew: the default of a LeaderWorkerSet."""
    owner = engine.pod.owner
    if owner is None or owner.kind != "LeaderWorkerSet":
        return False
    policy = owner.node.at("spec", "leaderWorkerTemplate", "restartPolicy")
    return not policy or policy.text().startswith("RecreateGroup")


def _probes(engine: Engine, *actions: str) -> Iterator[Probe]:
    """The probes of the engine's container that act in one of some ways."""
    for kind in _KINDS:
        probe = engine.container.probe(kind)
        if probe is not None and probe.action in actions:
            yield probe


def _alone(engine: Engine, context: Context) -> bool:
    """Whether nobody but engines can answer in the pod."""
    serving = {id(one.container) for one in engines_in(context.release, engine.pod)}
    others = [one for one in engine.pod.containers if id(one) not in serving]
    return not _scripted(engine) and not any(not one.init or one.native_sidecar for one in others)


def _scripted(engine: Engine) -> bool:
    """Whether a script starts more than the engine."""
    return any(_BACKGROUND.search(word.text) for word in engine.container.words)


def _asked(engine: Engine, context: Context) -> Iterator[Probe]:
    """The probes that an engine must answer by HTTP."""
    for probe in _probes(engine, "httpGet"):
        own = probe.port is not None and probe.port == engine.port and not _scripted(engine)
        if own or _alone(engine, context):
            yield probe


def _served(engine: Engine, context: Context) -> set[int]:
    """The ports on which the pod's engines listen; empty where they are not all known."""
    every = engines_in(context.release, engine.pod)
    odd = ("data-parallel-multi-port-external-lb", "uds", "grpc", "grpc-port")
    known = all(one.port is not None and not any(name in one.arguments for name in odd) for one in every)
    if not known or not _alone(engine, context) or (local_replicas(engine) or 1) < 1:
        return set()
    return {one.port for one in every if one.port is not None}
