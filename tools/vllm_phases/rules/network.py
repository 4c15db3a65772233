"""NET: how requests reach engines, and engines each other."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine, Pod, Policy, Release, Route, Router, Service, relations
from vllm_phases.rules import policies, ports
from vllm_phases.rules.labels import added_by_controllers, kustomized, unfinished
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Container
    from vllm_phases.model.network import ServicePort

_WEB = re.compile(r"|https?(-.*)?|api|openai|web|server|vllm")
_NUMBER = re.compile(r"\d{2,5}")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OPTIONS = ("prefill", "decode", "worker-urls", "static-backends")


@rule("NET001", "service-port", Severity.ERROR, scope=Service)
def service_port(service: Service, context: Context) -> Iterator[Problem]:
    """A Service leads to a port of an engine's pod on which nothing listens.

    Why:
        targetPort is a port of the pod: a number on which the engine or its sidecar listens, or the name of a
        declared port. Connections are refused, or the Service has no endpoints.

    Bad:
        ```yaml
        kind: Service
        apiVersion: v1
        metadata: {name: demo}
        spec: {selector: {app: demo-1}, ports: [{port: 80, targetPort: 8080}]}
        ---
        args: [Qwen/Qwen3-8B, --port=8000]
        ```
        ```yaml
        kind: Service
        apiVersion: v1
        metadata: {name: demo}
        spec: {selector: {app: demo-1}, ports: [{port: 80, targetPort: web}]}
        ---
        args: [Qwen/Qwen3-8B, --port=8000]
        ports: [{name: http, containerPort: 8000}]
        ```

    Good:
        ```yaml
        kind: Service
        apiVersion: v1
        metadata: {name: demo}
        spec: {selector: {app: demo-1}, ports: [{name: http, port: 80, targetPort: http}, {name: nixl, port: 5600}]}
        ---
        args: [Qwen/Qwen3-8B, --port=8000]
        ports: [{name: http, containerPort: 8000}]
        ```

    References:
        - https://kubernetes.io/docs/concepts/services-networking/service/
    """
    for pod in relations.pods_of(context.release, service):
        engines = relations.engines_in(context.release, pod)
        for port in service.ports if engines else ():
            named = {
                declared.name: declared.number for container in pod.containers for declared in container.ports
            }
            place = port.node.at("targetPort") if port.node.at("targetPort") else port.node
            if not port.target.isdecimal() and port.target not in named and not unfinished(port.target):
                listed = ", ".join(sorted(filter(None, named))) or "none"
                message = f"no port of {pod.name} is called {port.target!r}, only {listed}"
                yield Problem(place, message, "Name a declared port of the pod.")
                return
            number = int(port.target) if port.target.isdecimal() else named.get(port.target)
            if number is not None and _deaf(service, port, number, pod, context.release):
                heard = ", ".join(map(str, sorted(ports.served(context.release, pod) or ())))
                message = f"the Service leads to port {number} of {pod.name}, which listens on {heard}"
                yield Problem(place, message, "Set targetPort to the port on which the engine listens.")
                return


def _deaf(service: Service, port: ServicePort, number: int, pod: Pod, release: Release) -> bool:
    """Whether it is sure that nothing in a pod listens on a port for requests."""
    heard = ports.served(release, pod)
    asked = _WEB.fullmatch(port.name) or len(service.ports) == 1
    if not heard or number in heard or not asked or not pod.owner:
        return False
    engines = relations.engines_in(release, pod)
    texts = [word.text for engine in engines for word in engine.words]
    texts += [variable.value or "" for engine in engines for variable in engine.variables.values()]
    said = {int(found) for text in texts for found in _NUMBER.findall(text)} | {5600, 8998}
    own = {id(engine.container) for engine in engines}
    others = {declared.number for one in pod.containers if id(one) not in own for declared in one.ports}
    return number not in said | others


@rule("NET002", "service-selects-nothing", Severity.ERROR, scope=Service)
def service_selects_nothing(service: Service, context: Context) -> Iterator[Problem]:
    """A Service selects no pod, and an engine that it nearly selects has no Service.

    Why:
        A pod must have every label of the selector. Without endpoints connections are refused.

    Bad:
        ```yaml
        kind: Service
        apiVersion: v1
        metadata: {name: demo}
        spec: {selector: {app: demo-1, role: decoder}, ports: [{port: 8000}]}
        ---
        metadata: {labels: {role: decode}}
        spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}
        ```

    Good:
        ```yaml
        kind: Service
        apiVersion: v1
        metadata: {name: demo}
        spec: {selector: {app: demo-1, role: decode}, ports: [{port: 8000}]}
        ---
        metadata: {labels: {role: decode}}
        spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: leader}
        spec: {selector: {app: demo-3, leaderworkerset.sigs.k8s.io/worker-index: '0'}, ports: [{port: 8000}]}
        ---
        args: [Qwen/Qwen3-8B]
        ```

    References:
        - https://kubernetes.io/docs/concepts/services-networking/service/
    """
    if relations.pods_of(context.release, service) or added_by_controllers(service.selector, context):
        return
    for key, value in service.selector.items():
        rest = {**service.selector}
        del rest[key]
        for pod in context.release.index.selected(rest, service.object.namespace):
            given = pod.labels.get(key)
            alike = given is None or get_close_matches(value, [given], 1, 0.7)
            free = relations.engines_in(context.release, pod) and not relations.services_of(
                context.release, pod
            )
            if free and alike:
                has = f"{key}={given}" if given else f"no label {key}"
                message = f"no pod has {key}={value}: {pod.name} has {has}"
                place, weight = service.node.at("spec", "selector", key), None
                if kustomized(context.release):
                    weight = Severity.WARNING
                yield Problem(place, message, "Select a label that the pods have.", weight)
                return


@rule("NET003", "front-door-past-router", Severity.WARNING, scope=Service)
def front_door_past_router(service: Service, context: Context) -> Iterator[Problem]:
    """A front door leads straight to engines of a prefill and decode pair.

    Why:
        Only a router, or llm-d's picker with its sidecar, sends a prompt to prefill first. A Service over both
        roles sends whole requests to either, and no KV cache is ever transferred.

    Bad:
        ```yaml
        kind: Service
        apiVersion: v1
        metadata: {name: demo}
        spec: {selector: {pair: demo}, ports: [{port: 8000}], type: LoadBalancer}
        ---
        metadata: {labels: {pair: demo, role: prefill}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ---
        metadata: {labels: {pair: demo, role: decode}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ```

    Good:
        ```yaml
        kind: Service
        apiVersion: v1
        metadata: {name: demo}
        spec: {selector: {pair: demo, role: decode}, ports: [{port: 8000}]}
        ---
        metadata: {labels: {pair: demo, role: decode}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ```

    References:
        - https://docs.vllm.ai/en/latest/features/disagg_prefill/
    """
    engines = relations.engines_of(context.release, service)
    roles = {engine.role for engine in engines if engine.kv is not None} & {"prefill", "decode"}
    route = next(
        iter(relations.routes_to(context.release, "Service", service.object.name, service.object.namespace)),
        None,
    )
    opened = route is not None or service.type in ("LoadBalancer", "NodePort")
    if service.headless or not roles:
        return
    through = f"{route.object.id} leads to" if route else f"Service {service.object.name} ({service.type}) is"
    if len(roles) > 1:
        message = f"{through} prefill and decode engines at random, so no request is disaggregated"
        fix = "Select the router's pods instead."
        yield Problem(service.node.at("spec", "selector"), message, fix, Severity.ERROR if opened else None)
    elif opened:
        message = (
            f"{through} {roles.pop()} engines past the router, so no request through it is disaggregated"
        )
        yield Problem(service.node.at("spec", "selector"), message, "Lead it to the router's Service.")


@rule("NET004", "router-address", Severity.WARNING, scope=Router)
def router_address(router: Router, context: Context) -> Iterator[Problem]:
    """A router is given a name that no Service here has, or a port that the pods behind it do not open.

    Why:
        The name of a Service without an address of its own leads to its pods, so the port must be theirs. The
        router answers 502 or 503, or does not get ready.

    Bad:
        ```yaml
        kind: Service
        apiVersion: v1
        metadata: {name: demo-prefill}
        spec: {selector: {app: demo-1}, ports: [{port: 8000}]}
        ---
        args: [Qwen/Qwen3-8B]
        ---
        containers:
          - name: router
            image: registry.example.net/vllm-router:0.1.17
            command: [vllm-router]
            args: [--vllm-pd-disaggregation, --prefill, 'http://demo-prefil:8000']
        ```
        ```yaml
        kind: Service
        apiVersion: v1
        metadata: {name: demo-prefill}
        spec: {clusterIP: None, selector: {app: demo-1}, ports: [{port: 80, targetPort: 8000}]}
        ---
        args: [Qwen/Qwen3-8B]
        ---
        containers:
          - name: router
            image: registry.example.net/vllm-router:0.1.17
            command: [vllm-router]
            args: [--vllm-pd-disaggregation, --prefill, 'http://demo-prefill:80']
        ```

    Good:
        ```yaml
        kind: Service
        apiVersion: v1
        metadata: {name: demo-prefill}
        spec: {clusterIP: None, selector: {app: demo-1}, ports: [{port: 80, targetPort: 8000}]}
        ---
        args: [Qwen/Qwen3-8B]
        ---
        containers:
          - name: router
            image: registry.example.net/vllm-router:0.1.17
            command: [vllm-router]
            args: [--vllm-pd-disaggregation, --prefill, 'http://demo-prefill:8000', --decode, 'http://elsewhere:9000']
        ```

    References:
        - https://kubernetes.io/docs/concepts/services-networking/service/#headless-services
    """
    release, space = context.release, router.pod.namespace
    for url in relations.urls(router, *_OPTIONS) if router.pod.platform == "kubernetes" else ():
        service = relations.service_at(release, url.host, space)
        if not url.word.known or (service is not None and not service.headless):
            continue
        if service is None:
            names = [
                name for name in release.index.services_by_name if relations.service_at(release, name, space)
            ]
            if near := get_close_matches(url.host, names, 1, 0.85):
                message = f"there is no Service {url.host!r} here; did you mean {near[0]}?"
                yield Problem(url.word, message, f"Write {near[0]}.")
            continue
        heard = [ports.served(release, pod) for pod in relations.pods_of(release, service)]
        asked = url.port or (443 if url.scheme == "https" else 80)
        if heard and all(some is not None and asked not in some for some in heard):
            message = f"{url.host} has no address of its own, and its pods do not listen on port {asked}"
            yield Problem(url.word, message, "Use the port of the pods.", Severity.ERROR)


@rule("NET006", "policy-blocks-transfer", Severity.ERROR, scope=Release)
def policy_blocks_transfer(release: Release, context: Context) -> Iterator[Problem]:
    """A NetworkPolicy keeps the decode engine from its prefill engine.

    Why:
        NIXL's decode side opens connections to the side channel of prefill (5600) and, without RDMA, to ports
        that UCX chooses itself; Mooncake's to the bootstrap port (8998). A policy that selects prefill pods
        must let decode pods in.

    Bad:
        ```yaml
        kind: NetworkPolicy
        apiVersion: networking.k8s.io/v1
        metadata: {name: prefill}
        spec:
          podSelector: {matchLabels: {role: prefill}}
          ingress: [{from: [{podSelector: {matchLabels: {role: router}}}], ports: [{port: 8000}]}]
        ---
        metadata: {labels: {role: prefill, llm-d.ai/role: prefill}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ---
        metadata: {labels: {role: decode, llm-d.ai/role: decode}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ---
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: one}
        spec: {selector: {matchLabels: {llm-d.ai/role: prefill}}, targetPorts: [{number: 8000}]}
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: p}
        spec: {selector: {role: prefill}, ports: [{port: 8000}]}
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: d}
        spec: {selector: {role: decode}, ports: [{port: 8000}]}
        ---
        containers:
          - name: router
            image: registry.example.net/vllm-router:0.1.17
            command: [vllm-router]
            args: [--vllm-pd-disaggregation, --prefill, 'http://p:8000', --decode, 'http://d:8000']
        ```

    Good:
        ```yaml
        kind: NetworkPolicy
        apiVersion: networking.k8s.io/v1
        metadata: {name: prefill}
        spec:
          podSelector: {matchLabels: {role: prefill}}
          ingress:
            - {from: [{podSelector: {}}], ports: [{port: 8000}]}
            - {from: [{podSelector: {matchLabels: {role: decode}}}]}
        ---
        metadata: {labels: {role: prefill}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_producer"}']
        ---
        metadata: {labels: {role: decode}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: p}
        spec: {selector: {role: prefill}, ports: [{port: 8000}]}
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: d}
        spec: {selector: {role: decode}, ports: [{port: 8000}]}
        ---
        containers:
          - name: router
            image: registry.example.net/vllm-router:0.1.17
            command: [vllm-router]
            args: [--vllm-pd-disaggregation, --prefill, 'http://p:8000', --decode, 'http://d:8000']
        ```

    References:
        - https://docs.vllm.ai/en/latest/features/nixl_connector_usage/
    """
    told: set[int] = set()
    for prefill, decode in relations.pairs(release) if release.policies else ():
        for port in _transfer_ports(prefill):
            refusing = policies.refusing(release, decode.pod, prefill.pod, port)
            if refusing is not None and id(refusing) not in told:
                told.add(id(refusing))
                what = f"port {port}" if port else "the ports that UCX chooses"
                message = f"{refusing.object.id} lets {decode.pod.name} not into {prefill.pod.name} on {what}"
                fix = "Let decode pods into prefill pods on every port."
                yield Problem(refusing.node.at("spec"), message, fix, None if port else Severity.WARNING)


def _transfer_ports(prefill: Engine) -> tuple[int, ...]:
    """The ports of a prefill engine that its decode engines open; 0 stands for ports of UCX's own choice."""
    if prefill.kv is None or prefill.pod.platform != "kubernetes":
        return ()
    if prefill.kv.find("NixlConnector"):
        name = "VLLM_NIXL_SIDE_CHANNEL_PORT"
        given = prefill.variable(name) or ("" if name in prefill.variables else "5600")
        rdma = any(re.search(r"rdma|hca|efa|infiniband", name) for name in prefill.container.limits())
        return (*((int(given),) if given.isdecimal() else ()), *(() if rdma else (0,)))
    if prefill.kv.find("MooncakeConnector"):
        name = "VLLM_MOONCAKE_BOOTSTRAP_PORT"
        given = prefill.variable(name) or ("" if name in prefill.variables else "8998")
        return (int(given),) if given.isdecimal() else ()
    return ()


