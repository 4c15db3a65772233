"""RUN: engines that span several nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.model.ranks import joined
from vllm_phases.model.relations import engines_in
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

_SELF = ("127.0.0.1", "localhost", "0.0.0.0", "::1")
# Ways to balance load outside the engine, in which dense models have nothing to tell each other.
_BALANCED = ("data-parallel-rank", "data-parallel-external-lb", "data-parallel-hybrid-lb")
_GROUP = ("spec", "leaderWorkerTemplate")


@rule("RUN031", "node-rank-shared", Severity.ERROR, scope=Engine)
def node_rank_shared(engine: Engine, context: Context) -> Iterator[Problem]:
    """Pods of one template that all are the same node of the engine.

    Why:
        --node-rank is 0 by default. When every pod is node 0, each waits for the others for ever.

    Bad:
        ```yaml
        apiVersion: leaderworkerset.x-k8s.io/v1
        kind: LeaderWorkerSet
        metadata: {name: deep}
        spec:
          leaderWorkerTemplate:
            size: 2
            workerTemplate:
              spec:
                containers:
                  - name: vllm
                    image: vllm/vllm-openai:v0.33.0
                    args: [Qwen/Qwen3-235B-A22B, --tensor-parallel-size=16, --nnodes=2, --master-addr=$(LWS_LEADER_ADDRESS)]
                    resources: {limits: {nvidia.com/gpu: 8}}
        ```

    Good:
        ```yaml
        apiVersion: leaderworkerset.x-k8s.io/v1
        kind: LeaderWorkerSet
        metadata: {name: deep}
        spec:
          leaderWorkerTemplate:
            size: 2
            workerTemplate:
              spec:
                containers:
                  - name: vllm
                    image: vllm/vllm-openai:v0.33.0
                    args:
                      - Qwen/Qwen3-235B-A22B
                      - --tensor-parallel-size=16
                      - --nnodes=2
                      - --node-rank=$(LWS_WORKER_INDEX)
                      - --master-addr=$(LWS_LEADER_ADDRESS)
                    resources: {limits: {nvidia.com/gpu: 8}}
        ```

    References:
        - vllm 0.33.0, docs/serving/parallelism_scaling.md
        - https://lws.sigs.k8s.io/docs/reference/labels-annotations-and-environment-variables/
    """
    if not _spans(engine) or engine.arguments.open or joined(engine):
        return
    given = engine.arguments.last("node-rank")
    first = _members(engine)[0]
    if len([one for one in engines_in(context.release, engine.pod) if one.container is engine.container]) > 1:
        return  # a script that starts one of several
    if _members(engine)[1] > 1 and (given is None or given.value is not None):
        what = f"--node-rank is {given.value}" if given else "--node-rank is not set"
        message = f"{what} in a template of which there are {_members(engine)[1]} pods in a group"
        fix = "Set --node-rank=$(LWS_WORKER_INDEX), which a LeaderWorkerSet gives to every container."
        yield Problem(given or engine.arguments.last("nnodes") or engine.node, message, fix)
    elif first and given is None:
        message = "a worker has no --node-rank, so it is node 0 like the leader"
        fix = "Set --node-rank=$(LWS_WORKER_INDEX)."
        yield Problem(engine.arguments.last("nnodes") or engine.node, message, fix)


@rule("RUN032", "master-is-itself", Severity.ERROR, scope=Engine)
def master_is_itself(engine: Engine, context: Context) -> Iterator[Problem]:
    """A worker that looks for the first node at its own address.

    Why:
        --master-addr is 127.0.0.1 by default: a worker waits there for a leader that runs in another pod.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-235B-A22B, --tensor-parallel-size=16, --nnodes=2, --node-rank=1, --headless]
        resources: {limits: {nvidia.com/gpu: 8}}
        ```

    Good:
        ```yaml
        args:
          - Qwen/Qwen3-235B-A22B
          - --tensor-parallel-size=16
          - --nnodes=2
          - --node-rank=1
          - --master-addr=leader.deep
          - --headless
        resources: {limits: {nvidia.com/gpu: 8}}
        ```

    References:
        - vllm 0.33.0, vllm/config/parallel.py
    """
    if not _spans(engine) or engine.arguments.open or engine.pod.platform != "kubernetes":
        return
    given, rank = engine.arguments.last("master-addr"), engine.arguments.last("node-rank")
    worker = rank is not None and rank.value != "0"
    if worker and (given is None or given.value in _SELF):
        what = f"--master-addr is {given.value}" if given else "--master-addr is not set"
        message = f"{what}, so the worker waits for a leader in its own pod"
        fix = "Set --master-addr to the leader: $(LWS_LEADER_ADDRESS) in a LeaderWorkerSet."
        yield Problem(given or rank or engine.node, message, fix)


@rule("RUN033", "more-nodes-than-pods", Severity.ERROR, scope=Engine)
def more_nodes_than_pods(engine: Engine, context: Context) -> Iterator[Problem]:
    """--nnodes above the size of the group of pods.

    Why:
        The engine waits for nodes that nobody starts.

    Bad:
        ```yaml
        apiVersion: leaderworkerset.x-k8s.io/v1
        kind: LeaderWorkerSet
        metadata: {name: deep}
        spec:
          leaderWorkerTemplate:
            size: 2
            workerTemplate:
              spec:
                containers:
                  - name: vllm
                    image: vllm/vllm-openai:v0.33.0
                    args: [Qwen/Qwen3-8B, --nnodes=4, --node-rank=$(LWS_WORKER_INDEX), --tensor-parallel-size=32]
        ```

    Good:
        ```yaml
        apiVersion: leaderworkerset.x-k8s.io/v1
        kind: LeaderWorkerSet
        metadata: {name: deep}
        spec:
          leaderWorkerTemplate:
            size: 4
            workerTemplate:
              spec:
                containers:
                  - name: vllm
                    image: vllm/vllm-openai:v0.33.0
                    args: [Qwen/Qwen3-8B, --nnodes=4, --node-rank=$(LWS_WORKER_INDEX), --tensor-parallel-size=32]
        ```

    References:
        - https://lws.sigs.k8s.io/docs/concepts/
    """
    owner, given = engine.pod.owner, engine.arguments.last("nnodes")
    if owner is None or given is None or owner.kind != "LeaderWorkerSet":
        return
    template = owner.node.at(*_GROUP)
    size = template.number("size") if template.at("size") else 1
    count = engine.arguments.number("nnodes")
    if size is not None and count is not None and count > size:
        message = f"--nnodes is {count}, but a group has {size} pods"
        yield Problem(given, message, f"Set size: {count}, or --nnodes=$(LWS_GROUP_SIZE).")


@rule("RUN034", "data-parallel-address", Severity.ERROR, scope=Engine)
def data_parallel_address(engine: Engine, context: Context) -> Iterator[Problem]:
    """Data parallel ranks in several pods that look for each other in their own.

    Why:
        --data-parallel-address is 127.0.0.1 by default, so the ranks of other pods are never found.

    Bad:
        ```yaml
        args:
          - deepseek-ai/DeepSeek-V3.1
          - --data-parallel-size=16
          - --data-parallel-size-local=8
          - --data-parallel-start-rank=8
          - --headless
        resources: {limits: {nvidia.com/gpu: 8}}
        ```

    Good:
        ```yaml
        args:
          - deepseek-ai/DeepSeek-V3.1
          - --data-parallel-size=16
          - --data-parallel-size-local=8
          - --data-parallel-start-rank=8
          - --data-parallel-address=$(LWS_LEADER_ADDRESS)
          - --headless
        resources: {limits: {nvidia.com/gpu: 8}}
        ```

    References:
        - vllm 0.33.0, docs/serving/data_parallel_deployment.md
    """
    total, here = engine.arguments.number("data-parallel-size"), 0
    for one in engines_in(context.release, engine.pod):
        here += one.arguments.number("data-parallel-size-local") or 0
    where = engine.arguments.last("data-parallel-size-local")
    given = engine.arguments.last("data-parallel-address")
    if not _closed(engine) or where is None or where.value is None or total is None or here >= total:
        return
    if given is None or given.value in _SELF:
        what = f"is {given.value}" if given else "is not set"
        message = f"{total - here} of {total} data parallel ranks are in other pods, "
        message += f"but --data-parallel-address {what}"
        fix = "Set it to the first pod: $(LWS_LEADER_ADDRESS) in a LeaderWorkerSet."
        weight = Severity.WARNING if any(flag in engine.arguments for flag in _BALANCED) else None
        yield Problem(given or where, message, fix, weight)


def _closed(engine: Engine) -> bool:
    """Whether the options alone say where ranks of other pods are."""
    elsewhere = engine.arguments.open or joined(engine) or "VLLM_DP_MASTER_IP" in engine.variables
    return not elsewhere and "nnodes" not in engine.arguments and engine.pod.platform == "kubernetes"


def _spans(engine: Engine) -> bool:
    """Whether the engine has more than one node."""
    count = engine.arguments.number("nnodes")
    return count is not None and count > 1


def _members(engine: Engine) -> tuple[bool, int]:
    """Whether the pod is a worker beside a leader, and how many pods of a group have the same template."""
    owner = engine.pod.owner
    if owner is None or owner.kind != "LeaderWorkerSet":
        return False, 1
    group = owner.node.at(*_GROUP)
    size = group.number("size") or 1
    led = bool(group.at("leaderTemplate"))
    if engine.pod.group == "leaderTemplate":
        return False, 1
    return led, size - 1 if led else size
