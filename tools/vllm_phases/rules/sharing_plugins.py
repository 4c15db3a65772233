"""SHR: cards that NVIDIA's device plugin or dynamic resource allocation divides: MIG, time slices, MPS, claims."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Severity
from vllm_phases.model import Engine, Object, Pod
from vllm_phases.model.card import choices
from vllm_phases.model.gpu import gpu_request
from vllm_phases.model.sharing import is_mig, memory_share, time_shared
from vllm_phases.rules.registry import Context, Problem, rule
from vllm_phases.sources.document import embedded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Node, Release

_MIG = re.compile(r"nvidia\.com/mig-(?P<profile>\d+g\.\d+gb)(\..+)?")
_HALF = 0.5
_NUMBER = re.compile(r"\d+(\.\d+)?")
_SCALING = re.compile(r"device(?P<what>memory|core)scaling", re.IGNORECASE)


@rule("SHR023", "parallel-over-mig", Severity.ERROR, scope=Engine)
def parallel_over_mig(engine: Engine, context: Context) -> Iterator[Problem]:
    """Tensor parallelism over MIG instances.

    Why:
        MIG instances have neither NVLink nor peer access nor CUDA IPC between them, and a process sees one of
        them only.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-32B, --tensor-parallel-size=2]
        resources: {limits: {nvidia.com/mig-3g.40gb: 2}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-32B, --tensor-parallel-size=2]
        resources: {limits: {nvidia.com/gpu: 2}}
        ```

    References:
        - https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
    """
    where = engine.arguments.last("tensor-parallel-size")
    size = engine.number("tensor-parallel-size")
    if where is not None and size is not None and size > 1 and is_mig(engine.pod, engine.gpu):
        message = f"tensor-parallel-size is {size}, but MIG instances cannot work together"
        yield Problem(where, message, "Set 1 and take one larger instance, or use whole cards.")


@rule("SHR024", "unknown-mig-profile", Severity.ERROR, scope=Pod)
def unknown_mig_profile(pod: Pod, context: Context) -> Iterator[Problem]:
    """A MIG profile that the card does not have.

    Why:
        No node offers the resource, so the pod stays Pending.

    Bad:
        ```yaml
        nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/mig-3g.71gb: 1}}
        ```
        ```yaml
        resources: {limits: {nvidia.com/mig-5g.40gb: 1}}
        ```

    Good:
        ```yaml
        nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/mig-3g.71gb: 1}}
        ```
        ```yaml
        resources: {limits: {nvidia.com/mig-1g.10gb.me: 1}}
        ```

    References:
        - https://github.com/NVIDIA/mig-parted, deployments/systemd/config-default.yaml
        - catalogue/data/gpu_cards.yaml, catalogue/data/mig_profiles.yaml
    """
    every = {profile for entry in context.facts("gpu_cards").values() for profile in entry["mig"] or ()}
    every |= {profile for entry in context.facts("mig_profiles").values() for profile in entry["profiles"]}
    for name, node in _limits(pod):
        if not (match := _MIG.fullmatch(name)):
            continue
        for choice in choices(pod):
            if choice.cards and not any(match["profile"] in card.mig for card in choice.cards):
                message = f"{' or '.join(choice.names)} has no MIG profile {match['profile']}"
                known = sorted({profile for card in choice.cards for profile in card.mig})
                yield Problem(node, message, f"Ask for one of {', '.join(known) or 'the whole card'}.")
        if match["profile"] not in every:
            message = f"no card that is known has the MIG profile {match['profile']}"
            fix = "Look the profile up with nvidia-smi mig -lgip."
            yield Problem(node, message, fix, Severity.WARNING)


@rule("SHR025", "mig-with-hami-share", Severity.WARNING, scope=Pod)
def mig_with_hami_share(pod: Pod, context: Context) -> Iterator[Problem]:
    """A MIG resource of NVIDIA's plugin beside a share of HAMi's.

    Why:
        Two plugins would each choose a card. HAMi makes MIG instances itself when the pod asks for gpumem and
        has the annotation nvidia.com/vgpu-mode: mig.

    Bad:
        ```yaml
        resources: {limits: {nvidia.com/mig-3g.40gb: 1, nvidia.com/gpumem: 40000}}
        ```

    Good:
        ```yaml
        metadata: {annotations: {nvidia.com/vgpu-mode: mig}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args: [Qwen/Qwen3-8B]
              resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    References:
        - https://project-hami.io/docs/userguide/nvidia-device/dynamic-mig-support
    """
    for container in pod.containers if pod.platform == "kubernetes" else ():
        mig = [node for name, node in container.limits().items() if _MIG.fullmatch(name)]
        if mig and gpu_request(pod, container).shares:
            message = "a MIG resource stands beside a share of HAMi's, which chooses cards by itself"
            fix = "Keep one of them; for MIG by HAMi, gpumem and the annotation nvidia.com/vgpu-mode: mig."
            yield Problem(mig[0], message, fix)


@rule("SHR026", "time-slice-takes-all", Severity.WARNING, scope=Engine)
def time_slice_takes_all(engine: Engine, context: Context) -> Iterator[Problem]:
    """An engine on a time-sliced or MPS card that takes more than half of its memory.

    Why:
        Time slices do not divide memory: --gpu-memory-utilization is a part of the whole card, and the second
        engine on it fails with "Free memory on device is less than desired". Two that start at once also
        count each other's weights as their own, unless the size of the cache is given.

    Bad:
        ```yaml
        resources: {limits: {nvidia.com/gpu.shared: 1}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --gpu-memory-utilization=0.45, --kv-cache-memory-bytes=8G]
        resources: {limits: {nvidia.com/gpu.shared: 1}}
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/55827
        - https://github.com/NVIDIA/k8s-device-plugin#with-cuda-time-slicing
    """
    shared = time_shared(engine.pod, engine.gpu)
    where, share = engine.arguments.last("gpu-memory-utilization"), memory_share(engine)
    if shared is not None and share is not None and share > _HALF:
        default = "" if where else " by default"
        message = (
            f"--gpu-memory-utilization is {share:g}{default} of the whole card, which {shared[0]} shares"
        )
        fix = "Set about 0.9 divided by the engines of a card, and --kv-cache-memory-bytes."
        yield Problem(where or shared[1], message, fix)


@rule("SHR027", "several-time-slices", Severity.WARNING, scope=Engine)
def several_time_slices(engine: Engine, context: Context) -> Iterator[Problem]:
    """More than one time slice for one container.

    Why:
        Several slices may be of one card and give no more of it; the plugin refuses them with
        failRequestsGreaterThanOne, and MPS always does.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-32B, --tensor-parallel-size=2]
        resources: {limits: {nvidia.com/gpu.shared: 2}}
        ```

    Good:
        ```yaml
        resources: {limits: {nvidia.com/gpu.shared: 1}}
        ```

    References:
        - https://github.com/NVIDIA/k8s-device-plugin#with-cuda-mps
    """
    shared = time_shared(engine.pod, engine.gpu)
    if shared is not None and engine.gpu.count is not None and engine.gpu.count > 1:
        refused = shared[0] == "MPS"
        what = "are refused" if refused else "may be of the same card"
        message = f"{engine.gpu.count} {'shares' if refused else 'time slices'} for one container {what}"
        fix = "Ask for 1; for several cards, use nodes that do not share them."
        yield Problem(engine.gpu.node, message, fix, Severity.ERROR if refused else None)


@rule("SHR028", "shm-over-mps", Severity.WARNING, scope=Engine)
def shm_over_mps(engine: Engine, context: Context) -> Iterator[Problem]:
    """A volume at /dev/shm where MPS puts its own.

    Why:
        The device plugin mounts the shared memory of the MPS daemon at /dev/shm; with another one there,
        clients do not reach the daemon.

    Bad:
        ```yaml
        nodeSelector: {nvidia.com/mps.capable: 'true'}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --gpu-memory-utilization=0.45]
            resources: {limits: {nvidia.com/gpu: 1}}
            volumeMounts: [{name: shm, mountPath: /dev/shm}]
        volumes: [{name: shm, emptyDir: {medium: Memory}}]
        ```

    Good:
        ```yaml
        nodeSelector: {nvidia.com/mps.capable: 'true'}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --gpu-memory-utilization=0.45]
            resources: {limits: {nvidia.com/gpu: 1}}
        ```

    References:
        - NVIDIA/k8s-device-plugin v0.20.0, internal/plugin/mps.go
    """
    shared = time_shared(engine.pod, engine.gpu)
    if shared is not None and shared[0] == "MPS":
        for mount in engine.container.mounts:
            if mount.path.rstrip("/") == "/dev/shm":
                message = "a volume is mounted at /dev/shm, where MPS has the memory of its daemon"
                yield Problem(mount, message, "Remove the mount.")


@rule("SHR029", "card-for-a-helper", Severity.WARNING, scope=Pod)
def card_for_a_helper(pod: Pod, context: Context) -> Iterator[Problem]:
    """A GPU for a container beside the engine that does not compute.

    Why:
        Routing sidecars and containers that download a model need none. The card stays idle, or the pod
        waits for one more than there is.

    Bad:
        ```yaml
        initContainers:
          - name: download
            image: vllm/vllm-openai:v0.33.0
            command: [hf, download, Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/gpu: 1}}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/gpu: 1}}
        ```

    Good:
        ```yaml
        initContainers:
          - name: download
            image: vllm/vllm-openai:v0.33.0
            command: [hf, download, Qwen/Qwen3-8B]
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/gpu: 1}}
        ```

    References:
        - https://github.com/llm-d-incubation/llm-d-modelservice/issues/176
        - HAMi v2.10.0, pkg/device (init containers count, native sidecars as if they ended)
    """
    if pod.platform != "kubernetes" or not (serving := _serving(pod, context)):
        return
    helpers = _helpers(context.release)
    for container in pod.containers:
        request = gpu_request(pod, container)
        idle = container.init or id(container) in helpers
        if idle and id(container) not in serving and request.count and request.resource:
            message = (
                f"container {container.name} asks for {request.count} {request.resource}, but runs no engine"
            )
            yield Problem(request.node, message, "Remove the GPU from its resources.")


@rule("SHR030", "memory-promised-twice", Severity.WARNING, scope=Object)
def memory_promised_twice(found: Object, context: Context) -> Iterator[Problem]:
    """HAMi set up to give away more memory, or more cores, than a card has.

    Why:
        vLLM takes its memory at the start and keeps it, and HAMi-core has no way to host memory: the last
        engine on the card dies out of memory. With deviceCoreScaling a card is never taken for exclusive.

    Bad:
        ```yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: hami-scheduler-device}
        data:
          device-config.yaml: |
            nvidia:
              deviceMemoryScaling: 1.5
        ```

    Good:
        ```yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: hami-scheduler-device}
        data:
          device-config.yaml: |
            nvidia:
              deviceMemoryScaling: 1
        ```

    References:
        - https://github.com/Project-HAMi/HAMi/issues/2630
        - HAMi v2.10.0, charts/hami/templates/scheduler/device-configmap.yaml
    """
    for node in _config_files(found, "scaling"):
        for key, value in _leaves(node):
            match = _SCALING.fullmatch(key)
            factor = float(value.text()) if match and _NUMBER.fullmatch(value.text()) else 0
            if match and factor > 1:
                what = "memory" if match["what"].lower() == "memory" else "cores"
                message = f"{key} is {factor:g}: HAMi promises more {what} than the card has"
                yield Problem(value, message, "Set 1.")


@rule("SHR031", "plugin-shares-twice", Severity.ERROR, scope=Object)
def plugin_shares_twice(found: Object, context: Context) -> Iterator[Problem]:
    """A configuration of NVIDIA's device plugin with time slices and MPS at once.

    Why:
        The plugin takes one of them for a node and does not start with both.

    Bad:
        ```yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: plugin}
        data:
          shared: |
            version: v1
            sharing:
              timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}
              mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}
        ```

    Good:
        ```yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: plugin}
        data:
          shared: |
            version: v1
            sharing:
              timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}
        ```

    References:
        - https://github.com/NVIDIA/k8s-device-plugin#shared-access-to-gpus
    """
    for node in _config_files(found, "sharing"):
        sharing = node.at("sharing")
        if sharing.at("timeSlicing", "resources").value and sharing.at("mps", "resources").value:
            message = "sharing has both timeSlicing and mps, of which the device plugin takes only one"
            yield Problem(
                sharing.at("mps"), message, "Remove one; write two configurations for two groups of nodes."
            )


@rule("SHR032", "unknown-claim", Severity.ERROR, scope=Pod)
def unknown_claim(pod: Pod, context: Context) -> Iterator[Problem]:
    """A container with a claim that its pod does not have.

    Why:
        The API server refuses the pod.

    Bad:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {claims: [{name: gpu}]}
        ```

    Good:
        ```yaml
        resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {claims: [{name: gpu}]}
        ```

    References:
        - https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/
    """
    names = {claim.text("name") for claim in pod.spec.items("resourceClaims")}
    for container in pod.containers if pod.platform == "kubernetes" else ():
        for claim in container.node.items("resources", "claims"):
            if claim.text("name") not in names:
                message = f"claim {claim.text('name')!r} is not among resourceClaims of the pod"
                yield Problem(claim, message, "Add it to resourceClaims, with a ResourceClaimTemplate.")


@rule("SHR033", "claim-of-all-replicas", Severity.WARNING, scope=Engine)
def claim_of_all_replicas(engine: Engine, context: Context) -> Iterator[Problem]:
    """One ResourceClaim for several replicas.

    Why:
        A claim that is named, not made from a template, is one allocation: all replicas get the same card, and
        together they must fit into its memory.

    Bad:
        ```yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: chat}
        spec:
          replicas: 2
          selector: {matchLabels: {app: chat}}
          template:
            metadata: {labels: {app: chat}}
            spec:
              resourceClaims: [{name: gpu, resourceClaimName: the-gpu}]
              containers:
                - name: vllm
                  image: vllm/vllm-openai:v0.33.0
                  args: [Qwen/Qwen3-8B]
                  resources: {claims: [{name: gpu}]}
        ```

    Good:
        ```yaml
        resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {claims: [{name: gpu}]}
        ```

    References:
        - https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/
    """
    replicas, share = engine.pod.replicas, memory_share(engine)
    if not replicas or share is None or replicas * share <= 1:
        return
    used = {claim.text("name") for claim in engine.gpu.claims}
    for claim in engine.pod.spec.items("resourceClaims"):
        if replicas > 1 and claim.text("name") in used and claim.text("resourceClaimName"):
            message = f"{replicas} replicas share the GPU of claim {claim.text('resourceClaimName')}, "
            message += f"and each takes {share:g} of it"
            fix = "Use resourceClaimTemplateName, or a share that fits as often as there are replicas."
            yield Problem(claim, message, fix)


@rule("SHR034", "claim-before-kubernetes", Severity.WARNING, scope=Object)
def claim_before_kubernetes(found: Object, context: Context) -> Iterator[Problem]:
    """A claim that the Kubernetes release can only serve with a feature gate.

    Why:
        Claims of a part of a device, as HAMi's, need DRAConsumableCapacity, which is on by default from 1.36
        on. An API version that the release does not serve is told as OBJ003.

    Bad:
        ```yaml
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        metadata: {name: half-gpu}
        spec:
          spec:
            devices:
              requests:
                - name: gpu
                  exactly:
                    deviceClassName: hami-core-gpu.project-hami.io
                    capacity: {requests: {memory: 40Gi}}
        ```

    Good:
        ```yaml
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        metadata: {name: one-gpu}
        spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
        ```

    References:
        - https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/
        - catalogue/data/dra.yaml
    """
    if found.group != "resource.k8s.io":
        return
    facts, here = context.facts("dra"), _minor(context.kube_version)
    for node in _requests(found):
        partial = node.at("exactly", "capacity") or node.at("capacity")
        if partial and here < _minor(facts["consumableCapacity"]["since"]):
            message = f"a part of a device is claimed, which Kubernetes {context.kube_version} leaves off"
            fix = f"Turn DRAConsumableCapacity on, or use {facts['consumableCapacity']['since']} or later."
            yield Problem(partial, message, fix)


def _requests(claim: Object) -> Iterator[Node]:
    for spec in (("spec",), ("spec", "spec")):
        yield from claim.node.items(*spec, "devices", "requests")


def _limits(pod: Pod) -> Iterator[tuple[str, Node]]:
    for container in pod.containers if pod.platform == "kubernetes" else ():
        yield from container.limits().items()


@lru_cache(maxsize=4)
def _helpers(release: Release) -> frozenset[int]:
    """The containers of routing sidecars, pickers and routers."""
    return frozenset(id(component.container) for component in release.components)


def _serving(pod: Pod, context: Context) -> set[int]:
    """The containers of a pod that run an engine."""
    from vllm_phases.model import relations

    return {id(engine.container) for engine in relations.engines_in(context.release, pod)}


def _config_files(found: Object, word: str) -> Iterator[Node]:
    """The YAML documents in a ConfigMap that have a word in them."""
    for _, node in found.node.entries("data") if found.kind == "ConfigMap" else ():
        if word in str(node.value).lower() and (root := embedded(node)) is not None:
            yield root


def _leaves(node: Node) -> Iterator[tuple[str, Node]]:
    """Key and node of every scalar below."""
    value: Any = node.value
    for key, below in node.entries() if isinstance(value, dict) else ():
        yield from _leaves(below) if isinstance(below.value, dict | list) else ((key, below),)
    for item in node.items():
        yield from _leaves(item)


def _minor(version: str) -> tuple[int, int]:
    numbers = [*map(int, re.findall(r"\d+", version)), 0, 0]
    return numbers[0], numbers[1]