@rule("NET007", "policy-blocks-requests", Severity.ERROR, scope=Release)
def policy_blocks_requests(release: Release, context: Context) -> Iterator[Problem]:
    """A NetworkPolicy keeps a router, a sidecar or the picker from an engine.

    Why:
        Routers send requests, sidecars of decode pods call prefill, and the picker reads the metrics of every
        endpoint. A policy over the engines must let each of them in.

    Bad:
        ```yaml
        kind: NetworkPolicy
        apiVersion: networking.k8s.io/v1
        metadata: {name: engines}
        spec: {podSelector: {matchLabels: {app: demo-1}}, ingress: [{from: [{podSelector: {matchLabels: {app: gateway}}}]}]}
        ---
        args: [Qwen/Qwen3-8B]
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: p}
        spec: {selector: {app: demo-1}, ports: [{port: 8000}]}
        ---
        containers:
          - name: router
            image: registry.example.net/vllm-router:0.1.17
            command: [vllm-router]
            args: [--worker-urls, 'http://p:8000']
        ```

    Good:
        ```yaml
        kind: NetworkPolicy
        apiVersion: networking.k8s.io/v1
        metadata: {name: engines}
        spec: {podSelector: {matchLabels: {app: demo-1}}, ingress: [{from: [{podSelector: {matchLabels: {app: demo-3}}}]}]}
        ---
        args: [Qwen/Qwen3-8B]
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: p}
        spec: {selector: {app: demo-1}, ports: [{port: 8000}]}
        ---
        containers:
          - name: router
            image: registry.example.net/vllm-router:0.1.17
            command: [vllm-router]
            args: [--worker-urls, 'http://p:8000']
        ```

    References:
        - https://kubernetes.io/docs/concepts/services-networking/network-policies/
    """
    told: set[tuple[int, str]] = set()
    for caller, engine in _calls(release) if release.policies else ():
        for port in sorted(ports.served(release, engine.pod) or ())[:1]:
            refusing = policies.refusing(release, caller, engine.pod, port)
            if refusing is not None and (id(refusing), caller.name) not in told:
                told.add((id(refusing), caller.name))
                message = (
                    f"{refusing.object.id} does not let {caller.name} into {engine.pod.name} on port {port}"
                )
                yield Problem(refusing.node.at("spec"), message, f"Add {caller.name}'s pods to its ingress.")


