"""LLMD: llm-d's endpoint picker: its options, its rights and the Service that leads to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Severity
from vllm_phases.model import Component, Picker, Pool, Sidecar, access, llmd, relations
from vllm_phases.model.objects import same_namespace
from vllm_phases.rules import ports, windows
from vllm_phases.rules.labels import unfinished
from vllm_phases.rules.llmd_sidecar import refused_options
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.model import Argument, Node, Pod

_OLD_GROUP = "inference.networking.x-k8s.io"
_FLAT_SELECTOR_UNTIL = (0, 10, 0)
_DURATIONS = (
    "refresh-metrics-interval",
    "refresh-prometheus-metrics-interval",
    "metrics-staleness-threshold",
    "drain-timeout",
)
_DURATION = re.compile(r"0|[+-]?((\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h))+")
_SWITCHES = (
    "secure-serving",
    "tracing",
    "metrics-endpoint-auth",
    "ha-enable-leader-election",
    "health-checking",
)
_BOOLEANS = ("true", "false", "t", "f", "1", "0")
_VERBS = ("get", "list", "watch")


@rule("LLMD030", "picker-option", Severity.ERROR, scope=Picker)
def picker_option(picker: Picker, context: Context) -> Iterator[Problem]:
    """An option that the picker's release does not know, or is about to drop.

    Why:
        The picker ends with exit code 2 at an option that it does not know.

    Bad:
        ```yaml
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.9.0
            args: [--pool-name=demo, --allow-experimental-plugins]
        ```

    Good:
        ```yaml
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --allow-experimental-plugins, --zap-encoder=json, --v=2]
        ```

    References:
        - llm-d/llm-d-router v0.9.0 and v0.10.0: pkg/epp/server/options.go
    """
    if picker.version and picker.version >= (0, 9, 0):
        yield from refused_options(picker, context)


@rule("LLMD031", "picker-endpoints", Severity.ERROR, scope=Picker)
def picker_endpoints(picker: Picker, context: Context) -> Iterator[Problem]:
    """The picker is not told where its endpoints come from, or told twice.

    Why:
        It ends at start unless exactly one of --pool-name and --endpoint-selector is given, and takes its
        configuration from a file or as text, not both.

    Bad:
        ```yaml
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --endpoint-selector=app=demo]
        ```

    Good:
        ```yaml
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--endpoint-selector=app=demo, --config-file=/etc/epp/config.yaml]
        ```

    References:
        - llm-d/llm-d-router v0.10.0: pkg/epp/server/options.go, Validate
    """
    given = picker.arguments
    if given.open or picker.version is None or picker.version < (0, 9, 0):
        return
    selector, config = given.last("endpoint-selector"), given.last("config-text")
    if "pool-name" in given and selector:
        yield Problem(selector, "both --pool-name and --endpoint-selector are given", "Leave one of them.")
    elif "pool-name" not in given and not selector:
        message = "neither --pool-name nor --endpoint-selector is given, so the picker does not start"
        yield Problem(picker.node, message, "Set --pool-name and --pool-namespace.")
    if config and "config-file" in given:
        yield Problem(config, "both --config-file and --config-text are given", "Leave one of them.")


@rule("LLMD032", "picker-pool", Severity.ERROR, scope=Pool)
def picker_pool(pool: Pool, context: Context) -> Iterator[Problem]:
    """The picker behind a pool's Service works for another pool.

    Why:
        A picker knows the pods of one pool: that of --pool-name in --pool-namespace. Asked for another, it
        sends requests to the wrong pods, or finds none.

    Bad:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {a: b}}, targetPorts: [{number: 8000}], endpointPickerRef: {name: epp, port: {number: 9002}}}
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: epp}
        spec: {selector: {app: epp}, ports: [{port: 9002}]}
        ---
        metadata: {labels: {app: epp}}
        spec:
          containers:
            - {name: epp, image: 'ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0', args: [--pool-name=other]}
        ```

    Good:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {a: b}}, targetPorts: [{number: 8000}], endpointPickerRef: {name: epp, port: {number: 9002}}}
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: epp}
        spec: {selector: {app: epp}, ports: [{port: 9002}]}
        ---
        metadata: {labels: {app: epp}}
        spec:
          containers:
            - {name: epp, image: 'ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0', args: [--pool-name=demo]}
        ```

    References:
        - llm-d/llm-d-router v0.10.0: pkg/epp/server/options.go
    """
    picker = relations.picker_of(context.release, pool)
    if picker is None:
        return
    named, inside = picker.pool_name, picker.arguments.text("pool-namespace")
    if named is not None and unfinished(named + pool.object.name):
        return
    if named is not None and named != pool.object.name:
        message = f"the picker that pool {pool.object.name} asks works for pool {named!r}"
        option = picker.arguments.last("pool-name") or picker.arguments.last("poolName")
        yield Problem(
            option or picker.node, message, f"Set --pool-name={pool.object.name}, or give each pool a picker."
        )
    elif named and inside and not same_namespace(inside, pool.object.namespace):
        message = (
            f"the picker looks for pool {named} in namespace {inside!r}, it is in {pool.object.namespace}"
        )
        option = picker.arguments.last("pool-namespace")
        yield Problem(option or picker.node, message, f"Set --pool-namespace={pool.object.namespace}.")
    group = picker.arguments.text("pool-group") or "inference.networking.k8s.io"
    if named and picker.version and picker.version >= (0, 7, 0) and group != pool.object.group:
        message = f"the picker reads pools of group {group}, this one is of {pool.object.group}"
        option = picker.arguments.last("pool-group")
        yield Problem(option or picker.node, message, f"Set --pool-group={pool.object.group}.")


@rule("LLMD033", "pool-picker-service", Severity.ERROR, scope=Pool)
def pool_picker_service(pool: Pool, context: Context) -> Iterator[Problem]:
    """The pool's endpointPickerRef leads to no port of a picker.

    Why:
        The gateway asks the picker through this Service. Where nobody answers, every request gets 500 or 503.

    Bad:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {a: b}}, targetPorts: [{number: 8000}], endpointPickerRef: {name: epp, port: {number: 9000}}}
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: epp}
        spec: {selector: {app: epp}, ports: [{port: 9002}]}
        ---
        metadata: {labels: {app: epp}}
        spec:
          containers:
            - {name: epp, image: 'ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0', args: [--pool-name=demo]}
        ```

    Good:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {a: b}}, targetPorts: [{number: 8000}], endpointPickerRef: {name: epp, port: {number: 9002}}}
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: epp}
        spec: {selector: {app: epp}, ports: [{port: 9002, targetPort: grpc}]}
        ---
        metadata: {labels: {app: epp}}
        spec:
          containers:
            - name: epp
              image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
              args: [--pool-name=demo]
              ports: [{name: grpc, containerPort: 9002}]
        ```

    References:
        - kubernetes-sigs/gateway-api-inference-extension v1.6.0: config/crd/bases
    """
    reference = pool.node.at("spec", "endpointPickerRef")
    service = (
        relations.service_at(context.release, pool.picker, pool.object.namespace) if pool.picker else None
    )
    number = reference.number("port", "number")
    picker = relations.picker_of(context.release, pool)
    if pool.picker and service is None and picker is not None:
        message = f"there is no Service {pool.picker!r} here, though the pool's picker is"
        yield Problem(reference.at("name"), message, "Name the picker's Service.", Severity.WARNING)
    if service is None or number is None:
        return
    port = next((port for port in service.ports if port.number == number), None)
    if port is None:
        offered = ", ".join(str(port.number) for port in service.ports) or "none"
        message = f"Service {pool.picker} has no port {number}, only {offered}"
        yield Problem(
            reference.at("port", "number"), message, "Name the port that leads to the picker's gRPC port."
        )
    elif picker is not None and (grpc := _grpc_port(picker, context)) is not None:
        target = picker.container.port_number(port.target)
        if target is not None and target != grpc:
            message = (
                f"Service {pool.picker} leads to port {target} of the picker, which serves gRPC on {grpc}"
            )
            yield Problem(port.node, message, f"Set targetPort: {grpc}.")


def _grpc_port(picker: Picker, context: Context) -> int | None:
    names = [name for name in ("grpc-port", "grpcPort") if name in picker.arguments]
    if names:
        return picker.arguments.number(names[0])
    return None if picker.arguments.open else int(context.facts("llmd")["picker_ports"]["grpc"])


@rule("LLMD034", "picker-rights", Severity.ERROR, scope=Picker)
def picker_rights(picker: Picker, context: Context) -> Iterator[Problem]:
    """The picker's service account may not read what the picker watches.

    Why:
        The picker waits for pods, its pool, objectives and model rewrites, and ends when it may not list one
        of them. Several replicas need leases besides.

    Bad:
        ```yaml
        kind: Role
        apiVersion: rbac.authorization.k8s.io/v1
        metadata: {name: epp}
        rules:
          - {apiGroups: [''], resources: [pods], verbs: [get, list, watch]}
          - {apiGroups: [inference.networking.k8s.io], resources: [inferencepools], verbs: [get, list, watch]}
        ---
        kind: RoleBinding
        apiVersion: rbac.authorization.k8s.io/v1
        metadata: {name: epp}
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: epp}
        subjects: [{kind: ServiceAccount, name: epp}]
        ---
        serviceAccountName: epp
        containers:
          - {name: epp, image: 'ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0', args: [--pool-name=demo]}
        ```

    Good:
        ```yaml
        kind: Role
        apiVersion: rbac.authorization.k8s.io/v1
        metadata: {name: epp}
        rules:
          - {apiGroups: [''], resources: [pods], verbs: [get, list, watch]}
          - {apiGroups: [inference.networking.k8s.io], resources: [inferencepools], verbs: [get, list, watch]}
          - {apiGroups: [llm-d.ai], resources: [inferenceobjectives, inferencemodelrewrites], verbs: [get, list, watch]}
        ---
        kind: RoleBinding
        apiVersion: rbac.authorization.k8s.io/v1
        metadata: {name: epp}
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: epp}
        subjects: [{kind: ServiceAccount, name: epp}]
        ---
        serviceAccountName: epp
        containers:
          - {name: epp, image: 'ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0', args: [--pool-name=demo]}
        ```
        ```yaml
        kind: Role
        apiVersion: rbac.authorization.k8s.io/v1
        metadata: {name: epp}
        rules:
          - {apiGroups: [''], resources: [pods], verbs: [get, list, watch]}
          - {apiGroups: [inference.networking.k8s.io], resources: [inferencepools], verbs: [get, list, watch]}
        ---
        kind: RoleBinding
        apiVersion: rbac.authorization.k8s.io/v1
        metadata: {name: epp}
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: epp}
        subjects: [{kind: ServiceAccount, name: epp}]
        ---
        serviceAccountName: epp
        containers:
          - {name: epp, image: 'registry.k8s.io/gateway-api-inference-extension/lwepp:v1.6.0', args: [--pool-name=demo]}
        ```

    References:
        - https://github.com/kubernetes-sigs/gateway-api-inference-extension/issues/1737
    """
    if picker.pod.platform != "kubernetes" or not access.complete(context.release, picker.pod):
        return
    rights = {name: entry for name, entry in context.facts("llmd")["rights"].items() if name != "source"}
    wanted = {
        resource: entry["groups"]
        for resource, entry in rights.items()
        if resource == "pods" or (picker.pool_name is not None and _reads(picker, entry, context))
    }
    if picker.arguments.truth("ha-enable-leader-election"):
        wanted["leases"] = ["coordination.k8s.io"]
    yield from _without_rights(picker.pod, picker.node, wanted, context)


def _reads(picker: Picker, entry: Mapping[str, Any], context: Context) -> bool:
    """Whether a picker surely reads a resource; of a program that only shares its options little is known."""
    known = picker.container.image.name in context.facts("components")["picker"]["images"]
    old = picker.version is not None and windows.before(picker.version, entry)
    return bool(entry.get("every")) or (known and not old)


def _without_rights(
    pod: Pod, fallback: Node, wanted: dict[str, list[str]], context: Context
) -> Iterator[Problem]:
    """A problem that names every resource that a pod's account may not list and watch."""
    missing = [
        resource
        for resource, groups in wanted.items()
        if not any(
            access.allowed(context.release, pod, "list", group, resource)
            and access.allowed(context.release, pod, "watch", group, resource)
            for group in groups
        )
    ]
    if missing:
        account = access.service_account(pod)
        place = pod.spec.at("serviceAccountName")
        message = f"service account {account} may not list and watch {', '.join(missing)}"
        fix = f"Bind it to a Role that may {', '.join(_VERBS)} them."
        elsewhere = not (
            context.release.of_kind("RoleBinding") or context.release.of_kind("ClusterRoleBinding")
        )
        severity = Severity.WARNING if elsewhere else None
        yield Problem(place if place else fallback, message, fix, severity)


