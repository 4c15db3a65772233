"""OBJ: what an API server has against the objects themselves (vllm_phases.objects)."""

from __future__ import annotations

import functools
import os
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from vllm_phases.finding import Finding, Severity
from vllm_phases.model import Release
from vllm_phases.rules.labels import kustomized, unfinished
from vllm_phases.rules.registry import Context, Elsewhere, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.model import Node, Object
    from vllm_phases.objects import Refused

_PLACEHOLDER = re.compile(r"^[A-Z][A-Z0-9_]+$|(?<![A-Za-z0-9_])[A-Z][A-Z0-9]*_[A-Z0-9_]+")
"""What people leave for sed to fill in: PORT, or V_ZONE in a name."""
_OF_PLACEHOLDERS = frozenset(("OBJ001", "OBJ010", "OBJ013"))
_MERGED = ("env", "ports")  # lists of a container in which a client-side apply takes the last of two entries


@rule("OBJ001", "invalid-object", Severity.ERROR, scope=Release)
def invalid_object(release: Release, context: Context) -> Iterator[Problem]:
    """A field that the kind does not have, one that is missing, or a value of the wrong type.

    Why:
        kubectl validates strictly and the API server refuses the object; Flux and Argo CD are refused likewise.
        What sends objects without validation (`kubectl --validate=false`, `helm --disable-openapi-validation`)
        loses an unknown field without a word, so what it should do never happens. The schemas are those of
        --kube-version, and those of Gateway API, KEDA and the Prometheus operator; kinds of which no schema is
        known are passed over.

    Bad:
        ```yaml
        resources: {limit: {nvidia.com/gpu: 1}}
        ```
        ```yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: demo}
        spec:
          replicas: two
          selector: {matchLabels: {app: demo}}
          template: {metadata: {labels: {app: demo}}, spec: {containers: [{name: vllm, image: vllm/vllm-openai}]}}
        ```

    Good:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1}}
        ```
        ```yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: demo}
        spec:
          replicas: ${REPLICAS}
          selector: {matchLabels: {app: demo}}
          template: {metadata: {labels: {app: demo}}, spec: {containers: [{name: vllm, image: vllm/vllm-openai}]}}
        ```

    References:
        - https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation
    """
    return _problems("OBJ001", context, "Write it as `kubectl explain` describes this field.")


@rule("OBJ002", "no-schema", Severity.WARNING, scope=Elsewhere)
def no_schema(subject: Elsewhere, context: Context) -> Iterator[Problem]:
    """A custom resource of our charts without a schema; only `vllm-phases check` says so.

    Why:
        Nobody knows whether the API server takes it. `lint` passes over such kinds in silence.

    Bad:
        ```yaml
        apiVersion: example.com/v1
        kind: Thing
        metadata: {name: demo}
        ```

    Good:
        ```yaml
        apiVersion: keda.sh/v1alpha1
        kind: ScaledObject
        metadata: {name: demo}
        spec: {scaleTargetRef: {name: demo}, triggers: []}
        ```

    References:
        - objects/data/SOURCES.md
    """
    return iter(())


@rule("OBJ003", "api-not-served", Severity.ERROR, scope=Release)
def api_not_served(release: Release, context: Context) -> Iterator[Problem]:
    """A kind that the Kubernetes release does not serve in this version of its API.

    Why:
        kubectl and Helm stop: `no matches for kind`. Which release is asked is --kube-version.

    Bad:
        ```yaml
        apiVersion: autoscaling/v2beta2
        kind: HorizontalPodAutoscaler
        metadata: {name: demo}
        spec: {maxReplicas: 2, scaleTargetRef: {kind: Deployment, name: demo}}
        ```

    Good:
        ```yaml
        apiVersion: autoscaling/v2
        kind: HorizontalPodAutoscaler
        metadata: {name: demo}
        spec: {maxReplicas: 2, scaleTargetRef: {kind: Deployment, name: demo}}
        ```

    References:
        - https://kubernetes.io/docs/reference/using-api/deprecation-guide/
    """
    return _problems("OBJ003", context, "Use a version of the API that this Kubernetes serves.")


@rule("OBJ010", "invalid-name", Severity.ERROR, scope=Release)
def invalid_name(release: Release, context: Context) -> Iterator[Problem]:
    """A name of an object, a container, a volume or a port that is misspelt.

    Why:
        Names become host names or parts of a URL; the API server refuses others.

    Bad:
        ```yaml
        ports: [{name: kv_side, containerPort: 5600}]
        ```

    Good:
        ```yaml
        ports: [{name: kv-side, containerPort: 5600}]
        ```
        ```yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: weights-V_ZONE}  # for sed to fill in
        ```

    References:
        - https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
    """
    return _problems("OBJ010", context, "Rename it.")