def _calls(release: Release) -> Iterator[tuple[Pod, Engine]]:
    """Each pod that sends requests to an engine, with that engine."""
    for router in release.routers:
        for engine in relations.routed(release, router):
            yield router.pod, engine
    for pool in (*release.pools, *release.selections):
        picker = relations.picker_of(release, pool)
        for engine in relations.engines_of(release, pool) if picker else ():
            if picker is not None:
                yield picker.pod, engine
    for prefill, decode in relations.pairs(release):
        if ports.sidecar_in(release, decode.pod) is not None:
            yield decode.pod, prefill


@rule("NET013", "policy-names-sidecar-port", Severity.WARNING, scope=Policy)
def policy_names_sidecar_port(policy: Policy, context: Context) -> Iterator[Problem]:
    """A NetworkPolicy names a port that only a native sidecar declares, and some enforcers do not find it there.

    Why:
        A native sidecar is an init container. An enforcer that looks names up among the other containers finds
        none, lets nobody in, and every request to the sidecar times out.

    Bad:
        ```yaml
        kind: NetworkPolicy
        apiVersion: networking.k8s.io/v1
        metadata: {name: decode}
        spec: {podSelector: {matchLabels: {role: decode}}, ingress: [{ports: [{port: sidecar}]}]}
        ---
        metadata: {labels: {role: decode}}
        spec:
          initContainers:
            - name: routing-proxy
              image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
              restartPolicy: Always
              args: [--port=8000, --model-server-port=8200]
              ports: [{name: sidecar, containerPort: 8000}]
          containers:
            - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    Good:
        ```yaml
        kind: NetworkPolicy
        apiVersion: networking.k8s.io/v1
        metadata: {name: decode}
        spec: {podSelector: {matchLabels: {role: decode}}, ingress: [{ports: [{port: 8000}, {port: http}]}]}
        ---
        metadata: {labels: {role: decode}}
        spec:
          initContainers:
            - name: routing-proxy
              image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
              restartPolicy: Always
              args: [--port=8000, --model-server-port=8200]
              ports: [{name: sidecar, containerPort: 8000}]
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B, --port=8200]
              ports: [{name: http, containerPort: 8200}]
        ```

    References:
        - observed with kube-network-policies v0.8.0
    """
    native = _native_ports(context.release, policy) if policy.simple else {}
    entries = (entry for way in policy.node.items("spec", "ingress") for entry in way.items("ports"))
    for entry in entries if native else ():
        if (name := entry.text("port")) in native:
            container, number = native[name]
            message = f"port {name} is that of {container.name}, a native sidecar, and some enforcers do not find it"
            yield Problem(entry.at("port"), message, f"Write its number, {number}.")