@rule("LLMD035", "ssrf-without-rights", Severity.ERROR, scope=Sidecar)
def ssrf_without_rights(sidecar: Sidecar, context: Context) -> Iterator[Problem]:
    """SSRF protection of the sidecar needs rights that the decode pod's service account has not.

    Why:
        The sidecar allows the addresses of the pool's pods, and must read both. Without the right its list
        stays empty and every disaggregated request gets 403.

    Bad:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--enable-ssrf-protection, --inference-pool=demo/demo]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    Good:
        ```yaml
        kind: Role
        apiVersion: rbac.authorization.k8s.io/v1
        metadata: {name: decode}
        rules:
          - {apiGroups: [''], resources: [pods], verbs: [get, list, watch]}
          - {apiGroups: [inference.networking.k8s.io], resources: [inferencepools], verbs: [get, list, watch]}
        ---
        kind: RoleBinding
        apiVersion: rbac.authorization.k8s.io/v1
        metadata: {name: decode}
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: decode}
        subjects: [{kind: ServiceAccount, name: decode}]
        ---
        serviceAccountName: decode
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--enable-ssrf-protection, --inference-pool=demo/demo]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    References:
        - https://github.com/llm-d/llm-d-router/issues/979
    """
    option = sidecar.arguments.last("enable-ssrf-protection")
    protected = option is not None and sidecar.arguments.truth(option.name)
    if (
        protected
        and option
        and sidecar.pod.platform == "kubernetes"
        and access.complete(context.release, sidecar.pod)
    ):
        group = sidecar.arguments.text("pool-group") or "inference.networking.k8s.io"
        wanted = {"pods": [""], "inferencepools": [group]}
        yield from _without_rights(sidecar.pod, option.word.node or sidecar.node, wanted, context)


