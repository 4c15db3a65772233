"""SHR: what pods ask of HAMi, as resources and as annotations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Pod
from vllm_phases.model.card import choices
from vllm_phases.model.gpu import gpu_request
from vllm_phases.rules.registry import Context, Problem, rule
from vllm_phases.sources.changes import Set
from vllm_phases.sources.repair import Repair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Container, GpuRequest

_QUANTITY = re.compile(r"(\d+)([kMGTPE]?)")
_MEBIBYTES = re.compile(r"\d+(\.\d+)?\s*([KMGTP]i?B?|[kmgtp]i?b?)")
_POWERS = {letter: 1000**power for power, letter in enumerate(("", "k", "M", "G", "T", "P", "E"))}
_FULL = 100
# Kinds whose pods do not get the annotations of the object itself.
_WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob")
_GPU_POLICY, _NODE_POLICY = "hami.io/gpu-scheduler-policy", "hami.io/node-scheduler-policy"
_MODE, _WEIGHTS = "nvidia.com/vgpu-mode", "hami.io/device-scoring-weights"


def _requests(pod: Pod) -> Iterator[tuple[Container, GpuRequest]]:
    """The containers of a pod that ask for a share of HAMi's."""
    if pod.platform == "kubernetes":
        for container in pod.containers:
            request = gpu_request(pod, container)
            if request.shares:
                yield container, request


def _ignored(pod: Pod) -> bool:
    """Whether HAMi's webhook leaves the pod alone."""
    return pod.labels.get("hami.io/webhook") == "ignore"


@rule("SHR001", "share-as-annotation", Severity.ERROR, scope=Pod)
def share_as_annotation(pod: Pod, context: Context) -> Iterator[Problem]:
    """A share of a GPU that is written as an annotation.

    Why:
        HAMi reads memory and cores from resources.limits only. The pod takes the whole card, and the next one
        stays Pending with CardInsufficientMemory.

    Bad:
        ```yaml
        metadata: {annotations: {nvidia.com/gpumem: '36000'}}
        spec:
          schedulerName: hami-scheduler
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B]
              resources: {limits: {nvidia.com/gpu: '1'}}
        ```

    Good:
        ```yaml
        metadata: {annotations: {hami.io/gpu-scheduler-policy: binpack, nvidia.com/use-gputype: H100}}
        spec:
          schedulerName: hami-scheduler
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B]
              resources: {limits: {nvidia.com/gpu: '1', nvidia.com/gpumem: '36000'}}
        ```

    References:
        - https://github.com/Project-HAMi/HAMi/issues/2862
    """
    if pod.owner is None:
        return
    limited = {name for container in pod.containers for name in container.limits()}
    nodes = [pod.metadata, pod.owner.node.at("metadata")]
    for metadata in nodes if nodes[0].path != nodes[1].path else nodes[:1]:
        for name, node in metadata.entries("annotations"):
            if name in context.facts("hami")["resources"]["names"]:
                message = f"{name} is an annotation, which HAMi does not read"
                known = Severity.WARNING if name in limited else None
                fix = f"Write {name} into resources.limits of the container and remove the annotation."
                yield Problem(node, message, fix, known)


