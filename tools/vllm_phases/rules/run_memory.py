"""RUN: shared memory between the ranks of an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm_phases.catalogue.store import sort_key
from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.model.engine import is_engine_image
from vllm_phases.model.ranks import world
from vllm_phases.model.sharing import time_shared
from vllm_phases.objects.spelling import amount
from vllm_phases.rules import repairs
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Node

_SHM = "/dev/shm"
_MIB = 2**20
_ANNOTATION = "io.kubernetes.cri-o.ShmSize"


@rule("RUN009", "shm-too-small", Severity.ERROR, scope=Engine)
def shm_too_small(engine: Engine, context: Context) -> Iterator[Problem]:
    """Several ranks with no room for their messages in /dev/shm.

    Why:
        A container has 64 MiB there, the ring buffer of the ranks alone takes 160. From 0.32 on the engine
        says "Insufficient space in /dev/shm" and ends; before, it dies of SIGBUS or NCCL fails.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-32B, --tensor-parallel-size=2]
        resources: {limits: {nvidia.com/gpu: 2}}
        ```
        ```sh
        docker run --gpus all vllm/vllm-openai:v0.33.0 Qwen/Qwen3-32B --tensor-parallel-size 2
        ```

    Good:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-32B, --tensor-parallel-size=2]
            resources: {limits: {nvidia.com/gpu: 2}}
            volumeMounts: [{name: shm, mountPath: /dev/shm}]
        volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 8Gi}}]
        ```
        ```sh
        docker run --gpus all --ipc=host vllm/vllm-openai:v0.33.0 Qwen/Qwen3-32B --tensor-parallel-size 2
        ```
        ```yaml
        args: [Qwen/Qwen3-8B]
        ```

    References:
        - vllm 0.32.0, vllm/distributed/device_communicators/shm_broadcast.py
        - https://github.com/vllm-project/vllm/issues/37982
    """
    facts = context.facts("shared_memory")
    held, ranks = _held(engine, facts["default"]["bytes"]), world(engine)
    served = engine.start is not None or is_engine_image(engine.container.image)
    if not served or held is None or ranks is None or ranks <= 1:
        return
    given = engine.variable("VLLM_MQ_MAX_CHUNK_BYTES_MB") or ""
    chunk = int(given) if given.isdecimal() else facts["ring"]["mebibytes"]
    wanted = chunk * facts["ring"]["chunks"] * _MIB
    size, node = held
    if size < wanted:
        checked = engine.release and sort_key(engine.release.version) >= sort_key(
            facts["ring"]["checkedSince"]
        )
        message = (
            f"/dev/shm holds {size // _MIB} MiB, but {ranks} ranks need {wanted // _MIB} and NCCL some more"
        )
        fix = "Give it a few GiB: in Kubernetes by an emptyDir of medium Memory, in docker by --ipc=host."
        yield Problem(node, message, fix, None if checked else Severity.WARNING)


@rule("RUN010", "shm-beyond-memory", Severity.WARNING, scope=Engine, fix="sets medium: Memory.")
def shm_beyond_memory(engine: Engine, context: Context) -> Iterator[Problem]:
    """A volume at /dev/shm that is on disk, or may grow over the container's memory limit.

    Why:
        What lies in an emptyDir of medium Memory counts as the container's memory: beyond the limit the
        container is killed. Without that medium every message between ranks goes over the disk.

    Bad:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/gpu: 1, memory: 16Gi}}
            volumeMounts: [{name: shm, mountPath: /dev/shm}]
        volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 32Gi}}]
        ```
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            volumeMounts: [{name: shm, mountPath: /dev/shm}]
        volumes: [{name: shm, emptyDir: {}}]
        ```

    Good:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            resources: {limits: {nvidia.com/gpu: 1, memory: 64Gi}}
            volumeMounts: [{name: shm, mountPath: /dev/shm}]
        volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 32Gi}}]
        ```

    References:
        - https://kubernetes.io/docs/concepts/storage/volumes/#emptydir
    """
    empty = _volume(engine).at("emptyDir") if engine.pod.platform == "kubernetes" else None
    if empty is None or empty.value is None:
        return
    if not empty.text("medium"):
        repair = repairs.entry_set(empty, "medium", "Memory")
        yield Problem(empty, "the emptyDir at /dev/shm is on disk", "Set medium: Memory.", repair=repair)
        return
    memory = engine.node.at("resources", "limits", "memory")
    size, limit, given = _bytes(empty.at("sizeLimit")), _bytes(memory), memory.text()
    if size is not None and limit is not None and size > limit:
        message = f"/dev/shm may take {empty.text('sizeLimit')}, but the container has {given} of memory"
        yield Problem(empty.at("sizeLimit"), message, "Raise limits.memory or lower sizeLimit.")


def _held(engine: Engine, default: int) -> tuple[int, Node] | None:
    """Bytes of /dev/shm and what says so; None where there is no bound, or none is known."""
    pod, node = engine.pod, engine.node
    if pod.platform == "compose":
        if node.text("ipc") not in ("", "private") or _mounted(engine):
            return None
        return (size, node.at("shm_size")) if (size := _bytes(node.at("shm_size"))) else (default, node)
    if pod.platform == "docker":
        options = engine.container.options
        bound = options is None or {"ipc", "shm-size", "tmpfs", "mount"} & {
            one.name for one in options.options
        }
        return None if bound or _mounted(engine) else (default, node)
    shared = time_shared(pod, engine.gpu)
    if pod.platform == "shell" or pod.spec.at("hostIPC").value is True or _ANNOTATION in pod.annotations:
        return None
    if not _mounted(engine):
        return None if shared is not None and shared[0] == "MPS" else (default, node.at("volumeMounts"))
    limit = _volume(engine).at("emptyDir", "sizeLimit")
    size = _bytes(limit)
    return (size, limit) if size is not None else None


def _mounted(engine: Engine) -> bool:
    return any(mount.path.rstrip("/") == _SHM for mount in engine.container.mounts)


def _volume(engine: Engine) -> Node:
    """The volume at /dev/shm, or a node of None."""
    for mount in engine.container.mounts:
        if mount.path.rstrip("/") == _SHM and mount.volume in engine.pod.volumes:
            return engine.pod.volumes[mount.volume]
    return engine.node.at(_SHM)


def _bytes(node: Node) -> int | None:
    """Bytes of a quantity of Kubernetes, or of docker, which writes 16gb for 16Gi."""
    text = node.text().strip()
    if text.lower().endswith("b"):
        text = text[:-1]
    if text[-1:].islower() and text[-1:] in "kmg":
        text = text[:-1] + {"k": "Ki", "m": "Mi", "g": "Gi"}[text[-1]]
    number = amount(text) if text else None
    return int(number) if number is not None else None
