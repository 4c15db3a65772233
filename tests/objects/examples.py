"""Objects that an API server takes, and what each defect turns them into: a finding here, a refusal there."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

CONTAINER: Object = {
    "name": "vllm",
    "image": "vllm/vllm-openai:v0.33.0",
    "ports": [{"name": "http", "containerPort": 8000}],
    "env": [{"name": "HF_HOME", "value": "/cache"}],
    "startupProbe": {"httpGet": {"path": "/health", "port": "http"}, "failureThreshold": 60},
    "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
    "resources": {
        "requests": {"cpu": "500m", "memory": "40G", "nvidia.com/gpu": 1},
        "limits": {"cpu": 4, "memory": "40Gi", "nvidia.com/gpu": "1"},
    },
}
POD: Object = {
    "metadata": {"labels": {"app.kubernetes.io/name": "vllm-base"}},
    "spec": {"containers": [CONTAINER], "volumes": [{"name": "cache", "emptyDir": {"sizeLimit": "1.5Gi"}}]},
}
DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "demo-server", "labels": {"app.kubernetes.io/version": "0.33.0"}},
    "spec": {
        "replicas": 2,
        "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "selector": {"matchLabels": {"app.kubernetes.io/name": "vllm-base"}},
        "template": POD,
    },
}
STATEFUL_SET: Object = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "demo-server"},
    "spec": {
        "serviceName": "demo-server",
        "selector": DEPLOYMENT["spec"]["selector"],
        "template": {"metadata": POD["metadata"], "spec": {"containers": [CONTAINER]}},
        "volumeClaimTemplates": [
            {
                "metadata": {"name": "cache"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Gi"}}},
            }
        ],
    },
}
SERVICE: Object = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "demo-server"},
    "spec": {
        "selector": {"app.kubernetes.io/name": "vllm-base"},
        "ports": [{"name": "http", "port": 8000, "targetPort": "http"}],
    },
}
SECRET: Object = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "demo-api-key"},
    "stringData": {"key": "correct horse"},
}
CRON_JOB: Object = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "demo-warm-up"},
    "spec": {
        "schedule": "0 6 * * *",
        "jobTemplate": {"spec": {"template": {"spec": {**POD["spec"], "restartPolicy": "Never"}}}},
    },
}
ROLE: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "demo:reader"},
    "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
}
POD_MONITOR: Object = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "PodMonitor",
    "metadata": {"name": "demo-server"},
    "spec": {
        "selector": {"matchLabels": {"app.kubernetes.io/name": "vllm-base"}},
        "podMetricsEndpoints": [{"port": "http", "interval": "15s"}],
    },
}
SERVICE_MONITOR: Object = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "ServiceMonitor",
    "metadata": {"name": "demo-server"},
    "spec": {"selector": {}, "endpoints": [{"targetPort": 8000}, {"targetPort": "http"}]},
}
SCALED_OBJECT: Object = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "demo-server"},
    "spec": {
        "scaleTargetRef": {"name": "demo-server"},
        "minReplicaCount": 1,
        "triggers": [{"type": "prometheus", "metadata": {"threshold": "5", "query": "sum(up)"}}],
    },
}
LEADER_WORKER_SET: Object = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "demo-server"},
    "spec": {
        "replicas": None,
        "rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": "50%", "maxUnavailable": 1}},
        "leaderWorkerTemplate": {
            "size": 2,
            "leaderTemplate": DEPLOYMENT["spec"]["template"],
            "workerTemplate": DEPLOYMENT["spec"]["template"],
        },
    },
}
HTTP_ROUTE: Object = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "demo-front-door"},
    "spec": {
        "parentRefs": [{"name": "public", "group": None}],  # null where the CRD has a default
        "rules": [{"backendRefs": [{"name": "demo-front-door", "port": 80}]}],
    },
}
# What some minor versions publish as required, though no API server misses it.
ROLE_BINDING: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "demo"},
    "roleRef": {"kind": "Role", "name": "demo:reader"},
    "subjects": [{"kind": "ServiceAccount", "name": "demo", "namespace": "default"}],
}
NETWORK_POLICY: Object = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "demo"},
    "spec": {"policyTypes": ["Ingress"]},
}
HEADLESS: Object = {
    **STATEFUL_SET,
    "spec": {key: value for key, value in STATEFUL_SET["spec"].items() if key != "serviceName"},
}

ACCEPTED = (
    DEPLOYMENT,
    STATEFUL_SET,
    SERVICE,
    SECRET,
    CRON_JOB,
    ROLE,
    POD_MONITOR,
    SERVICE_MONITOR,
    SCALED_OBJECT,
    LEADER_WORKER_SET,
    HTTP_ROUTE,
    ROLE_BINDING,
    NETWORK_POLICY,
    HEADLESS,
)


@dataclass(frozen=True)
class Refused:
    """An object with one defect, the rule that sees it, its message and what it says to do."""

    object: Object
    rule: str
    message: str
    remediation: str = ""


def changed(original: Object, place: str, value: object) -> Object:
    """A copy of an object with another value at a place such as spec/template/spec/containers/0/name."""
    copy = deepcopy(original)
    *path, last = (int(step) if step.isdigit() else step.replace("~", "/") for step in place.split("/"))
    node: Any = copy
    for step in path:
        node = node[step]
    node[last] = value
    return copy


_C = "spec/template/spec/containers/0/"
_AT = "spec.template.spec.containers[0]"

LONG = "a" * 64

REFUSED = {
    "an unknown field": Refused(
        changed(DEPLOYMENT, f"{_C}resourcez", {}),
        "OBJ001 invalid-object",
        f'{_AT}.resourcez: unknown field, did you mean "resources"?',
    ),
    "an unknown field that is like no other": Refused(
        changed(DEPLOYMENT, "spec/strategy/gradually", True),
        "OBJ001 invalid-object",
        "spec.strategy.gradually: unknown field, allowed are rollingUpdate, type",
    ),
    "an unknown field of a custom resource": Refused(
        changed(POD_MONITOR, "spec/podMetricsEndpoints/0/intervall", "15s"),
        "OBJ001 invalid-object",
        'spec.podMetricsEndpoints[0].intervall: unknown field, did you mean "interval"?',
    ),
    "a choice that a custom resource does not have": Refused(
        changed(LEADER_WORKER_SET, "spec/leaderWorkerTemplate/restartPolicy", "Always"),
        "OBJ001 invalid-object",
        'spec.leaderWorkerTemplate.restartPolicy: "Always" is not one of "Default", "None",'
        ' "RecreateGroupAfterStart", "RecreateGroupOnPodRestart"',
    ),
    "an unknown field in the metadata of a custom resource": Refused(
        changed(POD_MONITOR, "metadata/lables", {}),
        "OBJ001 invalid-object",
        'metadata.lables: unknown field, did you mean "labels"?',
    ),
    "a text where a number belongs": Refused(
        changed(DEPLOYMENT, "spec/replicas", "two"),
        "OBJ001 invalid-object",
        'spec.replicas: "two" is not an integer',
    ),
    "a number where a text belongs": Refused(
        changed(DEPLOYMENT, f"{_C}env/0/value", 8000),
        "OBJ001 invalid-object",
        f"{_AT}.env[0].value: 8000 is not a string",
    ),
    "a list where an object belongs": Refused(
        changed(SERVICE, "spec/selector", ["app"]),
        "OBJ001 invalid-object",
        'spec.selector: ["app"] is not an object',
    ),
    "a fraction where a number or a name belongs": Refused(
        changed(SERVICE, "spec/ports/0/targetPort", 1.5),
        "OBJ001 invalid-object",
        "spec.ports[0].targetPort: 1.5 is not an integer or string",
    ),
    "a missing field": Refused(
        changed(DEPLOYMENT, "spec/template/spec", {}),
        "OBJ001 invalid-object",
        "spec.template.spec.containers: missing, but required",
    ),
    "a missing name": Refused(
        changed(DEPLOYMENT, "metadata", {}),
        "OBJ001 invalid-object",
        "metadata.name: missing, but required",
    ),
    "a value out of range": Refused(
        changed(DEPLOYMENT, f"{_C}ports/0/containerPort", 70000),
        "OBJ001 invalid-object",
        f"{_AT}.ports[0].containerPort: 70000 is greater than the maximum of 65535",
    ),
    "a negative number of replicas": Refused(
        changed(DEPLOYMENT, "spec/replicas", -1),
        "OBJ001 invalid-object",
        "spec.replicas: -1 is less than the minimum of 0",
    ),
    "a share without its percent sign": Refused(
        changed(DEPLOYMENT, "spec/strategy/rollingUpdate/maxUnavailable", "25"),
        "OBJ001 invalid-object",
        'spec.strategy.rollingUpdate.maxUnavailable: "25" does not match "^[0-9]+%$"',
    ),
    "a container without an image": Refused(
        changed(DEPLOYMENT, f"{_C}image", ""),
        "OBJ001 invalid-object",
        f'{_AT}.image: "" is shorter than 1 character',
    ),
    "a value that is not one of a few": Refused(
        changed(DEPLOYMENT, f"{_C}imagePullPolicy", "ifNotPresent"),
        "OBJ001 invalid-object",
        f'{_AT}.imagePullPolicy: "ifNotPresent" is not one of "Always", "IfNotPresent", "Never"',
    ),
    "a value of a custom resource that is not one of a few": Refused(
        changed(POD_MONITOR, "spec/podMetricsEndpoints/0/scheme", "gopher"),
        "OBJ001 invalid-object",
        'spec.podMetricsEndpoints[0].scheme: "gopher" is not one of "http", "https"',
    ),
    "a value of a custom resource that its pattern forbids": Refused(
        changed(HTTP_ROUTE, "spec/hostnames", ["not a host"]),
        "OBJ001 invalid-object",
        'spec.hostnames[0]: "not a host" does not match '
        r'"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"',
    ),
    "a number among the texts of a KEDA trigger": Refused(
        changed(SCALED_OBJECT, "spec/triggers/0/metadata/threshold", 5),
        "OBJ001 invalid-object",
        "spec.triggers[0].metadata.threshold: 5 is not a string",
    ),
    "a set with a value twice": Refused(
        changed(POD_MONITOR, "spec/scrapeProtocols", ["PrometheusProto", "PrometheusProto"]),
        "OBJ001 invalid-object",
        'spec.scrapeProtocols: ["PrometheusProto","PrometheusProto"] has non-unique elements',
    ),
    "a Secret's value of the wrong type, which stays secret": Refused(
        changed(SECRET, "stringData/key", 12345),
        "OBJ001 invalid-object",
        "stringData.key: the value is not a string",
    ),
    "a kind of a version that is gone": Refused(
        changed(CRON_JOB, "apiVersion", "batch/v1beta1"),
        "OBJ003 api-not-served",
        "apiVersion: Kubernetes 1.37 does not serve batch/v1beta1 CronJob",
        "set apiVersion to batch/v1",
    ),
    "a kind of another group": Refused(
        changed(DEPLOYMENT, "apiVersion", "v1"),
        "OBJ003 api-not-served",
        "apiVersion: Kubernetes 1.37 does not serve v1 Deployment",
        "set apiVersion to apps/v1",
    ),
    "a misspelt kind": Refused(
        changed(DEPLOYMENT, "kind", "Deploymnet"),
        "OBJ003 api-not-served",
        "apiVersion: Kubernetes 1.37 does not serve apps/v1 Deploymnet",
        'did you mean "Deployment"?',
    ),
    "a name with a capital letter": Refused(
        changed(DEPLOYMENT, "metadata/name", "Demo"),
        "OBJ010 invalid-name",
        'metadata.name: "Demo" is not a DNS-1123 subdomain '
        "(lower case letters, digits, inner dashes and dots, at most 253 characters)",
    ),
    "a name of a custom resource with an underscore": Refused(
        changed(POD_MONITOR, "metadata/name", "demo_server"),
        "OBJ010 invalid-name",
        'metadata.name: "demo_server" is not a DNS-1123 subdomain '
        "(lower case letters, digits, inner dashes and dots, at most 253 characters)",
    ),
    "a Service name that is no host name": Refused(
        changed(SERVICE, "metadata/name", "demo.server"),
        "OBJ010 invalid-name",
        'metadata.name: "demo.server" is not a DNS-1123 label '
        "(lower case letters, digits and inner dashes, at most 63 characters)",
    ),
    "a Service name of 64 characters": Refused(
        changed(SERVICE, "metadata/name", LONG),
        "OBJ010 invalid-name",
        f'metadata.name: "{LONG}" is not a DNS-1123 label '
        "(lower case letters, digits and inner dashes, at most 63 characters)",
    ),
    "a StatefulSet name with a dot": Refused(
        changed(STATEFUL_SET, "metadata/name", "demo.server"),
        "OBJ010 invalid-name",
        'metadata.name: "demo.server" is not a DNS-1123 label '
        "(lower case letters, digits and inner dashes, at most 63 characters)",
    ),
    "a CronJob name that leaves no room for its Jobs": Refused(
        changed(CRON_JOB, "metadata/name", "a" * 53),
        "OBJ010 invalid-name",
        f'metadata.name: "{"a" * 53}" is not a CronJob name '
        "(lower case letters, digits, inner dashes and dots, at most 52 characters)",
    ),
    "a Role name with a slash": Refused(
        changed(ROLE, "metadata/name", "demo/reader"),
        "OBJ010 invalid-name",
        'metadata.name: "demo/reader" is not a path segment (neither "/" nor "%", at most 65536 characters)',
    ),
    "a container name with a dot": Refused(
        changed(DEPLOYMENT, f"{_C}name", "vllm.server"),
        "OBJ010 invalid-name",
        f'{_AT}.name: "vllm.server" is not a DNS-1123 label '
        "(lower case letters, digits and inner dashes, at most 63 characters)",
    ),
    "a container port name of 16 characters": Refused(
        changed(DEPLOYMENT, f"{_C}ports/0/name", "kv-transfer-port"),
        "OBJ010 invalid-name",
        f'{_AT}.ports[0].name: "kv-transfer-port" is not a port name '
        "(lower case letters, digits and single inner dashes, at least one letter, at most 15 characters)",
    ),
    "a probe of a port name that none can have": Refused(
        changed(DEPLOYMENT, f"{_C}startupProbe/httpGet/port", "8000"),
        "OBJ010 invalid-name",
        f'{_AT}.startupProbe.httpGet.port: "8000" is not a port name '
        "(lower case letters, digits and single inner dashes, at least one letter, at most 15 characters)",
    ),
    "a label value with a space": Refused(
        changed(DEPLOYMENT, "metadata/labels/owner", "ML platform"),
        "OBJ011 invalid-label",
        'metadata.labels.owner: "ML platform" is not a label value '
        "(letters, digits and inner dashes, underscores and dots, at most 63 characters)",
    ),
    "a label value of 64 characters in a pod template": Refused(
        changed(DEPLOYMENT, "spec/template/metadata/labels/model", LONG),
        "OBJ011 invalid-label",
        f'spec.template.metadata.labels.model: "{LONG}" is not a label value '
        "(letters, digits and inner dashes, underscores and dots, at most 63 characters)",
    ),
    "a label key with two slashes": Refused(
        changed(DEPLOYMENT, "metadata/labels/a~b~c", "x"),
        "OBJ011 invalid-label",
        'metadata.labels["a/b/c"]: not a key (an optional DNS subdomain and "/", then '
        "letters, digits and inner dashes, underscores and dots, at most 63 characters)",
    ),
    "an annotation key that ends in a dash": Refused(
        changed(DEPLOYMENT, "metadata/annotations", {"note-": "x"}),
        "OBJ011 invalid-label",
        'metadata.annotations.note-: not a key (an optional DNS subdomain and "/", then '
        "letters, digits and inner dashes, underscores and dots, at most 63 characters)",
    ),
    "a node selector value with a space": Refused(
        changed(DEPLOYMENT, "spec/template/spec/nodeSelector", {"nvidia.com/gpu.product": "NVIDIA H100"}),
        "OBJ011 invalid-label",
        'spec.template.spec.nodeSelector["nvidia.com/gpu.product"]: "NVIDIA H100" is not a label value '
        "(letters, digits and inner dashes, underscores and dots, at most 63 characters)",
    ),
    "a selector of other labels than the pods have": Refused(
        changed(DEPLOYMENT, "spec/selector/matchLabels/app.kubernetes.io~name", "vllm"),
        "OBJ012 selector-mismatch",
        'spec.template.metadata.labels["app.kubernetes.io/name"]: "vllm-base", but '
        'the selector asks for "vllm"',
    ),
    "a selector of a label that the pods lack": Refused(
        changed(STATEFUL_SET, "spec/selector/matchLabels/role", "decode"),
        "OBJ012 selector-mismatch",
        'spec.template.metadata.labels.role: missing, but the selector asks for "decode"',
    ),
    "an empty selector": Refused(
        changed(DEPLOYMENT, "spec/selector", {}),
        "OBJ012 selector-mismatch",
        "spec.selector: selects nothing",
        "set matchLabels to labels of the pod template",
    ),
    "a quantity in bytes": Refused(
        changed(DEPLOYMENT, f"{_C}resources/limits/memory", "80GB"),
        "OBJ013 invalid-quantity",
        f'{_AT}.resources.limits.memory: "80GB" is not a quantity such as 500m, 2, 40G or 16Gi',
    ),
    "a quantity of a volume with a space": Refused(
        changed(DEPLOYMENT, "spec/template/spec/volumes/0/emptyDir/sizeLimit", "10 Gi"),
        "OBJ013 invalid-quantity",
        'spec.template.spec.volumes[0].emptyDir.sizeLimit: "10 Gi" is not a quantity '
        "such as 500m, 2, 40G or 16Gi",
    ),
    "an environment variable twice": Refused(
        changed(
            DEPLOYMENT, f"{_C}env", [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}]
        ),
        "OBJ014 duplicate-entry",
        f'{_AT}.env[2]: repeats entry 0 (name "A")',
        "keep one of the two",
    ),
    "a mount path twice": Refused(
        changed(DEPLOYMENT, f"{_C}volumeMounts", 2 * [{"name": "cache", "mountPath": "/cache"}]),
        "OBJ014 duplicate-entry",
        f'{_AT}.volumeMounts[1]: repeats entry 0 (mountPath "/cache")',
        "keep one of the two",
    ),
    "a port name twice": Refused(
        changed(DEPLOYMENT, f"{_C}ports", [{"name": "http", "containerPort": port} for port in (8000, 8001)]),
        "OBJ014 duplicate-entry",
        f'{_AT}.ports[1]: repeats entry 0 (name "http")',
        "keep one of the two",
    ),
    "a Service port twice": Refused(
        changed(SERVICE, "spec/ports", [{"name": name, "port": 80, "protocol": "TCP"} for name in "ab"]),
        "OBJ014 duplicate-entry",
        'spec.ports[1]: repeats entry 0 (port 80, protocol "TCP")',
        "keep one of the two",
    ),
    "a GPU requested and not limited": Refused(
        changed(DEPLOYMENT, f"{_C}resources", {"requests": {"nvidia.com/gpu": 1}}),
        "OBJ015 invalid-resources",
        f'{_AT}.resources.limits["nvidia.com/gpu"]: missing, but 1 is requested',
        "set it to 1",
    ),
    "fewer GPUs requested than the limit": Refused(
        changed(DEPLOYMENT, f"{_C}resources/limits/nvidia.com~gpu", 2),
        "OBJ015 invalid-resources",
        f'{_AT}.resources.requests["nvidia.com/gpu"]: 1 is not the limit of 2',
        "set both to the same number",
    ),
    "half a GPU": Refused(
        changed(DEPLOYMENT, f"{_C}resources", {"limits": {"nvidia.com/gpu": "500m"}}),
        "OBJ015 invalid-resources",
        f'{_AT}.resources.limits["nvidia.com/gpu"]: 500m is not a whole number of devices',
    ),
    "a request over its limit": Refused(
        changed(DEPLOYMENT, f"{_C}resources/requests/memory", "41Gi"),
        "OBJ015 invalid-resources",
        f"{_AT}.resources.requests.memory: 41Gi is over the limit of 40Gi",
    ),
    "a mount of no volume": Refused(
        changed(DEPLOYMENT, f"{_C}volumeMounts/0/name", "models"),
        "OBJ016 unknown-volume",
        f'{_AT}.volumeMounts[0].name: "models" is not a volume of the pod',
    ),
    "a mount of no volume or claim": Refused(
        changed(STATEFUL_SET, f"{_C}volumeMounts/0/name", "models"),
        "OBJ016 unknown-volume",
        f'{_AT}.volumeMounts[0].name: "models" is not a volume of the pod',
    ),
    "a volume with two sources": Refused(
        changed(DEPLOYMENT, "spec/template/spec/volumes/0/hostPath", {"path": "/models"}),
        "OBJ017 no-single-choice",
        "spec.template.spec.volumes[0]: emptyDir and hostPath exclude each other",
        "keep one of them",
    ),
    "a variable with a value and a source": Refused(
        changed(DEPLOYMENT, f"{_C}env/0/valueFrom", {"fieldRef": {"fieldPath": "metadata.name"}}),
        "OBJ017 no-single-choice",
        f"{_AT}.env[0]: value and valueFrom exclude each other",
        "keep one of them",
    ),
    "a probe that probes nothing": Refused(
        changed(DEPLOYMENT, f"{_C}startupProbe", {"periodSeconds": 10}),
        "OBJ017 no-single-choice",
        f"{_AT}.startupProbe: needs one of exec, grpc, httpGet, tcpSocket",
    ),
    "a hook that does nothing": Refused(
        changed(DEPLOYMENT, f"{_C}lifecycle", {"preStop": {}}),
        "OBJ017 no-single-choice",
        f"{_AT}.lifecycle.preStop: needs one of exec, httpGet, sleep, tcpSocket",
    ),
    "a rolling update of a Deployment that recreates": Refused(
        changed(DEPLOYMENT, "spec/strategy/type", "Recreate"),
        "OBJ018 invalid-rollout",
        "spec.strategy.rollingUpdate: given beside type Recreate",
        "set rollingUpdate to null",
    ),
    "a rolling update that may neither add nor remove a pod": Refused(
        changed(DEPLOYMENT, "spec/strategy/rollingUpdate/maxUnavailable", "0%"),
        "OBJ018 invalid-rollout",
        "spec.strategy.rollingUpdate: maxSurge and maxUnavailable are both 0",
        "set one of them to 1",
    ),
}