@rule("SHR002", "share-not-in-mebibytes", Severity.ERROR, scope=Pod, fix="writes GiB as MiB.")
def share_not_in_mebibytes(pod: Pod, context: Context) -> Iterator[Problem]:
    """An amount of GPU memory with a unit, or one that no card has.

    Why:
        nvidia.com/gpumem is a plain number of MiB. "40Gi" is 42949672960 of them: HAMi drops the request, and
        the pod runs without any limit; "16Mi" waits for a card of 16 TiB.

    Bad:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40Gi}}
        ```
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 16Mi}}
        ```

    Good:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40k}}
        ```

    References:
        - https://github.com/Project-HAMi/HAMi/issues/2284
        - HAMi v2.10.0, pkg/device/nvidia/device.go
    """
    largest = context.facts("hami")["largest"]["memory"]
    for _, request in _requests(pod):
        node = request.shares.get("gpumem")
        text = node.text() if node else ""
        plain = _QUANTITY.fullmatch(text)
        too_much = plain is not None and int(plain[1]) * _POWERS[plain[2]] > largest
        if node is not None and (too_much or (plain is None and _MEBIBYTES.fullmatch(text))):
            message = f"nvidia.com/gpumem is {text!r}, but counts MiB, of which no card has so many"
            gib = re.fullmatch(r"(\d{1,3})Gi", text)
            repair = Repair((Set(node, int(gib[1]) * 1024),)) if gib else None
            fix = "Give a whole number of MiB without a unit, such as 40000."
            yield Problem(node, message, fix, repair=repair)


@rule("SHR003", "share-given-twice", Severity.WARNING, scope=Pod)
def share_given_twice(pod: Pod, context: Context) -> Iterator[Problem]:
    """GPU memory as MiB and as a percentage at once.

    Why:
        HAMi's scheduler takes gpumem, its scores and its webhook the percentage: a percentage of 100 makes
        the card exclusive although gpumem asks for a slice.

    Bad:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000, nvidia.com/gpumem-percentage: 50}}
        ```

    Good:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 50}}
        ```

    References:
        - HAMi v2.10.0, pkg/device/nvidia/device.go
    """
    for _, request in _requests(pod):
        if {"gpumem", "gpumem-percentage"} <= request.shares.keys():
            node = request.shares["gpumem-percentage"]
            message = (
                "nvidia.com/gpumem-percentage stands beside nvidia.com/gpumem, of which only one may be set"
            )
            yield Problem(node, message, "Remove one of the two.")


@rule("SHR004", "percentage-out-of-range", Severity.ERROR, scope=Pod)
def percentage_out_of_range(pod: Pod, context: Context) -> Iterator[Problem]:
    """A share in percent that is no number from 0 to 100.

    Why:
        HAMi's webhook refuses such a share of memory; of the cores it takes what is over 100 for 100, which
        is the whole card.

    Bad:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 150}}
        ```

    Good:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 50, nvidia.com/gpucores: 100}}
        ```

    References:
        - HAMi v2.10.0, pkg/scheduler/webhook.go
    """
    weight = {"gpumem-percentage": None, "gpucores": Severity.WARNING}
    for _, request in _requests(pod):
        for name, severity in weight.items():
            node = request.shares.get(name)
            number = node.number() if node is not None else None
            if node is not None and number is not None and not 0 <= number <= _FULL:
                message = f"nvidia.com/{name} is {number}, which is no percentage"
                yield Problem(node, message, "Set a number from 1 to 100.", severity)


@rule("SHR005", "share-without-hami-scheduler", Severity.WARNING, scope=Pod)
def share_without_hami_scheduler(pod: Pod, context: Context) -> Iterator[Problem]:
    """A share of HAMi's in a pod that does not name HAMi's scheduler.

    Why:
        HAMi's webhook changes schedulerName, but only as long as it answers (its failurePolicy is Ignore) and
        only for pods of the default scheduler without the label hami.io/webhook=ignore. Another scheduler
        finds no nvidia.com/gpumem, or the kubelet refuses the pod with UnexpectedAdmissionError.

    Bad:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    Good:
        ```yaml
        schedulerName: hami-scheduler
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    References:
        - https://github.com/Project-HAMi/HAMi/issues/653
        - HAMi v2.10.0, charts/hami/templates/scheduler/webhook.yaml
    """
    name = context.facts("hami")["scheduler"]["name"]
    given = pod.spec.text("schedulerName")
    shares = [node for _, request in _requests(pod) for node in request.shares.values()]
    if not shares or given == name:
        return
    where = pod.spec.at("schedulerName") if given else shares[0]
    lost = _ignored(pod) and given in ("", "default-scheduler")
    reason = "HAMi's webhook is told to ignore the pod, and " if lost else ""
    who = f"schedulerName is {given}" if given else "no schedulerName is set"
    message = f"{reason}{who}, but only HAMi's scheduler knows nvidia.com/gpumem and its like"
    yield Problem(where, message, f"Set schedulerName: {name}.", Severity.ERROR if lost else None)