@rule("OBJ011", "invalid-label", Severity.ERROR, scope=Release)
def invalid_label(release: Release, context: Context) -> Iterator[Problem]:
    """A key or value of a label, a selector or an annotation that is misspelt.

    Why:
        The API server refuses the object. A model's name with its slash is no label value.

    Bad:
        ```yaml
        metadata: {labels: {model: Qwen/Qwen3-8B}}
        spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.33.0", args: [Qwen/Qwen3-8B]}]}
        ```

    Good:
        ```yaml
        metadata: {labels: {model: Qwen3-8B}, annotations: {model: Qwen/Qwen3-8B}}
        spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.33.0", args: [Qwen/Qwen3-8B]}]}
        ```

    References:
        - https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
    """
    return _problems("OBJ011", context, "Correct it; the values of annotations are free.")


@rule("OBJ012", "selector-mismatch", Severity.ERROR, scope=Release)
def selector_mismatch(release: Release, context: Context) -> Iterator[Problem]:
    """A workload whose selector does not take its own pods.

    Why:
        The API server refuses it: `selector does not match template labels`.

    Bad:
        ```yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: chat}
        spec:
          selector: {matchLabels: {app: chat}}
          template: {metadata: {labels: {app: chats}}, spec: {containers: [{name: vllm, image: vllm/vllm-openai}]}}
        ```

    Good:
        ```yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: chat}
        spec:
          selector: {matchLabels: {app: chat}}
          template: {metadata: {labels: {app: chat}}, spec: {containers: [{name: vllm, image: vllm/vllm-openai}]}}
        ```

    References:
        - https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#selector
    """
    return _problems("OBJ012", context, "Give the template the labels of the selector.")


@rule("OBJ013", "invalid-quantity", Severity.ERROR, scope=Release)
def invalid_quantity(release: Release, context: Context) -> Iterator[Problem]:
    """A quantity that is no number with at most one suffix.

    Why:
        The API server refuses the object; GB and GiB are no suffixes of Kubernetes.

    Bad:
        ```yaml
        resources: {limits: {memory: 64GB}}
        ```

    Good:
        ```yaml
        resources: {limits: {memory: 64Gi, cpu: 500m}}
        ```

    References:
        - https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
    """
    return _problems("OBJ013", context, "Write a quantity such as 500m, 2, 40G or 16Gi.")


@rule("OBJ014", "duplicate-entry", Severity.ERROR, scope=Release)
def duplicate_entry(release: Release, context: Context) -> Iterator[Problem]:
    """Two entries of a list that is a map by some key, with the same key.

    Why:
        A server-side apply, as of Helm 4 and Flux, is refused, and most such lists are refused however they
        come. Of variables and port numbers of a container a client-side apply takes the last one, so they are
        told as a warning.

    Bad:
        ```yaml
        volumeMounts: [{name: cache, mountPath: /cache}, {name: cache, mountPath: /cache}]
        ```

    Good:
        ```yaml
        env: [{name: HF_HOME, value: /a}, {name: HF_TOKEN, value: ""}]
        ```

    References:
        - https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy
    """
    return _problems("OBJ014", context, "Keep one of the two.")


@rule("OBJ015", "invalid-resources", Severity.ERROR, scope=Release)
def invalid_resources(release: Release, context: Context) -> Iterator[Problem]:
    """Requests above limits, or devices in parts or without a limit.

    Why:
        The API server refuses the pod. Devices such as GPUs are whole, and a request for them is their limit.

    Bad:
        ```yaml
        resources: {requests: {nvidia.com/gpu: 1}}
        ```

    Good:
        ```yaml
        resources: {requests: {cpu: 4, nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}
        ```

    References:
        - https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/
    """
    return _problems("OBJ015", context, "Correct the request or the limit.")


@rule("OBJ016", "unknown-volume", Severity.ERROR, scope=Release)
def unknown_volume(release: Release, context: Context) -> Iterator[Problem]:
    """A container that mounts a volume which its pod does not have.

    Why:
        The API server refuses the pod.

    Bad:
        ```yaml
        volumeMounts: [{name: dshm, mountPath: /dev/shm}]
        ```

    Good:
        ```yaml
        containers:
          - {name: vllm, image: "vllm/vllm-openai:v0.33.0", volumeMounts: [{name: dshm, mountPath: /dev/shm}]}
        volumes: [{name: dshm, emptyDir: {medium: Memory}}]
        ```

    References:
        - https://kubernetes.io/docs/concepts/storage/volumes/
    """
    return _problems("OBJ016", context, "Add the volume to the pod, or name one that it has.")


