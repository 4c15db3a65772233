"""LLMD: llm-d's routing sidecar, held against its release, its engine and its pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Severity
from vllm_phases.model import Component, Engine, Sidecar, relations
from vllm_phases.rules import ports, repairs, windows
from vllm_phases.rules.labels import unfinished
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.model import Argument, Container
    from vllm_phases.sources.repair import Repair

_NATIVE_SIDECARS = (1, 29)
_IDLE_SECONDS = 90  # how long the sidecar keeps a connection to prefill (llmd, section 1.7)
_ENDS_WITH_ERROR = "so the container ends at once and is started again without end"


@rule("LLMD001", "blocking-sidecar", Severity.ERROR, scope=Component, fix="sets restartPolicy: Always.")
def blocking_sidecar(component: Component, context: Context) -> Iterator[Problem]:
    """A server is an init container that must end before the engine starts, and it never ends.

    Why:
        Kubernetes runs init containers one after another to their end. Only restartPolicy Always makes one a
        native sidecar that runs beside the others, from Kubernetes 1.29 on.

    Bad:
        ```yaml
        initContainers:
          - {name: routing-proxy, image: 'ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0', args: [--port=8000]}
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    Good:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--port=8000]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    References:
        - https://github.com/llm-d/llm-d/issues/241
        - https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/
    """
    container = component.container
    version = tuple(int(part) for part in context.kube_version.lstrip("v").split(".")[:2])
    if not container.init:
        return
    if not container.native_sidecar:
        message = (
            f"init container {container.name} runs a server ({component.kind}) without restartPolicy Always, "
            f"so the containers after it never start"
        )
        repair = repairs.entry_set(container.node, "restartPolicy", "Always")
        yield Problem(container.node, message, "Set restartPolicy: Always on it.", repair=repair)
    elif version < _NATIVE_SIDECARS:
        message = (
            f"Kubernetes {context.kube_version} has no native sidecars, so {container.name} blocks the pod"
        )
        yield Problem(container.node.at("restartPolicy"), message, "Use Kubernetes 1.29 or newer.")


@rule("LLMD002", "sidecar-as-container", Severity.WARNING, scope=Sidecar)
def sidecar_as_container(sidecar: Sidecar, context: Context) -> Iterator[Problem]:
    """The routing sidecar is an ordinary container, so it cuts running streams when the pod ends.

    Why:
        All ordinary containers get SIGTERM together, and the sidecar leaves at once. A native sidecar ends
        after the engine.

    Bad:
        ```yaml
        containers:
          - {name: routing-proxy, image: 'ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0', args: [--port=8000]}
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    Good:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--port=8000]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    References:
        - observed with llm-d-router v0.10.0
    """
    container = sidecar.container
    if sidecar.pod.platform == "kubernetes" and not container.init and container.pre_stop is None:
        message = f"{container.name} is an ordinary container: at the end of the pod it cuts running streams"
        yield Problem(container.node, message, "Make it an init container with restartPolicy: Always.")


@rule(
    "LLMD003",
    "sidecar-option",
    Severity.ERROR,
    scope=Sidecar,
    fix="writes the name that the release has for the same option.",
)
def sidecar_option(sidecar: Sidecar, context: Context) -> Iterator[Problem]:
    """An option that the sidecar's release does not know, or is about to drop.

    Why:
        The sidecar ends with exit code 2 at an option that it does not know. Names changed with most releases.

    Bad:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--connector=nixlv2, --model-server-port=8200]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    Good:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--kv-connector=nixlv2, --model-server-port=8200, --zap-log-level=1, -v=2]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    References:
        - https://github.com/llm-d/llm-d-router/pull/2054
    """
    yield from refused_options(sidecar, context)


def refused_options(component: Component, context: Context) -> Iterator[Problem]:
    """What a release of the sidecar or the picker has against its options."""
    known, version = context.facts("llmd_options")[component.kind], component.version
    for option in component.arguments.options if version else ():
        entry = known.get(option.name)
        if version is None or option.name.startswith("zap-") or len(option.name) == 1:
            continue
        release = f"{component.kind} {windows.spelled(version)}"
        instead = f"Use --{entry['instead']}." if entry and "instead" in entry else f"Remove --{option.name}."
        if entry is None:
            yield from _unknown(option, component, release)
        elif windows.before(version, entry):
            message = f"{release} does not know --{option.name}, which came with v{entry['since']}"
            yield Problem(option, message, instead, repair=_renamed(option, entry, component))
        elif windows.reached(version, entry):
            message = f"--{option.name} went away with v{entry['until']}, and this is {release}"
            yield Problem(option, message, instead, repair=_renamed(option, entry, component))
        elif windows.reached(version, entry, "deprecated"):
            message = f"--{option.name} is deprecated since v{entry['deprecated']}"
            yield Problem(option, message, instead, Severity.WARNING, _renamed(option, entry, component))


def _renamed(option: Argument, entry: Mapping[str, Any], component: Component) -> Repair | None:
    """The other name of the same option."""
    if not entry.get("same") or entry["instead"] in component.arguments:
        return None
    return repairs.respelt(option.word, option.written, f"--{entry['instead']}")


def _unknown(option: Argument, component: Component, release: str) -> Iterator[Problem]:
    """An option that no release had that was read: certain only for releases that were."""
    first, last = {"sidecar": ((0, 7, 0), (0, 11, 0)), "picker": ((0, 9, 0), (0, 11, 0))}[component.kind]
    official = component.container.image.name.startswith("llm-d-")
    usual = option.name in ("kubeconfig", "help", "version", "feature-gates")
    if component.version and first <= component.version < last and official and not usual:
        yield Problem(
            option, f"{release} does not know --{option.name}", "Remove it, or correct its spelling."
        )


@rule("LLMD004", "sidecar-connector-unknown", Severity.ERROR, scope=Sidecar)
def sidecar_connector_unknown(sidecar: Sidecar, context: Context) -> Iterator[Problem]:
    """The sidecar's release has no such KV connector.

    Why:
        The sidecar prints an error and ends with exit code 0.

    Bad:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--kv-connector=nixl, --model-server-port=8200]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    Good:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--kv-connector=nixlv2, --model-server-port=8200]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-routing-sidecar:v0.2.0
            restartPolicy: Always
            args: [--connector=nixlv2, --vllm-port=8200]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    References:
        - llm-d/llm-d-router v0.10.0: pkg/sidecar/proxy/options.go
    """
    given, version = _connector(sidecar), sidecar.version
    known = {
        name: entry for name, entry in context.facts("llmd")["sidecar_connectors"].items() if name != "source"
    }
    if given is None or given.value is None or unfinished(given.value) or not _read(version, context):
        return
    taken = [
        name
        for name, entry in known.items()
        if version is None or not (windows.before(version, entry) or windows.reached(version, entry))
    ]
    if given.value not in taken:
        release = f"sidecar {windows.spelled(version)}" if version else "no sidecar"
        message = f"{release} has {'no ' if version else 'a '}connector {given.value!r}, {_ENDS_WITH_ERROR}"
        yield Problem(given, message, f"Use one of {', '.join(taken)}.")


def _read(version: windows.Version | None, context: Context) -> bool:
    """Whether the catalogue knows the connectors of a release, or of the newest where none is told."""
    oldest = context.facts("llmd")["sidecar_read"]
    return version is None or (version < (0, 11, 0) and not windows.before(version, oldest))


def _connector(sidecar: Sidecar) -> Argument | None:
    return sidecar.arguments.last("kv-connector") or sidecar.arguments.last("connector")


@rule("LLMD005", "sidecar-connector-mismatch", Severity.ERROR, scope=Sidecar)
def sidecar_connector_mismatch(sidecar: Sidecar, context: Context) -> Iterator[Problem]:
    """The sidecar speaks another KV protocol than the connector of its engine.

    Why:
        Requests are answered, but the decode engine computes the prompt again (shared-storage and others), or
        every long request fails (mooncake). No part warns. P2pNcclConnector has no protocol in llm-d at all.

    Bad:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--kv-connector=shared-storage, --model-server-port=8200]
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --port=8200, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ```

    Good:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--kv-connector=nixlv2, --model-server-port=8200]
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --port=8200, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        ```

    References:
        - observed with llm-d-router v0.10.0 and vLLM 0.32.0
    """
    engine, given = relations.engine_of(context.release, sidecar), _connector(sidecar)
    known = context.facts("llmd")["sidecar_connectors"]
    if engine is None or engine.kv is None or (given is None and ports.configured_elsewhere(sidecar)):
        return
    spoken = given.value if given else "nixlv2"
    names = [transfer.connector for transfer in engine.kv.all() if not transfer.children]
    fitting = [
        name for name, entry in known.items() if name != "source" and set(names) & set(entry["engines"])
    ]
    if "P2pNcclConnector" in names and not fitting:
        message = "llm-d's sidecar has no protocol for P2pNcclConnector, so nothing is transferred"
        yield Problem(
            engine.kv.key("kv_connector"), message, "Use NixlConnector, or a router that speaks P2P NCCL."
        )
    elif fitting and spoken in known and spoken not in fitting:
        message = f"the sidecar speaks {spoken}, but the engine's KV connector is {' with '.join(names)}"
        yield Problem(given or sidecar.node, message, f"Set --kv-connector={fitting[0]}.")


@rule("LLMD006", "sidecar-engine-port", Severity.ERROR, scope=Sidecar)
def sidecar_engine_port(sidecar: Sidecar, context: Context) -> Iterator[Problem]:
    """The sidecar looks for its engine on a port where that does not listen.

    Why:
        The sidecar calls localhost on --model-server-port: 8200 by default, 8001 up to v0.9. Every request
        gets 503 after the prefill engine has worked for it, and the sidecar's own /health stays 200.

    Bad:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--port=8000, --model-server-port=8200]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8001]}
        ```
        ```yaml
        initContainers:
          - {name: routing-proxy, image: 'ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.9.0', restartPolicy: Always}
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    Good:
        ```yaml
        initContainers:
          - {name: routing-proxy, image: 'ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0', restartPolicy: Always}
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    References:
        - llm-d/llm-d-router v0.9.0 and v0.10.0: pkg/sidecar/proxy/options.go, defaultVLLMPort
    """
    found = relations.engines_in(context.release, sidecar.pod)
    listening = [ports.engine_ports(engine) for engine in found]
    option = sidecar.arguments.last("model-server-port") or sidecar.arguments.last("vllm-port")
    port = option and sidecar.arguments.number(option.name)
    if option is None and sidecar.version and not ports.configured_elsewhere(sidecar):
        port = 8001 if sidecar.version < (0, 10, 0) else 8200
    if not found or port is None or any(heard is None or port in heard for heard in listening):
        return
    heard = ", ".join(str(one) for some in listening for one in sorted(some or ()))
    given = "" if option else f", the default of {windows.spelled(sidecar.version or (0, 0, 0))},"
    message = f"the sidecar calls the engine on port {port}{given} but that listens on {heard or 'no port'}"
    name = "vllm-port" if sidecar.version and sidecar.version < (0, 10, 0) else "model-server-port"
    yield Problem(option or sidecar.node, message, f"Set --{name}={heard or port}.")


@rule("LLMD007", "sidecar-tls", Severity.WARNING, scope=Sidecar)
def sidecar_tls(sidecar: Sidecar, context: Context) -> Iterator[Problem]:
    """The sidecar serves HTTPS, its default, where plain HTTP comes in.

    Why:
        Without --secure-proxy=false the sidecar makes a certificate of its own and answers plain requests
        with 400. It is an error where a route leads to its pool and nothing tells the gateway to speak TLS.

    Bad:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--model-server-port=8200]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    Good:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--model-server-port=8200, --secure-proxy=false]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--model-server-port=8200, "{{ if .TLS }}--cert-path=/tls{{ else }}--secure-proxy=false{{ end }}"]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    References:
        - observed with llm-d-router v0.10.0: "Client sent an HTTP request to an HTTPS server."
    """
    given = sidecar.arguments
    secure = [given.truth(name) for name in ("secure-proxy", "secure-serving")]
    if (
        False in secure
        or sidecar.pod.merged
        or "cert-path" in given
        or (True not in secure and ports.configured_elsewhere(sidecar))
    ):
        return
    where = given.last("secure-proxy") or given.last("secure-serving") or sidecar.node
    plain = _plain_route(sidecar, context)
    message = "the sidecar serves HTTPS with a certificate of its own, so a plain request gets 400"
    yield Problem(where, message, "Set --secure-proxy=false.", Severity.ERROR if plain else None)


def _plain_route(sidecar: Sidecar, context: Context) -> bool:
    """Whether a route leads to the sidecar's pool, and no object may make the gateway speak TLS to it."""
    release = context.release
    pools = relations.pools_of(release, sidecar.pod)
    routed = any(
        relations.routes_to(release, "InferencePool", pool.object.name, pool.object.namespace)
        for pool in pools
    )
    pickers = {pool.picker for pool in pools}
    rules = (
        found.node.text("spec", "host").partition(".")[0] for found in release.of_kind("DestinationRule")
    )
    return routed and not release.of_kind("BackendTLSPolicy") and all(host in pickers for host in rules)


@rule("LLMD008", "sidecar-health-probe", Severity.WARNING, scope=Sidecar)
def sidecar_health_probe(sidecar: Sidecar, context: Context) -> Iterator[Problem]:
    """A probe asks the sidecar's /health, which says nothing about the engine.

    Why:
        The sidecar answers /health with 200 whatever its engine does, so the pod is ready while the model
        still loads, and stays ready after the engine died.

    Bad:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--port=8000, --model-server-port=8200]
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --port=8200]
            readinessProbe: {httpGet: {path: /health, port: 8000}}
        ```

    Good:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--port=8000, --model-server-port=8200]
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --port=8200]
            readinessProbe: {httpGet: {path: /health, port: 8200}}
        ```

    References:
        - llm-d/llm-d-router v0.10.0: pkg/sidecar/proxy
    """
    own = ports.sidecar_ports(sidecar)
    for engine in relations.engines_in(context.release, sidecar.pod) if own else ():
        for kind in ("startup", "readiness", "liveness"):
            probe = engine.container.probe(kind)
            number = probe and (
                probe.port or _declared(sidecar.container, probe.node.text("httpGet", "port"))
            )
            if probe and own and number in own and probe.path == "/health":
                message = f"the {kind} probe asks the sidecar on port {number}, whose /health is always 200"
                fix = f"Probe the engine itself, on port {engine.port}."
                yield Problem(probe.node.at(probe.action, "port"), message, fix)


def _declared(container: Container, name: str) -> int | None:
    return container.port_number(name) if name else None


@rule("LLMD009", "prefill-keep-alive", Severity.WARNING, scope=Engine)
def prefill_keep_alive(engine: Engine, context: Context) -> Iterator[Problem]:
    """A prefill engine closes idle connections before the sidecars that hold them.

    Why:
        vLLM closes a connection after 5 idle seconds by default, and the sidecar keeps it for 90: now and
        then a request meets a connection that was just closed, and fails.

    Bad:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {pool: demo, llm-d.ai/role: prefill}}
        spec:
          containers:
            - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}
        ---
        metadata: {labels: {pool: demo, llm-d.ai/role: decode}}
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
        metadata: {labels: {pool: demo, llm-d.ai/role: prefill}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B]
              env: [{name: VLLM_HTTP_TIMEOUT_KEEP_ALIVE, value: '120'}]
        ---
        metadata: {labels: {pool: demo, llm-d.ai/role: decode}}
        spec:
          initContainers:
            - {name: routing-proxy, image: 'ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0', restartPolicy: Always}
          containers:
            - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    References:
        - https://github.com/llm-d/llm-d/pull/1686
    """
    name = "VLLM_HTTP_TIMEOUT_KEEP_ALIVE"
    given, number = engine.variables.get(name), engine.variable(name)
    known = number is not None and number.isdecimal()
    pools = relations.pools_of(context.release, engine.pod) if engine.role == "prefill" else ()
    pods = (pod for pool in pools for pod in relations.pods_of(context.release, pool))
    if not any(ports.sidecar_in(context.release, pod) for pod in pods):
        return
    if given is None and engine.container.complete:
        message = (
            f"the engine closes idle connections after 5 s, the sidecars keep them for {_IDLE_SECONDS} s"
        )
        yield Problem(engine.node, message, f"Set {name}=120.")
    elif given and number and known and int(number) < _IDLE_SECONDS:
        message = f"{name} is {number}, less than the {_IDLE_SECONDS} s that sidecars keep connections"
        yield Problem(given, message, f"Set {name}=120.")


@rule("LLMD010", "sidecar-port-clash", Severity.ERROR, scope=Sidecar)
def sidecar_port_clash(sidecar: Sidecar, context: Context) -> Iterator[Problem]:
    """The sidecar and the engine of its pod want the same port.

    Why:
        Containers of a pod share its addresses, so the second one fails with "address already in use".

    Bad:
        ```yaml
        initContainers:
          - {name: routing-proxy, image: 'ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0', restartPolicy: Always}
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}
        ```

    Good:
        ```yaml
        initContainers:
          - {name: routing-proxy, image: 'ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0', restartPolicy: Always}
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    References:
        - observed with llm-d-router v0.10.0
    """
    own = ports.sidecar_ports(sidecar) or frozenset()
    for engine in relations.engines_in(context.release, sidecar.pod):
        if clash := own & (ports.engine_ports(engine) or frozenset()):
            number = ", ".join(map(str, sorted(clash)))
            message = f"sidecar and engine of one pod both listen on port {number}"
            yield Problem(
                engine.arguments.last("port") or engine.node, message, "Set --port=8200 on the engine."
            )


@rule("LLMD011", "sidecar-value", Severity.ERROR, scope=Sidecar)
def sidecar_value(sidecar: Sidecar, context: Context) -> Iterator[Problem]:
    """An option of the sidecar has a value that it refuses.

    Why:
        The sidecar prints one error line and ends with exit code 0, so the pod seems only to restart.

    Bad:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--model-server-port=http, --enable-tls=prefill]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    Good:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--model-server-port=8200, '--enable-tls=prefiller,decoder']
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    References:
        - llm-d/llm-d-router v0.10.0: pkg/sidecar/proxy/options.go, Validate
    """
    stages = ("prefiller", "decoder", "encoder")
    for option in sidecar.arguments.options:
        text = option.value
        if text is None or unfinished(text):
            continue
        if option.name in ("port", "model-server-port", "vllm-port", "data-parallel-size"):
            if not text.isdecimal() or not 0 < int(text) <= 65535:  # the last port
                message = f"--{option.name} is {text!r}, no number from 1 to 65535, {_ENDS_WITH_ERROR}"
                yield Problem(option, message, "Write a whole number.")
        elif option.name in ("enable-tls", "tls-insecure-skip-verify"):
            for stage in (part.strip() for part in text.split(",")):
                if stage and stage not in stages:
                    message = f"--{option.name} has {stage!r}, which is no stage, {_ENDS_WITH_ERROR}"
                    yield Problem(option, message, f"Use {', '.join(stages)}.")


@rule("LLMD012", "sidecar-ranks", Severity.ERROR, scope=Sidecar)
def sidecar_ranks(sidecar: Sidecar, context: Context) -> Iterator[Problem]:
    """The sidecar serves more data parallel ranks than its engine has ports.

    Why:
        With --data-parallel-size the sidecar opens a port for each rank and calls the engine on as many ports
        from --model-server-port on. An engine that balances its ranks itself has one.

    Bad:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--data-parallel-size=2, --model-server-port=8200]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200, --data-parallel-size=2]}
        ```

    Good:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--data-parallel-size=2, --model-server-port=8200]
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --port=8200, --data-parallel-size=2, --data-parallel-multi-port-external-lb]
        ```

    References:
        - https://github.com/llm-d/llm-d-router/issues/1671
    """
    option = sidecar.arguments.last("data-parallel-size")
    ranks = sidecar.arguments.number("data-parallel-size") if option else None
    known = [ports.engine_ports(engine) for engine in relations.engines_in(context.release, sidecar.pod)]
    heard = {port for some in known for port in some or ()}
    if option and ranks and heard and None not in known and len(heard) < ranks:
        message = f"the sidecar serves {ranks} ranks, and the engine listens on {len(heard)} port"
        yield Problem(
            option, message, "Give the engine --data-parallel-multi-port-external-lb, or leave this out."
        )


@rule("LLMD013", "sidecar-tls-upstream", Severity.ERROR, scope=Sidecar)
def sidecar_tls_upstream(sidecar: Sidecar, context: Context) -> Iterator[Problem]:
    """The sidecar speaks TLS to an engine that serves plain HTTP.

    Why:
        --enable-tls=prefiller (or decoder) makes the sidecar call that engine by https. An engine without
        --ssl-certfile refuses, and every such request gets 502.

    Bad:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--enable-tls=decoder, --model-server-port=8200]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    Good:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--enable-tls=decoder, --model-server-port=8200]
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --port=8200, --ssl-certfile=/tls/tls.crt, --ssl-keyfile=/tls/tls.key]
        ```

    References:
        - observed with llm-d-router v0.10.0
    """
    listed = (sidecar.arguments.text("enable-tls") or "").split(",")
    stages = {
        "prefiller": "prefiller" in listed or sidecar.arguments.truth("prefiller-use-tls"),
        "decoder": "decoder" in listed or sidecar.arguments.truth("decoder-use-tls"),
    }
    own = relations.engines_in(context.release, sidecar.pod)
    pool = next(iter(relations.pools_of(context.release, sidecar.pod)), None)
    others = relations.engines_of(context.release, pool) if pool and stages["prefiller"] else ()
    called = {"decoder": own, "prefiller": tuple(one for one in others if one.role == "prefill")}
    for stage, engines in called.items():
        plain = [one for one in engines if not one.arguments.open and "ssl-certfile" not in one.arguments]
        if stages[stage] and plain:
            where = sidecar.arguments.last("enable-tls") or sidecar.arguments.last(f"{stage}-use-tls")
            message = f"the sidecar calls the {stage} by https, and {plain[0].pod.name} serves plain HTTP"
            yield Problem(
                where or sidecar.node, message, f"Leave {stage} out, or give the engine --ssl-certfile."
            )