@rule("SHR006", "share-on-fixed-node", Severity.ERROR, scope=Pod)
def share_on_fixed_node(pod: Pod, context: Context) -> Iterator[Problem]:
    """A share of HAMi's in a pod with nodeName.

    Why:
        Such a pod passes by every scheduler, so no card is chosen for it; HAMi's webhook refuses it.

    Bad:
        ```yaml
        nodeName: gpu-7
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    Good:
        ```yaml
        nodeSelector: {kubernetes.io/hostname: gpu-7}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    References:
        - HAMi v2.10.0, pkg/scheduler/webhook.go
    """
    if pod.spec.text("nodeName") and any(_requests(pod)):
        message = f"nodeName is {pod.spec.text('nodeName')}, with which HAMi cannot give the pod a card"
        fix = "Use nodeSelector with kubernetes.io/hostname instead."
        yield Problem(pod.spec.at("nodeName"), message, fix)


@rule("SHR007", "share-with-privilege", Severity.ERROR, scope=Pod)
def share_with_privilege(pod: Pod, context: Context) -> Iterator[Problem]:
    """A privileged container in a pod with a share of HAMi's.

    Why:
        It sees every card of the node, so HAMi's webhook refuses the pod, also for a privileged init container.

    Bad:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        securityContext: {privileged: true}
        ```

    Good:
        ```yaml
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000, rdma/ib: 1}}
        securityContext: {capabilities: {add: [IPC_LOCK]}}
        ```

    References:
        - https://github.com/Project-HAMi/HAMi/issues/2138
    """
    if _ignored(pod) or not any(_requests(pod)):
        return
    for container in pod.containers:
        node = container.node.at("securityContext", "privileged")
        if node.value is True:
            message = f"container {container.name} is privileged, with which HAMi refuses the pod"
            fix = "Add the capability IPC_LOCK and ask for an rdma resource instead."
            yield Problem(node, message, fix)


@rule("SHR008", "hami-annotation-misplaced", Severity.ERROR, scope=Pod)
def hami_annotation_misplaced(pod: Pod, context: Context) -> Iterator[Problem]:
    """An annotation for HAMi on the object that makes the pods, not on the pods.

    Why:
        HAMi reads pods. What the Deployment itself carries has no effect, so cards of another type are taken,
        or slices spread over all of them.

    Bad:
        ```yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: decode, annotations: {hami.io/gpu-scheduler-policy: binpack}}
        spec:
          selector: {matchLabels: {app: decode}}
          template:
            metadata: {labels: {app: decode}}
            spec:
              containers:
                - name: vllm
                  image: vllm/vllm-openai:v0.33.0
                  args: [Qwen/Qwen3-8B]
                  resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    Good:
        ```yaml
        metadata: {annotations: {hami.io/gpu-scheduler-policy: binpack}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B]
              resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    References:
        - https://github.com/Project-HAMi/HAMi/issues/882
    """
    if pod.owner is None or pod.owner.kind not in _WORKLOADS:
        return
    for name, node in pod.owner.node.entries("metadata", "annotations"):
        if name in context.facts("hami")["annotations"]["names"] and name not in pod.annotations:
            message = f"{name} stands on the {pod.owner.kind}, but HAMi reads it from the pods"
            yield Problem(node, message, "Move it to spec.template.metadata.annotations.")


