"""LLMD: InferencePools, the pods that they select and the routes that lead to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Pod, Pool, Route, Sidecar, relations
from vllm_phases.model.objects import same_namespace
from vllm_phases.rules import ports, repairs
from vllm_phases.rules.labels import added_by_controllers, kustomized, unfinished
from vllm_phases.rules.registry import Context, Problem, rule
from vllm_phases.sources.changes import Set
from vllm_phases.sources.repair import Repair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Release

_GA, _OLD = "inference.networking.k8s.io", "inference.networking.x-k8s.io"
_MODES = ("FailOpen", "FailClose")


@rule("LLMD020", "pool-port-not-served", Severity.ERROR, scope=Pool)
def pool_port_not_served(pool: Pool, context: Context) -> Iterator[Problem]:
    """A pod of the pool does not listen on one of the pool's target ports.

    Why:
        Target ports belong to the whole pool: the picker takes every pod with every port for an endpoint. A
        prefill pod on another port is never reached, and with --data-parallel-hybrid-lb a pod serves one port,
        not one for each rank. The pod annotation llm-d.ai/active-ports names the ports of a single pod.

    Bad:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {pool: demo}}
        spec:
          containers:
            - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8300]}
        ```
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}, {number: 8001}]}
        ---
        metadata: {labels: {pool: demo}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, --data-parallel-size=2, --data-parallel-size-local=2, --data-parallel-hybrid-lb]
        ```

    Good:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}, {number: 8300}]}
        ---
        metadata: {labels: {pool: demo}, annotations: {llm-d.ai/active-ports: '8300'}}
        spec:
          containers:
            - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8300]}
        ```
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}, {number: 8001}]}
        ---
        metadata: {labels: {pool: demo}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, --data-parallel-size=2, --data-parallel-multi-port-external-lb]
        ```

    References:
        - https://github.com/llm-d/llm-d/issues/632
        - https://github.com/llm-d/llm-d/issues/1855
    """
    targets = frozenset(number for number, _ in pool.target_ports)
    for pod in _pods(context.release, pool):
        heard = ports.served(context.release, pod)
        missing = sorted(ports.wanted(pod, targets) - heard) if heard is not None else []
        if missing:
            where = next((node for number, node in pool.target_ports if number in missing), pool.node)
            listens = ", ".join(map(str, sorted(heard or ()))) or "no port"
            wanted = ", ".join(map(str, missing))
            message = f"pods of {_owner(pod)} belong to the pool but listen on {listens}, not on target port {wanted}"
            fix = (
                "Let every pod of the pool listen on each target port, or give the pod llm-d.ai/active-ports."
            )
            yield Problem(where, message, fix)


def _pods(release: Release, pool: Pool) -> tuple[Pod, ...]:
    return relations.pods_of(release, pool)


def _owner(pod: Pod) -> str:
    return pod.owner.id if pod.owner else pod.name


@rule("LLMD021", "pool-bypasses-sidecar", Severity.ERROR, scope=Sidecar)
def pool_bypasses_sidecar(sidecar: Sidecar, context: Context) -> Iterator[Problem]:
    """The pool, or the picker's own selection, sends to the engine behind a sidecar, past that sidecar.

    Why:
        Only the sidecar reads the prefill address that the picker chose. Past it every request is answered,
        and none is ever disaggregated.

    Bad:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8200}]}
        ---
        metadata: {labels: {pool: demo}}
        spec:
          initContainers:
            - {name: routing-proxy, image: 'ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0', restartPolicy: Always}
          containers:
            - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```
        ```yaml
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--endpoint-selector=pool=demo, --endpoint-target-ports=8200]
        ---
        metadata: {labels: {pool: demo}}
        spec:
          initContainers:
            - {name: routing-proxy, image: 'ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0', restartPolicy: Always}
          containers:
            - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    Good:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {pool: demo}}
        spec:
          initContainers:
            - {name: routing-proxy, image: 'ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0', restartPolicy: Always}
          containers:
            - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    References:
        - observed with llm-d-router v0.10.0
    """
    pod, own = sidecar.pod, ports.sidecar_ports(sidecar)
    if own is None:
        return
    engines = relations.engines_in(context.release, pod)
    heard = {port for engine in engines for port in ports.engine_ports(engine) or ()}
    for pool in relations.pools_of(context.release, pod):
        targets = ports.wanted(pod, frozenset(number for number, _ in pool.target_ports))
        if past := (targets & heard) - own:
            port = min(past)
            where = next((node for number, node in pool.target_ports if number == port), pool.node)
            message = f"target port {port} is the engine of {_owner(pod)} behind its sidecar"
            yield Problem(where, message, f"Send to the sidecar: port {min(own)}.")


@rule("LLMD022", "pool-selects-nothing", Severity.ERROR, scope=Pool)
def pool_selects_nothing(pool: Pool, context: Context) -> Iterator[Problem]:
    """The pool's selector takes no pod, though engines here belong to no pool.

    Why:
        A pool takes pods of its own namespace that have all labels of its selector. Without endpoints every
        request gets 503.

    Bad:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {llm-d.ai/guide: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {llm-d.ai/guide: demos}}
        spec:
          containers:
            - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}
        ```

    Good:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {llm-d.ai/guide: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {llm-d.ai/guide: demo}}
        spec:
          containers:
            - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}
        ```

    References:
        - https://github.com/llm-d-incubation/llm-d-modelservice/pull/83
    """
    if (
        not pool.selector
        or _pods(context.release, pool)
        or added_by_controllers(pool.selector, context)
        or unfinished("".join(pool.selector.values()))
    ):
        return
    free = (
        engine
        for engine in context.release.engines
        if engine.pod.platform == "kubernetes"
        and same_namespace(engine.pod.namespace, pool.object.namespace)
        and not relations.pools_of(context.release, engine.pod)
    )
    if first := next(free, None):
        wanted = ", ".join(f"{key}={value}" for key, value in pool.selector.items())
        message = f"no pod has {wanted}, and {_owner(first.pod)} belongs to no pool"
        fix = "Give the pod template of every engine of the pool the labels of the selector."
        weight = Severity.WARNING if kustomized(context.release) else None
        yield Problem(pool.node.at("spec", "selector"), message, fix, weight)


@rule("LLMD023", "role-label", Severity.ERROR, scope=Pod)
def role_label(pod: Pod, context: Context) -> Iterator[Problem]:
    """A pod of a pool, or of a picker's own selection, has no role that llm-d knows.

    Why:
        The picker's filters go by the label llm-d.ai/role. A misspelt role takes the pod out of both
        profiles; an unlabelled pod counts as decode, so an unlabelled prefill engine serves whole requests.

    Bad:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {pool: demo, llm-d.ai/role: prefiller}}
        spec:
          containers:
            - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}
        ```
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {pool: demo}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ```
        ```yaml
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--endpoint-selector=pool=demo, --endpoint-target-ports=8000]
        ---
        metadata: {labels: {pool: demo, llm-d.ai/role: prefiller}}
        spec:
          containers:
            - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}
        ```

    Good:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {pool: demo, llm-d.ai/role: prefill}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ```
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {pool: demo, llm-d.ai/role: "${ROLE}"}}
        spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}
        ```

    References:
        - llm-d/llm-d-router v0.10.0: pkg/epp/framework/plugins/scheduling/filter/bylabel/roles.go
    """
    facts = context.facts("llmd")["roles"]
    given, place = pod.labels.get(facts["label"]), pod.metadata.at("labels")
    engines = relations.engines_in(context.release, pod)
    producer = any(engine.kv and engine.kv.role == "kv_producer" for engine in engines)
    for pool in relations.pools_of(context.release, pod):
        if (
            given is not None
            and given not in facts["values"]
            and not unfinished(given)
            and not _own_filter(context.release, pool, given)
        ):
            message = f"{facts['label']} of {_owner(pod)} is {given!r}, which no filter of the picker takes"
            yield Problem(place.at(facts["label"]), message, f"Use one of {', '.join(facts['values'])}.")
        elif producer and given is None and not _own_filter(context.release, pool):
            message = f"{_owner(pod)} runs a prefill engine without the label {facts['label']}, so it counts as decode"
            yield Problem(place, message, f"Set {facts['label']}: prefill on the pod template.")


def _own_filter(release: Release, pool: Pool, value: str = "") -> bool:
    """Whether the pool's picker has a filter for labels of the user's own, which may name a value."""
    picker = relations.picker_of(release, pool)
    config = relations.config_of(release, picker) if picker else None
    filters = config.of_type("by-label", "by-label-selector", "label-selector-filter") if config else ()
    return any(value in str(plugin.at("parameters").value) for plugin in filters)


@rule("LLMD024", "route-pool-group", Severity.ERROR, scope=Route, fix="sets the group of the pool.")
def route_pool_group(route: Route, context: Context) -> Iterator[Problem]:
    """A route names an InferencePool in an API group in which there is none of that name.

    Why:
        The pool moved from inference.networking.x-k8s.io to inference.networking.k8s.io. Both kinds are
        called InferencePool, so the route is accepted and its backend is never found.

    Bad:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        kind: HTTPRoute
        apiVersion: gateway.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {rules: [{backendRefs: [{group: inference.networking.x-k8s.io, kind: InferencePool, name: demo}]}]}
        ```

    Good:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        kind: HTTPRoute
        apiVersion: gateway.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {rules: [{backendRefs: [{group: inference.networking.k8s.io, kind: InferencePool, name: demo}]}]}
        ```

    References:
        - https://github.com/kubernetes-sigs/gateway-api-inference-extension/issues/1530
    """
    for backend in route.backends:
        if backend.kind != "InferencePool":
            continue
        named = [
            pool.object.group
            for pool in context.release.index.pools_by_name.get(backend.name, ())
            if same_namespace(pool.object.namespace, backend.namespace)
        ]
        where = backend.node.at("group") if backend.node.at("group") else backend.node
        if named and backend.group not in named:
            message = f"the route looks for InferencePool {backend.name} in group {backend.group!r}, it is in {named[0]}"
            repair = repairs.entry_set(backend.node, "group", named[0]) if len(set(named)) == 1 else None
            yield Problem(where, message, f"Set group: {named[0]}.", repair=repair)
        elif not named and backend.group not in (_GA, _OLD):
            message = f"group {backend.group!r} has no kind InferencePool"
            yield Problem(where, message, f"Set group: {_GA}.")


@rule("LLMD025", "route-pool-missing", Severity.WARNING, scope=Route)
def route_pool_missing(route: Route, context: Context) -> Iterator[Problem]:
    """A route leads to an InferencePool that is not here, while pools are.

    Why:
        A route to a pool that does not exist answers every request with an error.

    Bad:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        kind: HTTPRoute
        apiVersion: gateway.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {rules: [{backendRefs: [{group: inference.networking.k8s.io, kind: InferencePool, name: demo-pool}]}]}
        ```

    Good:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        kind: HTTPRoute
        apiVersion: gateway.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {rules: [{backendRefs: [{group: inference.networking.k8s.io, kind: InferencePool, name: demo}]}]}
        ```

    References:
        - https://gateway-api-inference-extension.sigs.k8s.io/
    """
    for backend in route.backends:
        if (
            backend.kind != "InferencePool"
            or unfinished(backend.name)
            or context.release.index.pools_by_name.get(backend.name)
        ):
            continue
        near = [
            pool.object.name
            for pool in context.release.pools
            if same_namespace(pool.object.namespace, backend.namespace)
        ]
        if near:
            message = (
                f"there is no InferencePool {backend.name!r} here, only {', '.join(sorted(set(near))[:5])}"
            )
            yield Problem(backend.node.at("name"), message, "Name the pool that the route is to reach.")


@rule("LLMD026", "pool-old-group", Severity.WARNING, scope=Pool)
def pool_old_group(pool: Pool, context: Context) -> Iterator[Problem]:
    """The pool is of the group that the Gateway API inference extension gave up with v1.5.

    Why:
        A cluster with the definitions of v1.5 or newer does not know inference.networking.x-k8s.io
        InferencePools, and a picker reads inference.networking.k8s.io unless --pool-group says otherwise.

    Bad:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.x-k8s.io/v1alpha2
        metadata: {name: demo}
        spec: {selector: {pool: demo}, targetPortNumber: 8000, extensionRef: {name: demo-epp}}
        ```

    Good:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec:
          selector: {matchLabels: {pool: demo}}
          targetPorts: [{number: 8000}]
          endpointPickerRef: {name: demo-epp, port: {number: 9002}}
        ```

    References:
        - https://github.com/kubernetes-sigs/gateway-api-inference-extension/issues/1274
    """
    if pool.object.group == _OLD:
        message = f"group {_OLD} has no InferencePool since v1.5 of the inference extension"
        yield Problem(pool.node.at("apiVersion"), message, f"Use apiVersion {_GA}/v1.")


@rule(
    "LLMD027",
    "pool-failure-mode",
    Severity.ERROR,
    scope=Pool,
    fix="writes FailClose or FailOpen, where it differs in its ending or in case.",
)
def pool_failure_mode(pool: Pool, context: Context) -> Iterator[Problem]:
    """The pool's failureMode is none that the API server takes.

    Why:
        It is FailOpen or FailClose; the README of the llm-d router charts once said FailClosed.

    Bad:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec:
          selector: {matchLabels: {pool: demo}}
          targetPorts: [{number: 8000}]
          endpointPickerRef: {name: demo-epp, port: {number: 9002}, failureMode: FailClosed}
        ```

    Good:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec:
          selector: {matchLabels: {pool: demo}}
          targetPorts: [{number: 8000}]
          endpointPickerRef: {name: demo-epp, port: {number: 9002}, failureMode: FailClose}
        ```

    References:
        - kubernetes-sigs/gateway-api-inference-extension v1.6.0: config/crd/bases
    """
    for field in ("endpointPickerRef", "extensionRef"):
        given = pool.node.at("spec", field, "failureMode")
        if given and given.text() not in _MODES:
            message = f"failureMode is {given.text()!r}, but the API server takes {' or '.join(_MODES)}"
            alike = [mode for mode in _MODES if given.text().lower().startswith(mode.lower())]
            repair = Repair((Set(given, alike[0]),)) if alike else None
            yield Problem(given, message, f"Write {' or '.join(alike or ['FailClose'])}.", repair=repair)


@rule("LLMD028", "pool-target-ports", Severity.ERROR, scope=Pool)
def pool_target_ports(pool: Pool, context: Context) -> Iterator[Problem]:
    """The pool has no target port, more than eight, or one of them twice.

    Why:
        The API server refuses such a pool, so there is none.

    Bad:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}, {number: 8000}]}
        ```

    Good:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}, {number: 8001}]}
        ```

    References:
        - kubernetes-sigs/gateway-api-inference-extension v1.6.0: config/crd/bases
    """
    most, place = 8, pool.node.at("spec", "targetPorts")
    if pool.object.group != _GA or not isinstance(place.value, list | None):
        return
    numbers = [number for number, _ in pool.target_ports]
    listed = len(list(pool.node.items("spec", "targetPorts")))
    if not listed:
        yield Problem(pool.node.at("spec"), "the pool has no targetPorts", "List one to eight target ports.")
    elif listed > most:
        yield Problem(place, f"{listed} target ports, and the API takes {most}", "Use several pools.")
    elif len(set(numbers)) < len(numbers):
        yield Problem(place, "a target port is listed twice", "List every port once.")