@rule("OBJ017", "no-single-choice", Severity.ERROR, scope=Release)
def no_single_choice(release: Release, context: Context) -> Iterator[Problem]:
    """Two settings of which only one may be given, or none where one must be.

    Why:
        The API server refuses the object: a variable has one source, a volume one kind, a probe one action.

    Bad:
        ```yaml
        env: [{name: HOST, value: a, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
        ```

    Good:
        ```yaml
        env: [{name: HOST, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
        ```

    References:
        - https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
    """
    return _problems("OBJ017", context, "Give one of them.")


@rule("OBJ018", "invalid-rollout", Severity.ERROR, scope=Release)
def invalid_rollout(release: Release, context: Context) -> Iterator[Problem]:
    """A rollout of a Deployment that could never move.

    Why:
        The API server refuses rollingUpdate beside Recreate, and maxSurge and maxUnavailable that are both 0.

    Bad:
        ```yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: chat}
        spec:
          strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}
          selector: {matchLabels: {app: chat}}
          template: {metadata: {labels: {app: chat}}, spec: {containers: [{name: vllm, image: vllm/vllm-openai}]}}
        ```

    Good:
        ```yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: chat}
        spec:
          strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
          selector: {matchLabels: {app: chat}}
          template: {metadata: {labels: {app: chat}}, spec: {containers: [{name: vllm, image: vllm/vllm-openai}]}}
        ```

    References:
        - https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#strategy
    """
    return _problems(
        "OBJ018", context, "Set maxUnavailable to 1, or leave rollingUpdate out beside Recreate."
    )


def unchecked(context: Context) -> Iterator[Finding]:
    """OBJ002 for each object without a schema, which `check` tells of our own charts."""
    for found, refused in _by_rule(context).get("OBJ002", ()):
        node = found.node.at(*refused.path)
        yield Finding(
            "OBJ002", "no-schema", Severity.WARNING, refused.message, _sentence(refused.remediation),
            "kind", found.id, node.location,
        )  # fmt: skip


def _problems(rule_id: str, context: Context, remediation: str) -> Iterator[Problem]:
    """What a rule has against the objects; the remediation is for what suggests none of its own."""
    for found, refused in _by_rule(context).get(rule_id, ()):
        fix = _sentence(refused.remediation) or remediation
        unsure = _merged(refused) or (kustomized(context.release) and not found.node.at(*refused.path))
        severity = Severity.WARNING if unsure else None
        yield Problem(found.node.at(*refused.path), refused.message, fix, severity)


@functools.lru_cache(maxsize=1)
def _by_rule(context: Context) -> Mapping[str, list[tuple[Object, Refused]]]:
    """What an API server has against the objects of a release, by the id of the rule, in one pass."""
    from vllm_phases.objects import validate

    by_rule: dict[str, list[tuple[Object, Refused]]] = defaultdict(list)
    for found in context.release.objects:
        if not _is_applied(found):
            continue
        for refused in validate(found.node.value, context.kube_version):
            if not _open(found, refused):
                by_rule[refused.rule_id].append((found, refused))
    return by_rule


def _is_applied(found: Object) -> bool:
    """Whether an API server gets an object as it stands: no part of one, and no configuration of kubectl.

    Patches that a kustomization names are not read at all (sources/files.py).
    """
    folder, name = os.path.split(os.path.normpath(found.node.document.file))
    is_patch = "patch" in name or os.path.basename(folder) == "patches"
    return not is_patch and (found.node.text("apiVersion"), found.kind) != ("v1", "Config")


def _open(found: Object, refused: Refused) -> bool:
    """Whether a template, a shell or envsubst still decides what is refused."""
    above = found.node.at(*refused.path[:-1]).value
    missing = not found.node.at(*refused.path)
    texts = [*refused.path, *(above if missing and isinstance(above, dict) else ())]
    texts += (node.value for node in _deciding(found, refused))
    given = found.node.at(*refused.path).text() or ""
    if refused.rule_id in _OF_PLACEHOLDERS and _PLACEHOLDER.search(given):
        return True
    return any(isinstance(text, str) and unfinished(text) for text in texts)


def _deciding(found: Object, refused: Refused) -> Iterator[Node]:
    """The values on which it depends whether this is refused."""
    yield found.node.at(*refused.path)
    if refused.rule_id == "OBJ003":
        yield found.node.at("kind")
    if refused.rule_id == "OBJ012":
        yield from (node for _, node in found.node.entries("spec", "selector", "matchLabels"))
    if refused.rule_id == "OBJ016":
        pod = refused.path[: -len(("containers", 0, "volumeMounts", 0, "name"))]
        yield from (volume.at("name") for volume in found.node.items(*pod, "volumes"))


def _merged(refused: Refused) -> bool:
    """Whether a client-side apply takes the last of two entries."""
    in_container = "containers" in refused.path or "initContainers" in refused.path
    return refused.rule_id == "OBJ014" and in_container and refused.path[-2] in _MERGED


def _sentence(text: str) -> str:
    return text and text[0].upper() + text[1:] + ("" if text.endswith("?") else ".")