@rule("LLMD036", "ssrf-pool-unreadable", Severity.ERROR, scope=Sidecar)
def ssrf_pool_unreadable(sidecar: Sidecar, context: Context) -> Iterator[Problem]:
    """The sidecar's SSRF protection cannot read its pool.

    Why:
        Up to v0.9 the sidecar reads spec.selector as a flat map, which a pool of inference.networking.k8s.io
        does not have: nothing is allowed, and every disaggregated request gets 403. A pool without a
        namespace is looked for in "default".

    Bad:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.9.0
            restartPolicy: Always
            args: [--enable-ssrf-protection, --inference-pool=demo/demo]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    Good:
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0
            restartPolicy: Always
            args: [--enable-ssrf-protection, --inference-pool=demo/demo]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```
        ```yaml
        initContainers:
          - name: routing-proxy
            image: ghcr.io/llm-d/llm-d-inference-scheduler-sidecar:v0.8.0
            restartPolicy: Always
            command: [/app/pd-sidecar]
            args: [--enable-ssrf-protection, --pool-group=inference.networking.x-k8s.io]
            env: [{name: INFERENCE_POOL_NAMESPACE, value: demo}, {name: INFERENCE_POOL_NAME, value: demo}]
        containers:
          - {name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --port=8200]}
        ```

    References:
        - https://github.com/llm-d/llm-d/issues/1365
        - llm-d/llm-d-router v0.9.0 and v0.10.0: pkg/sidecar/proxy/allowlist.go
    """
    given = sidecar.arguments
    option = given.last("enable-ssrf-protection")
    read = context.facts("llmd")["sidecar_read"]
    if (
        option is None
        or not given.truth(option.name)
        or (sidecar.version and windows.before(sidecar.version, read))
    ):
        return
    group, named = (
        given.text("pool-group"),
        given.text("inference-pool") or sidecar.container.value("INFERENCE_POOL"),
    )
    if sidecar.version and sidecar.version < _FLAT_SELECTOR_UNTIL and group != _OLD_GROUP:
        message = (
            f"sidecar {windows.spelled(sidecar.version)} cannot read a pool of inference.networking.k8s.io/v1"
        )
        fix = "Use sidecar v0.10.0 or newer, or leave SSRF protection off."
        yield Problem(option, f"{message}, so SSRF protection refuses every prefill address", fix)
    yield from _unnamed_pool(sidecar, option, named)