def _native_ports(release: Release, policy: Policy) -> dict[str, tuple[Container, int]]:
    """The ports of the pods of a policy that only native sidecars declare: by name the container and the number."""
    pods = release.index.selected(policy.selector, policy.object.namespace)
    declared = [(container, port) for pod in pods for container in pod.containers for port in container.ports]
    usual = {port.name for container, port in declared if not container.init}
    return {
        port.name: (container, port.number)
        for container, port in declared
        if container.init and port.name and port.name not in usual and port.number is not None
    }


@rule("NET009", "engine-on-loopback", Severity.ERROR, scope=Engine)
def engine_on_loopback(engine: Engine, context: Context) -> Iterator[Problem]:
    """An engine listens on the loopback address only, and others are to reach it.

    Why:
        --host 127.0.0.1 answers inside the pod alone: neither Services nor probes nor other containers of a
        compose file reach it. Behind a routing sidecar requests work, but probes and metrics do not.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --host=127.0.0.1]
        readinessProbe: {httpGet: {path: /health, port: 8000}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --host=0.0.0.0]
        readinessProbe: {httpGet: {path: /health, port: 8000}}
        ```

    References:
        - https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/
    """
    option, release = engine.arguments.last("host"), context.release
    if option is None or option.value not in _LOOPBACK:
        return
    probes = (
        engine.container.probe("startup"),
        engine.container.probe("readiness"),
        engine.container.probe("liveness"),
    )
    probed = any(
        probe.action in ("httpGet", "tcpSocket") and not probe.node.at(probe.action, "host")
        for probe in probes
        if probe
    )
    alone = ports.sidecar_in(release, engine.pod) is None and len(engine.pod.containers) == 1
    reached = relations.services_of(release, engine.pod) or relations.pools_of(release, engine.pod)
    published = engine.pod.platform in ("compose", "docker") and any(
        port.host_port for port in engine.container.ports
    )
    if probed or published or (alone and reached):
        message = f"--host is {option.value}, so nothing outside the {_where(engine)} reaches the engine"
        yield Problem(option, message, "Use --host=0.0.0.0, or leave it out.")


