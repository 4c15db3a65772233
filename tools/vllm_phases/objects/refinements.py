"""Where Kubernetes' published definitions are made as strict as an API server, and no stricter.

Each entry adds keywords of JSON Schema, or the keyword of a rule (vllm_phases.objects.refusals), to a
definition or to one of its fields. Source: the validation of Kubernetes 1.37, pkg/apis/*/validation; in
tests/objects/test_api_server.py an API server confirms it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

CORE = "io.k8s.api.core.v1."
APPS = "io.k8s.api.apps.v1."
POLICY = "io.k8s.api.policy.v1."
META = "io.k8s.apimachinery.pkg.apis.meta.v1."

_PORT = {"minimum": 1, "maximum": 65535}
_NAMED_PORT = {**_PORT, "x-name": "port name"}
_PERCENT = {"pattern": "^[0-9]+%$"}  # of a text; a number is no percentage
_PROTOCOL = {"enum": ["SCTP", "TCP", "UDP", None]}
_LABELS = {"x-labels": True}
_LABEL = {"x-name": "DNS-1123 label"}
_WORKLOAD = {"x-selector": True, "x-volumes": True}

# By definition, or definition and field.
_KEYWORDS: dict[str, Mapping[str, object]] = {
    f"{META}ObjectMeta/labels": _LABELS,
    f"{META}ObjectMeta/annotations": {"x-annotations": True},
    f"{META}LabelSelector/matchLabels": _LABELS,
    f"{CORE}Container": {"required": ["image", "name"]},
    f"{CORE}Container/image": {"minLength": 1},
    f"{CORE}Container/imagePullPolicy": {"enum": ["Always", "IfNotPresent", "Never", None]},
    f"{CORE}Container/name": _LABEL,
    f"{CORE}Container/ports": {"x-unique-names": True},
    f"{CORE}Container/resources": {"x-resources": True},
    f"{CORE}ContainerPort/containerPort": _PORT,
    f"{CORE}ContainerPort/name": {"x-name": "port name"},
    f"{CORE}ContainerPort/protocol": _PROTOCOL,
    f"{CORE}GRPCAction/port": _PORT,
    f"{CORE}HTTPGetAction/port": _NAMED_PORT,
    f"{CORE}Pod": {"required": ["spec"], "x-volumes": True},
    f"{CORE}PodSpec/containers": {"minItems": 1},
    f"{CORE}PodSpec/nodeSelector": _LABELS,
    f"{CORE}PodSpec/restartPolicy": {"enum": ["Always", "Never", "OnFailure", None]},
    f"{CORE}PodTemplateSpec": {"required": ["spec"]},
    f"{CORE}ServicePort/name": {"x-name": "Service port name"},
    f"{CORE}ServicePort/port": _PORT,
    f"{CORE}ServicePort/protocol": _PROTOCOL,
    f"{CORE}ServicePort/targetPort": {**_NAMED_PORT, "minimum": 0},  # 0 is the default: the same as port
    f"{CORE}ServiceSpec/selector": _LABELS,
    f"{CORE}ServiceSpec/type": {"enum": ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort", None]},
    f"{CORE}TCPSocketAction/port": _NAMED_PORT,
    f"{CORE}Volume/name": _LABEL,
    f"{APPS}DaemonSetSpec": _WORKLOAD,
    f"{APPS}DeploymentSpec": _WORKLOAD,
    f"{APPS}DeploymentSpec/replicas": {"minimum": 0},
    f"{APPS}DeploymentSpec/strategy": {"x-rollout": True},
    f"{APPS}DeploymentStrategy/type": {"enum": ["Recreate", "RollingUpdate", None]},
    f"{APPS}ReplicaSetSpec": _WORKLOAD,
    f"{APPS}RollingUpdateDeployment/maxSurge": _PERCENT,
    f"{APPS}RollingUpdateDeployment/maxUnavailable": _PERCENT,
    f"{APPS}StatefulSetSpec": _WORKLOAD,
    f"{APPS}StatefulSetSpec/replicas": {"minimum": 0},
    "io.k8s.api.batch.v1.JobSpec": {"x-volumes": True},
    f"{POLICY}PodDisruptionBudgetSpec/maxUnavailable": _PERCENT,
    f"{POLICY}PodDisruptionBudgetSpec/minAvailable": _PERCENT,
}
_TIMING = "failureThreshold initialDelaySeconds periodSeconds successThreshold timeoutSeconds"
_TIMING += " terminationGracePeriodSeconds"
# Types that are a choice of one property, and those of their properties that are no part of it.
_CHOICES = {
    "x-at-most-one-of": {"EnvVar": "name", "Volume": "name"},
    "x-one-of": {"EnvVarSource": "", "LifecycleHandler": "", "Probe": _TIMING},
}
# Fields that some minor versions publish as required, but whose absence every API server takes.
_OPTIONAL = {
    f"{APPS}StatefulSetSpec": "serviceName",
    "io.k8s.api.batch.v1.PodFailurePolicyRule": "onPodConditions",
    "io.k8s.api.networking.v1.NetworkPolicySpec": "podSelector",
    "io.k8s.api.rbac.v1.RoleRef": "apiGroup",
}
# In the published schemas each is one of two types that both admit null, which so is refused.
_REPLACED: dict[str, dict[str, object]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {
        "type": ["number", "string", "null"],
        "x-quantity": True,
    },
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["integer", "string", "null"]},
}


def attach(definitions: dict[str, Any]) -> None:
    """Put the keywords of the rules on Kubernetes' definitions, by name."""
    definitions.update(_REPLACED)
    for name, field in _OPTIONAL.items():
        definition = definitions.get(name, {})
        definition["required"] = [other for other in definition.get("required", ()) if other != field]
    for place, keywords in _KEYWORDS.items():
        name, _, field = place.partition("/")
        (definitions[name]["properties"][field] if field else definitions[name]).update(keywords)
    for keyword, types in _CHOICES.items():
        for name, others in types.items():
            definition = definitions[CORE + name]
            definition[keyword] = sorted(set(definition["properties"]) - set(others.split()))