def _unnamed_pool(sidecar: Sidecar, option: Argument, named: str | None) -> Iterator[Problem]:
    """SSRF protection without a pool, or with one that is looked for in another namespace."""
    given = sidecar.arguments
    variables = ("INFERENCE_POOL", "INFERENCE_POOL_NAME")
    pool_given = "inference-pool" in given or any(name in sidecar.container.variables for name in variables)
    if (
        not pool_given
        and "inference-pool-name" not in given
        and sidecar.container.complete
        and not given.open
    ):
        yield Problem(
            option, "SSRF protection is on without --inference-pool", "Set --inference-pool=NAMESPACE/NAME."
        )
    elif named and "/" not in named and sidecar.pod.namespace not in ("", "default"):
        message = f"pool {named!r} without a namespace is looked for in default, the pod is in {sidecar.pod.namespace}"
        fix = f"Write {sidecar.pod.namespace}/{named}."
        yield Problem(given.last("inference-pool") or option, message, fix)


@rule("LLMD037", "picker-replicas", Severity.WARNING, scope=Picker)
def picker_replicas(picker: Picker, context: Context) -> Iterator[Problem]:
    """Several pickers work side by side, each with its own idea of the engines.

    Why:
        Without leader election every replica decides by itself. What it knows of prefixes and of requests in
        flight is its own, so prefix hits fall and load is counted in part. Plugins that read everything from
        the engines (precise prefix cache, queue and cache metrics) may run so.

    Bad:
        ```yaml
        kind: Deployment
        apiVersion: apps/v1
        metadata: {name: epp}
        spec:
          replicas: 2
          template:
            spec:
              containers:
                - {name: epp, image: 'ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0', args: [--pool-name=demo]}
        ```

    Good:
        ```yaml
        kind: Deployment
        apiVersion: apps/v1
        metadata: {name: epp}
        spec:
          replicas: 2
          template:
            spec:
              containers:
                - name: epp
                  image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
                  args: [--pool-name=demo, --ha-enable-leader-election]
        ```

    References:
        - https://github.com/llm-d/llm-d-router/issues/1290
    """
    count, config = picker.pod.replicas, relations.config_of(context.release, picker)
    precise = config is not None and config.of_type(
        "precise-prefix-cache-producer", "precise-prefix-cache-scorer"
    )
    elected = picker.arguments.truth("ha-enable-leader-election")
    if count and count > 1 and not elected and not precise and not picker.arguments.open and picker.pod.owner:
        message = f"{count} pickers without leader election, each with its own count of prefixes and requests"
        fix = "Set --ha-enable-leader-election, or one replica."
        yield Problem(picker.pod.owner.node.at("spec", "replicas"), message, fix)