@rule("SHR009", "hami-annotation-unknown", Severity.ERROR, scope=Pod)
def hami_annotation_unknown(pod: Pod, context: Context) -> Iterator[Problem]:
    """A value of an annotation that HAMi does not know.

    Why:
        No device has the mode "mps", so the pod waits for ever with CardTypeMismatch. Weights that are not
        complete stop the scheduling of the pod; an unknown policy is not followed.

    Bad:
        ```yaml
        metadata: {annotations: {nvidia.com/vgpu-mode: mps}}
        spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}
        ```
        ```yaml
        metadata: {annotations: {hami.io/gpu-scheduler-policy: bin-pack}}
        spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}
        ```

    Good:
        ```yaml
        metadata:
          annotations:
            nvidia.com/vgpu-mode: hami-core,mig
            hami.io/gpu-scheduler-policy: mutex,binpack
            hami.io/device-scoring-weights: slot=1,core=1,memory=3
        spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}
        ```

    References:
        - https://github.com/Project-HAMi/HAMi/issues/759
        - HAMi v2.10.0, pkg/device/nvidia/device.go and pkg/scheduler/policy
    """
    facts = context.facts("hami")
    given = pod.metadata.entries("annotations") if pod.owner else ()
    nodes = {name: node for name, node in given if "{{" not in node.text()}
    for name, known in ((_GPU_POLICY, "gpuPolicies"), (_NODE_POLICY, "nodePolicies")):
        names = facts[known]["names"]
        if name in nodes and {part.strip() for part in nodes[name].text().split(",")} - {*names}:
            message = f"{name} is {nodes[name].text()!r}, which HAMi does not know"
            yield Problem(nodes[name], message, f"Set one of {', '.join(names)}.", Severity.WARNING)
    modes = facts["modes"]["names"]
    if _MODE in nodes and not any(mode in nodes[_MODE].text() for mode in modes):
        message = f"{_MODE} is {nodes[_MODE].text()!r}, which no device of HAMi's has"
        yield Problem(nodes[_MODE], message, f"Set one of {', '.join(modes)}.")
    if _WEIGHTS in nodes and not _is_weights(nodes[_WEIGHTS].text()):
        message = f"{_WEIGHTS} is {nodes[_WEIGHTS].text()!r}, with which HAMi cannot score a card"
        yield Problem(nodes[_WEIGHTS], message, "Give all three, as in slot=1,core=1,memory=3.")


@rule("SHR010", "slice-larger-than-card", Severity.ERROR, scope=Pod)
def slice_larger_than_card(pod: Pod, context: Context) -> Iterator[Problem]:
    """A slice with more memory than the card that the pod asks for has.

    Why:
        The pod waits for ever with CardInsufficientMemory.

    Bad:
        ```yaml
        metadata: {annotations: {nvidia.com/use-gputype: A100-SXM4-40GB}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B]
              resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 45000}}
        ```

    Good:
        ```yaml
        metadata: {annotations: {nvidia.com/use-gputype: A100}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B]
              resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 45000}}
        ```

    References:
        - HAMi v2.10.0, pkg/device/nvidia/device.go
        - catalogue/data/gpu_cards.yaml
    """
    largest = context.facts("hami")["largest"]["memory"]
    for _, request in _requests(pod):
        node = request.shares.get("gpumem")
        wanted = node.number() if node is not None else None
        for choice in choices(pod):
            memories = [card.memory for card in choice.cards]
            if node is None or wanted is None or wanted > largest or not memories or None in memories:
                continue  # SHR002 tells of what no card has
            most = max(memory for memory in memories if memory)
            if wanted > most:
                names = " or ".join(choice.names)
                message = f"nvidia.com/gpumem is {wanted} MiB, but {names} has {most} at the most"
                yield Problem(node, message, f"Ask for less than {most}, or for a larger card.")


def _is_weights(text: str) -> bool:
    pairs = dict(part.strip().partition("=")[::2] for part in text.split(","))
    return pairs.keys() == {"slot", "core", "memory"} and all(value.isdecimal() for value in pairs.values())
