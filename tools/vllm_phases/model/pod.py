"""Pods: those of Kubernetes objects, and what stands for a pod in other files."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from vllm_phases.model import environment
from vllm_phases.model.container import Container, Mount, Port, image

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.model.environment import ConfigData
    from vllm_phases.model.objects import Object
    from vllm_phases.sources.document import Node

Platform = Literal["kubernetes", "compose", "docker", "shell"]

# Kinds that hold no pods, so that nobody searches through them.
_WITHOUT_PODS = frozenset(
    (
        "ConfigMap", "Secret", "Service", "ServiceAccount", "Role", "RoleBinding", "ClusterRole",
        "ClusterRoleBinding", "CustomResourceDefinition", "HTTPRoute", "Gateway", "InferencePool",
        "NetworkPolicy", "PersistentVolumeClaim", "HorizontalPodAutoscaler", "ServiceMonitor", "PodMonitor",
        "PrometheusRule",
    )
)  # fmt: skip

# Kinds that run their pods as they stand.
_PLAIN = frozenset(
    ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod", "LeaderWorkerSet")
)

# Kinds of KServe, whose controller merges their pods with those of other objects: arguments, variables and
# the service account may stand there. Source: kserve 0.20, pkg/controller/v1alpha2/llmisvc/config_merge.go.
_MERGED = frozenset(
    (
        "LLMInferenceService", "LLMInferenceServiceConfig", "InferenceService", "ServingRuntime",
        "ClusterServingRuntime",
    )
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Pod:
    """A pod, or the template of pods.

    spec, metadata  the nodes of both; of a compose service or a command line its own node, twice
    owner           the object whose template it is; None outside Kubernetes
    group           where a kind has several templates, the key of this one: "leaderTemplate"
    containers      init containers first, in the order of their start
    """

    platform: Platform
    spec: Node
    metadata: Node
    owner: Object | None
    group: str
    containers: tuple[Container, ...]
    volumes: Mapping[str, Node]

    @property
    def name(self) -> str:
        """The owner's name, or the service's."""
        return self.owner.name if self.owner else str(self.spec.path[-1] if self.spec.path else "")

    @property
    def namespace(self) -> str:
        """The owner's namespace, "" where it names none."""
        return self.owner.namespace if self.owner else ""

    @functools.cached_property
    def labels(self) -> dict[str, str]:
        """Labels of the pods."""
        return self.metadata.mapping("labels") if self.platform == "kubernetes" else {}

    @functools.cached_property
    def annotations(self) -> dict[str, str]:
        """Annotations of the pods."""
        return self.metadata.mapping("annotations") if self.platform == "kubernetes" else {}

    @property
    def replicas(self) -> int | None:
        """How many pods, 1 where the owner does not say; of a LeaderWorkerSet, how many groups."""
        if self.owner is None:
            return 1
        given = self.owner.node.at("spec", "replicas")
        return given.number() if given else 1

    @property
    def as_written(self) -> bool:
        """Whether Kubernetes runs it as it stands; other controllers add GPUs, probes and arguments."""
        return self.owner is not None and self.owner.kind in _PLAIN

    @property
    def merged(self) -> bool:
        """Whether its controller merges it with other objects, so that what is absent may yet come."""
        return self.owner is not None and self.owner.kind in _MERGED

    @property
    def grace(self) -> int:
        """terminationGracePeriodSeconds."""
        seconds = self.spec.number("terminationGracePeriodSeconds")
        return 30 if seconds is None else seconds

    def security(self, field: str, container: Container | None = None) -> Node:
        """A field of the container's securityContext, or else of the pod's."""
        own = container.node.at("securityContext", field) if container else None
        return own if own else self.spec.at("securityContext", field)


def pods(owner: Object, config: ConfigData) -> Iterator[Pod]:
    """Every pod of an object: wherever a mapping has a list of containers."""
    if owner.kind in _WITHOUT_PODS:
        return
    for spec, metadata, group in _specs(owner.node):
        containers = tuple(
            _container(node, config, init=field == "initContainers", merged=owner.kind in _MERGED)
            for field in ("initContainers", "containers")
            for node in spec.items(field)
            if isinstance(node.value, dict)
        )
        volumes = {volume.text("name"): volume for volume in spec.items("volumes")}
        yield Pod("kubernetes", spec, metadata, owner, group, containers, volumes)


def _specs(root: Node) -> Iterator[tuple[Node, Node, str]]:
    """Pod specifications below a node, with the metadata beside them and the key of their template."""
    pending: list[tuple[tuple[str | int, ...], Any]] = [(root.path, root.value)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, dict):
            containers = value.get("containers")
            if isinstance(containers, list) and any(isinstance(item, dict) for item in containers):
                yield _spec(root, path)
                continue
            pending.extend(((*path, key), below) for key, below in reversed(value.items()))
        elif isinstance(value, list):
            pending.extend(((*path, index), below) for index, below in reversed(list(enumerate(value))))


def _spec(root: Node, path: tuple[str | int, ...]) -> tuple[Node, Node, str]:
    steps = path[len(root.path) :]
    template = steps[:-1] if steps[-1:] == ("spec",) else steps
    group = next((str(step) for step in reversed(template) if step not in ("template", "spec")), "")
    return root.at(*steps), root.at(*template, "metadata"), group


def _container(node: Node, config: ConfigData, init: bool, merged: bool) -> Container:
    variables, complete = environment.variables(node, config)
    return Container(
        node=node,
        name=node.text("name"),
        image=image(node.text("image"), node.at("image")),
        words=tuple(environment.words(node, variables)),
        has_command=bool(node.at("command").value),
        variables=variables,
        complete=complete and not merged,
        ports=tuple(_port(port) for port in node.items("ports")),
        mounts=tuple(_mount(mount) for mount in node.items("volumeMounts")),
        init=init,
    )


def _port(node: Node) -> Port:
    return Port(node.text("name"), node.number("containerPort"), node.number("hostPort"), node)


def _mount(node: Node) -> Mount:
    read_only = node.at("readOnly").value is True
    return Mount(node.text("name"), node.text("mountPath"), node.text("subPath"), read_only, node)