@rule("LLMD038", "picker-config-key", Severity.ERROR, scope=Picker)
def picker_config_key(picker: Picker, context: Context) -> Iterator[Problem]:
    """The picker's --config-file is no key of the ConfigMap that is mounted there.

    Why:
        The picker does not start without its file.

    Bad:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: epp}
        data: {config.yaml: 'kind: EndpointPickerConfig'}
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --config-file=/etc/epp/plugins.yaml]
            volumeMounts: [{name: config, mountPath: /etc/epp}]
        volumes: [{name: config, configMap: {name: epp}}]
        ```

    Good:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: epp}
        data: {config.yaml: 'kind: EndpointPickerConfig'}
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --config-file=/etc/epp/config.yaml]
            volumeMounts: [{name: config, mountPath: /etc/epp}]
        volumes: [{name: config, configMap: {name: epp}}]
        ```

    References:
        - llm-d/llm-d-router v0.10.0: pkg/epp/server/options.go
    """
    option = picker.arguments.last("config-file") or picker.arguments.last("configFile")
    folder, _, key = (picker.config_file or "").rpartition("/")
    mount = next((mount for mount in picker.container.mounts if mount.path.rstrip("/") == folder), None)
    volume = picker.pod.volumes.get(mount.volume) if mount and not mount.sub_path else None
    if option is None or volume is None or volume.at("configMap", "items"):
        return
    held = context.release.config_data(picker.pod.namespace)(volume.text("configMap", "name"))
    if held is not None and key not in held:
        message = f"ConfigMap {volume.text('configMap', 'name')} has no {key!r}, only {', '.join(held) or 'nothing'}"
        yield Problem(option, message, "Name a key of the ConfigMap.")