def _where(engine: Engine) -> str:
    return "pod" if engine.pod.platform == "kubernetes" else "container"


@rule("NET010", "published-port", Severity.ERROR, scope=Engine)
def published_port(engine: Engine, context: Context) -> Iterator[Problem]:
    """A published port of a container is not the one on which its engine listens.

    Why:
        The second number of ports: (or -p) is the port inside the container. Connections are refused.

    Bad:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B, --port, '8100']
            ports: ['8000:8000']
        ```
        ```sh
        docker run --gpus all -p 8000:8080 vllm/vllm-openai:v0.33.0 Qwen/Qwen3-8B
        ```

    Good:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B, --port, '8100']
            ports: ['8000:8100', '5600:5600']
        ```
        ```sh
        docker run --gpus all -p 80:8000 vllm/vllm-openai:v0.33.0 Qwen/Qwen3-8B
        ```

    References:
        - https://docs.docker.com/reference/compose-file/services/#ports
    """
    heard = ports.engine_ports(engine)
    published = [
        port for port in engine.container.ports if port.host_port is not None and port.number is not None
    ]
    if engine.pod.platform not in ("compose", "docker") or not heard or not published:
        return
    if not any(port.number in heard for port in published):
        listed = ", ".join(str(port.number) for port in published)
        listens = ", ".join(map(str, sorted(heard)))
        message = f"port {listed} of the container is published, and the engine listens on {listens}"
        yield Problem(published[0].node, message, f"Publish port {min(heard)} of the container.")


