"""PKG: what templates and hand-written YAML leave in objects."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Document, Object, Pod, Service, Variable, relations
from vllm_phases.rules import repairs
from vllm_phases.rules.registry import Context, Problem, rule
from vllm_phases.sources.changes import Quote, Remove, RemoveFirst
from vllm_phases.sources.repair import Repair

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vllm_phases.model import Container, Node, Word

_FLOAT = re.compile(r"-?\d(\.\d+)?e\+\d\d+")
_UNRENDERED = re.compile(r"<no value>|<nil>|%![a-zA-Z]\(")
_MAX_LABEL, _MAX_PORT_NAME = 63, 15
_WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")


@rule("PKG001", "float-in-text", Severity.WARNING, scope=Pod, fix="writes the number in digits.")
def float_in_text(pod: Pod, context: Context) -> Iterator[Problem]:
    """A whole number that a template has printed as 1.048576e+06.

    Why:
        Helm keeps numbers of values as floats and prints large ones so. Programs that read whole numbers
        refuse it; a flag of an engine is told as ARG004.

    Bad:
        ```yaml
        env: [{name: LMCACHE_CHUNK_SIZE, value: "1.048576e+06"}]
        ```

    Good:
        ```yaml
        env: [{name: LMCACHE_CHUNK_SIZE, value: "1048576"}, {name: RATE, value: "1e-06"}]
        ```

    References:
        - https://github.com/helm/helm/issues/1707
    """
    engines = {id(engine.container) for engine in relations.engines_in(context.release, pod)}
    for container in pod.containers:
        texts: list[tuple[Variable | Word, str]] = [
            (variable, variable.value or "") for variable in container.variables.values()
        ]
        if id(container) not in engines:
            texts += [(word, word.text.rpartition("=")[2]) for word in container.words]
        for where, text in texts:
            if _FLOAT.fullmatch(text):
                fix = f"Write {float(text):.0f}; in a template, {{{{ int64 … }}}}."
                message = f"a template has printed a whole number as {text}"
                yield Problem(where, message, fix, repair=_in_digits(where, text))


@rule("PKG002", "not-a-text", Severity.ERROR, scope=Pod, fix="puts quotes around it.")
def not_a_text(pod: Pod, context: Context) -> Iterator[Problem]:
    """A number, true or false where Kubernetes takes text only: words, values of variables, labels.

    Why:
        The API server refuses the object: `cannot unmarshal number into … of type string`. YAML 1.1 makes a
        truth of yes, no, on and off, too.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --port, 8000]
        ```
        ```yaml
        env: [{name: HF_HUB_OFFLINE, value: 1}]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --port, "8000"]
        env: [{name: HF_HUB_OFFLINE, value: "1"}, {name: EMPTY}]
        ```

    References:
        - https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.36/#container-v1-core
    """
    if pod.platform != "kubernetes":
        return
    texts: list[Node] = []
    for container in pod.containers:
        texts += [*container.node.items("command"), *container.node.items("args")]
        texts += [entry.at("value") for entry in container.node.items("env")]
    for field in ("labels", "annotations"):
        texts += [node for _, node in pod.metadata.entries(field)]
    for node in texts:
        if isinstance(node.value, bool | int | float):
            message = f"{node.text()} is no text, and the API server takes text only here"
            yield Problem(node, message, "Quote it.", repair=Repair((Quote(node),)))


@rule("PKG003", "changing-label-in-selector", Severity.WARNING, scope=Object)
def changing_label_in_selector(found: Object, context: Context) -> Iterator[Problem]:
    """A label that changes with each version, in a selector or in what a StatefulSet cannot change.

    Why:
        A selector never changes once it is there: the first update of the version is refused as a change of an
        immutable field. A Service loses the pods of the old version at once.

    Bad:
        ```yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: chat}
        spec:
          selector: {matchLabels: {app: chat, app.kubernetes.io/version: "1.2"}}
          template: {metadata: {labels: {app: chat, app.kubernetes.io/version: "1.2"}}, spec: {containers: []}}
        ```

    Good:
        ```yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: chat}
        spec:
          selector: {matchLabels: {app: chat}}
          template: {metadata: {labels: {app: chat, app.kubernetes.io/version: "1.2"}}, spec: {containers: []}}
        ```

    References:
        - https://helm.sh/docs/chart_best_practices/labels/
        - https://github.com/vllm-project/aibrix/issues/1363
    """
    places = [found.node.at("spec", "selector", "matchLabels")] if found.kind in _WORKLOADS else []
    if found.kind == "Service":
        places = [found.node.at("spec", "selector")]
    if found.kind == "StatefulSet":
        places += [
            claim.at("metadata", "labels") for claim in found.node.items("spec", "volumeClaimTemplates")
        ]
    changing = context.facts("packaging")["changingLabels"]["labels"]
    for place in places:
        for key, node in place.entries():
            if key in changing:
                message = f"label {key}, which changes with each version, stands where nothing may change"
                yield Problem(node, message, f"Remove {key} here; labels of pods may keep it.")


@rule(
    "PKG005",
    "repeated-name",
    Severity.ERROR,
    scope=Pod,
    fix="leaves the second one out where both are the same in everything.",
)
def repeated_name(pod: Pod, context: Context) -> Iterator[Problem]:
    """Two containers, volumes, mounts, ports or variables of one name in a pod.

    Why:
        The API server refuses all but variables and port numbers. Of those the last one counts, and a
        server-side apply, which Helm 4 uses, refuses them too; they are told as a warning.

    Bad:
        ```yaml
        env: [{name: HF_HOME, value: /a}, {name: HF_HOME, value: /b}]
        ```
        ```yaml
        ports: [{name: http, containerPort: 8000}, {name: http, containerPort: 8001}]
        ```
        ```yaml
        env: [{name: HF_HOME, value: /a}, {name: HF_HOME, value: /a}]
        ```

    Good:
        ```yaml
        env: [{name: HF_HOME, value: /a}, {name: HF_TOKEN, value: ""}]
        ports: [{name: http, containerPort: 8000}, {name: udp, containerPort: 8000, protocol: UDP}]
        ```

    References:
        - https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy
    """
    if pod.platform != "kubernetes":
        return
    spec, nodes = pod.spec, [container.node for container in pod.containers]
    yield from _repeated("container", nodes, "name")
    yield from _repeated("volume", spec.items("volumes"), "name")
    for node in nodes:
        yield from _repeated("port", node.items("ports"), "name")
        yield from _repeated("mount", node.items("volumeMounts"), "mountPath")
        yield from _repeated("variable", node.items("env"), "name", severity=Severity.WARNING)
        ports = node.items("ports")
        yield from _repeated("port", ports, "containerPort", "protocol", "hostIP", severity=Severity.WARNING)


@rule("PKG006", "repeated-service-port", Severity.ERROR, scope=Service)
def repeated_service_port(service: Service, context: Context) -> Iterator[Problem]:
    """Two ports of a Service with one name or one number, or several of which one has no name.

    Why:
        The API server refuses it.

    Bad:
        ```yaml
        apiVersion: v1
        kind: Service
        metadata: {name: chat}
        spec: {selector: {app: chat}, ports: [{port: 8000}, {port: 8001}]}
        ```

    Good:
        ```yaml
        apiVersion: v1
        kind: Service
        metadata: {name: chat}
        spec: {selector: {app: chat}, ports: [{name: a, port: 8000}, {name: b, port: 8001}]}
        ```

    References:
        - https://kubernetes.io/docs/concepts/services-networking/service/#multi-port-services
    """
    ports = [port.node for port in service.ports]
    yield from _repeated("port", ports, "name")
    yield from _repeated("port", ports, "port", "protocol")
    for node in ports if len(ports) > 1 else ():
        if not node.text("name"):
            yield Problem(node, "one of several ports of a Service has no name", "Name every port.")


@rule("PKG007", "name-too-long", Severity.ERROR, scope=Object)
def name_too_long(found: Object, context: Context) -> Iterator[Problem]:
    """A name that is longer than Kubernetes takes, or than what is made of it.

    Why:
        The API server refuses the object, or its controller cannot make pods: names of a release and its parts
        add up.

    Bad:
        ```yaml
        apiVersion: v1
        kind: Service
        metadata: {name: production-chat-large-language-model-serving-prefill-engine-service}
        spec: {ports: [{port: 8000}]}
        ```

    Good:
        ```yaml
        apiVersion: v1
        kind: Service
        metadata: {name: chat-prefill}
        spec: {ports: [{port: 8000}]}
        ```

    References:
        - https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
        - https://github.com/kubernetes/kubernetes/issues/64023
    """
    longest, why = context.facts("packaging")["lengths"]["names"].get(found.kind, (None, ""))
    if longest is not None and len(found.name) > longest:
        message = f"the name has {len(found.name)} characters, but a {found.kind} takes {longest}: {why}"
        yield Problem(found.node.at("metadata", "name"), message, f"Shorten it to {longest} characters.")
    for key, node in found.node.entries("metadata", "labels"):
        if len(node.text()) > _MAX_LABEL:
            message = f"label {key} has {len(node.text())} characters, but takes {_MAX_LABEL}"
            yield Problem(node, message, f"Shorten it to {_MAX_LABEL} characters.")


@rule("PKG008", "part-name-too-long", Severity.ERROR, scope=Pod)
def part_name_too_long(pod: Pod, context: Context) -> Iterator[Problem]:
    """A container, volume or port of a pod whose name is too long.

    Why:
        The API server refuses the pod: 63 characters for containers and volumes, 15 for ports.

    Bad:
        ```yaml
        ports: [{name: kv-side-channel-port, containerPort: 5600}]
        ```

    Good:
        ```yaml
        ports: [{name: kv-side-channel, containerPort: 5600}]
        ```

    References:
        - https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
    """
    if pod.platform != "kubernetes":
        return
    parts = [(container.node.at("name"), _MAX_LABEL) for container in pod.containers]
    parts += [(volume.at("name"), _MAX_LABEL) for volume in pod.spec.items("volumes")]
    for container in pod.containers:
        parts += [(port.at("name"), _MAX_PORT_NAME) for port in container.node.items("ports")]
    for node, longest in parts:
        if len(node.text()) > longest:
            message = f"name {node.text()} has {len(node.text())} characters, but may have {longest}"
            yield Problem(node, message, f"Shorten it to {longest} characters.")


@rule("PKG009", "unrendered-value", Severity.ERROR, scope=Pod)
def unrendered_value(pod: Pod, context: Context) -> Iterator[Problem]:
    """What a template writes in place of a value that is not there.

    Why:
        `<no value>`, `<nil>` and `%!s(…)` are text to Kubernetes: the image is not found, or the program is told
        nonsense.

    Bad:
        ```yaml
        image: vllm/vllm-openai:<no value>
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--port=%!d(string=8000)']
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --port=8000]
        ```

    References:
        - https://pkg.go.dev/text/template; https://pkg.go.dev/fmt (format errors)
    """
    for container in pod.containers:
        for where, text in _texts(container):
            if match := _UNRENDERED.search(text):
                message = f"{text!r} holds {match[0]!r}, which a template writes for a missing value"
                yield Problem(where, message, "Set the value that the template asks for.")


@rule(
    "PKG010",
    "repeated-key",
    Severity.WARNING,
    scope=Document,
    fix="leaves the first one out where both are written alike.",
)
def repeated_key(document: Document, context: Context) -> Iterator[Problem]:
    """A key that a YAML mapping has twice.

    Why:
        Kubernetes' reader takes the last one, without a word; docker compose refuses the file.

    Bad:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            image: vllm/vllm-openai:v0.32.0
        ```
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            image: vllm/vllm-openai:v0.33.0
            command: Qwen/Qwen3-8B
        ```

    Good:
        ```compose
        services:
          engine: {image: "vllm/vllm-openai:v0.33.0"}
        ```

    References:
        - https://yaml.org/spec/1.2.2/#3211-nodes
    """
    for path in document.repeated:
        refused = document.kind == "compose"
        message = f"key {path[-1] if path else ''} is given twice"
        message += "; docker compose refuses the file" if refused else "; the last one counts"
        where = document.root.at(*path)
        severity = Severity.ERROR if refused else None
        yield Problem(where, message, "Leave one of them out.", severity, Repair((RemoveFirst(where),)))


def _repeated(
    what: str, nodes: Iterable[Node], *fields: str, severity: Severity | None = None
) -> Iterator[Problem]:
    """The later ones of nodes that agree in some fields; an empty first field is no name."""
    seen: Counter[tuple[str, ...]] = Counter()
    first: dict[tuple[str, ...], Node] = {}
    for node in nodes:
        key = tuple(node.text(field) or ("TCP" if field == "protocol" else "") for field in fields)
        seen[key] += 1
        same = first.setdefault(key, node).value == node.value
        if key[0] and seen[key] == 2:
            message = f"a second {what} has {fields[0]} {key[0]}"
            repair = Repair((Remove(node),)) if same else None
            yield Problem(node.at(fields[0]), message, "Leave one of them out.", severity, repair)


def _in_digits(where: Variable | Word, text: str) -> Repair | None:
    digits = f"{float(text):.0f}"
    if isinstance(where, Variable):
        return repairs.variable_value(where, digits)
    return repairs.rewritten(where, where.text.removesuffix(text) + digits)


def _texts(container: Container) -> Iterator[tuple[Variable | Word | Node, str]]:
    yield container.image.node, container.image.text
    yield from ((word, word.text) for word in container.words)
    yield from ((variable, variable.value or "") for variable in container.variables.values())