@rule("LLMD039", "picker-tls", Severity.ERROR, scope=Picker)
def picker_tls(picker: Picker, context: Context) -> Iterator[Problem]:
    """Gateway and picker do not agree on TLS.

    Why:
        The picker serves TLS with a certificate of its own unless --secure-serving=false; Istio speaks plain
        gRPC unless a DestinationRule says otherwise. Where they differ every request gets 500.

    Bad:
        ```yaml
        kind: Service
        apiVersion: v1
        metadata: {name: epp}
        spec: {selector: {app: epp}, ports: [{port: 9002}]}
        ---
        kind: DestinationRule
        apiVersion: networking.istio.io/v1
        metadata: {name: epp}
        spec: {host: epp, trafficPolicy: {tls: {mode: SIMPLE, insecureSkipVerify: true}}}
        ---
        metadata: {labels: {app: epp}}
        spec:
          containers:
            - name: epp
              image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
              args: [--pool-name=demo, --secure-serving=false]
        ```

    Good:
        ```yaml
        kind: Service
        apiVersion: v1
        metadata: {name: epp}
        spec: {selector: {app: epp}, ports: [{port: 9002}]}
        ---
        kind: DestinationRule
        apiVersion: networking.istio.io/v1
        metadata: {name: epp}
        spec: {host: epp, trafficPolicy: {tls: {mode: SIMPLE, insecureSkipVerify: true}}}
        ---
        metadata: {labels: {app: epp}}
        spec:
          containers:
            - {name: epp, image: 'ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0', args: [--pool-name=demo]}
        ```

    References:
        - https://github.com/istio/istio.io/issues/17528
    """
    given = picker.arguments
    plain = given.last("secure-serving") if given.truth("secure-serving") is False else None
    names = {service.object.name for service in relations.services_of(context.release, picker.pod)}
    rules = {
        found.node.text("spec", "host").partition(".")[0]: found.node.at(
            "spec", "trafficPolicy", "tls", "mode"
        )
        for found in context.release.of_kind("DestinationRule")
        if same_namespace(found.namespace, picker.pod.namespace)
    }
    modes = [mode for host, mode in rules.items() if host in names and mode.text() not in ("", "DISABLE")]
    istio = [
        found
        for found in context.release.of_kind("Gateway")
        if found.node.text("spec", "gatewayClassName") == "istio"
    ]
    if plain and modes:
        message = f"the picker serves plain gRPC, but a DestinationRule makes the gateway speak TLS ({modes[0].text()})"
        yield Problem(plain, message, "Remove --secure-serving=false.")
    elif not plain and not given.open and istio and names and not modes:
        message = "the picker serves TLS, and no DestinationRule here tells Istio's gateway to speak it"
        fix = "Add a DestinationRule for the picker's Service: tls mode SIMPLE with insecureSkipVerify true."
        yield Problem(picker.node, message, fix, Severity.WARNING)