@rule("NET011", "route-port", Severity.ERROR, scope=Route)
def route_port(route: Route, context: Context) -> Iterator[Problem]:
    """A route or Ingress leads to a port that its Service does not have.

    Why:
        The route is accepted, and every request through it gets an error.

    Bad:
        ```yaml
        kind: HTTPRoute
        apiVersion: gateway.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {rules: [{backendRefs: [{name: demo, port: 8000}]}]}
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: demo}
        spec: {selector: {app: demo}, ports: [{port: 80, targetPort: 8000}]}
        ```

    Good:
        ```yaml
        kind: HTTPRoute
        apiVersion: gateway.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {rules: [{backendRefs: [{name: demo, port: 80}]}]}
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: demo}
        spec: {selector: {app: demo}, ports: [{port: 80, targetPort: 8000}]}
        ```

    References:
        - https://gateway-api.sigs.k8s.io/api-types/httproute/
    """
    for backend in route.backends:
        if backend.kind != "Service" or backend.group or backend.port is None:
            continue
        service = relations.service_at(
            context.release, f"{backend.name}.{backend.namespace}", backend.namespace
        )
        offered = [port.number for port in service.ports] if service else []
        if offered and backend.port not in offered:
            message = (
                f"Service {backend.name} has no port {backend.port}, only {', '.join(map(str, offered))}"
            )
            place = backend.node.at("port")
            yield Problem(place if place else backend.node, message, "Name a port of the Service.")


@rule("NET012", "engines-share-port", Severity.ERROR, scope=Pod)
def engines_share_port(pod: Pod, context: Context) -> Iterator[Problem]:
    """Two engines of one pod want the same port.

    Why:
        Containers of a pod share its addresses, so the second engine fails with "address already in use".

    Bad:
        ```yaml
        containers:
          - {name: prefill, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}
          - {name: decode, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8000]}
        ```

    Good:
        ```yaml
        containers:
          - {name: prefill, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}
          - {name: decode, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8001]}
        ```

    References:
        - https://kubernetes.io/docs/concepts/workloads/pods/#pod-networking
    """
    taken: dict[int, Engine] = {}
    for engine in relations.engines_in(context.release, pod) if pod.platform == "kubernetes" else ():
        for port in sorted(ports.engine_ports(engine) or ()):
            other = taken.setdefault(port, engine)
            if other.container is not engine.container:
                message = f"{other.container.name} and {engine.container.name} of one pod both listen on port {port}"
                yield Problem(
                    engine.arguments.last("port") or engine.node, message, "Give each its own --port."
                )
                return