@rule("LLMD014", "removed-image", Severity.WARNING, scope=Component)
def removed_image(component: Component, context: Context) -> Iterator[Problem]:
    """An image of llm-d under the name that its packages had up to v0.8.

    Why:
        The images are called llm-d-router-endpoint-picker and llm-d-router-disagg-sidecar since v0.9. The old
        picker's package was taken out of the registry, so a node that does not hold it cannot pull it.

    Bad:
        ```yaml
        containers: [{name: epp, image: 'ghcr.io/llm-d/llm-d-inference-scheduler:v0.8.0', args: [--pool-name=demo]}]
        ```

    Good:
        ```yaml
        containers: [{name: epp, image: 'ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0', args: [--pool-name=demo]}]
        ```

    References:
        - https://github.com/vllm-project/semantic-router/issues/3408
    """
    image = component.container.image
    renamed = context.facts("llmd")["renamed_images"]
    entry = renamed.get(image.path) if "/" in image.path else None
    if entry is not None and component.version and component.version >= (0, 9, 0):
        message = (
            f"there is no {image.name} of release {windows.spelled(component.version)}: it has another name"
        )
        yield Problem(image, message, f"Use {entry['instead']}.", Severity.ERROR)
    elif entry is not None:
        what = "was taken out of the registry" if entry["removed"] else "gets no new releases"
        yield Problem(
            image, f"{image.path} {what}", f"Use {entry['instead']}, with the options of its release."
        )


@rule("LLMD015", "picker-value", Severity.ERROR, scope=Picker)
def picker_value(picker: Picker, context: Context) -> Iterator[Problem]:
    """An option of the picker has a value that it refuses.

    Why:
        The picker ends with exit code 2 at a duration without a unit, and a switch that is neither true nor
        false.

    Bad:
        ```yaml
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --refresh-metrics-interval=50]
        ```

    Good:
        ```yaml
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --refresh-metrics-interval=50ms, --tracing=false]
        ```

    References:
        - observed with llm-d-router v0.10.0
    """
    for option in picker.arguments.options:
        text = option.value
        if text is None or unfinished(text):
            continue
        if option.name in _DURATIONS and not _DURATION.fullmatch(text):
            message = f"--{option.name} is {text!r}, which is no duration with a unit"
            yield Problem(option, message, "Write a unit, such as 50ms or 30s.")
        elif option.name in _SWITCHES and option.attached and text.lower() not in _BOOLEANS:
            yield Problem(
                option, f"--{option.name} is {text!r}, neither true nor false", "Write true or false."
            )


@rule("LLMD055", "selector-port-not-served", Severity.ERROR, scope=Picker)
def selector_port_not_served(picker: Picker, context: Context) -> Iterator[Problem]:
    """A pod that the picker selects does not listen on one of --endpoint-target-ports.

    Why:
        Without a pool the picker takes every pod of --endpoint-selector with every port for an endpoint.
        Requests to a port that nobody opened fail.

    Bad:
        ```yaml
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--endpoint-selector=app=demo-1, --endpoint-target-ports=8000]
        ---
        args: [Qwen/Qwen3-8B, --port=8200]
        ```

    Good:
        ```yaml
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--endpoint-selector=app=demo-1, --endpoint-target-ports=8200]
        ---
        args: [Qwen/Qwen3-8B, --port=8200]
        ```

    References:
        - llm-d/llm-d-router v0.10.0: pkg/epp/server/options.go
    """
    option, chosen = picker.arguments.last("endpoint-target-ports"), llmd.selection(picker)
    if option is None or chosen is None:
        return
    targets = frozenset(number for number, _ in chosen.target_ports)
    for pod in relations.pods_of(context.release, chosen):
        heard = ports.served(context.release, pod)
        missing = sorted(ports.wanted(pod, targets) - heard) if heard is not None else []
        if missing:
            listens = ", ".join(map(str, sorted(heard or ()))) or "no port"
            message = (
                f"{pod.name} is selected and listens on {listens}, not on {', '.join(map(str, missing))}"
            )
            yield Problem(
                option, message, "Name the port of the sidecar, or of the engine where it has none."
            )
