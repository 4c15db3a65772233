"""RUN: how engines stop, and how new ones take their place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine, Release
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vllm_phases.model import Node, Pod

_QUARTER = "25%"  # the default of maxSurge and maxUnavailable
_LEADER = ("spec", "leaderWorkerTemplate", "leaderTemplate")


@rule("RUN021", "grace-too-short", Severity.WARNING, scope=Engine)
def grace_too_short(engine: Engine, context: Context) -> Iterator[Problem]:
    """A grace period that ends before the engine has drained.

    Why:
        The kubelet counts from the start of the preStop hook: its time and --shutdown-timeout together must
        fit, or requests in flight are killed.

    Bad:
        ```yaml
        terminationGracePeriodSeconds: 60
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --shutdown-timeout=60]
            lifecycle: {preStop: {sleep: {seconds: 15}}}
        ```

    Good:
        ```yaml
        terminationGracePeriodSeconds: 90
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --shutdown-timeout=60]
            lifecycle: {preStop: {sleep: {seconds: 15}}}
        ```

    References:
        - https://github.com/vllm-project/vllm/pull/43208
        - https://github.com/kserve/kserve/pull/5496
    """
    hook = engine.container.pre_stop
    before = hook.seconds if hook and hook.seconds else 0
    after = engine.number("shutdown-timeout") or 0
    if engine.pod.platform == "kubernetes" and before + after and engine.pod.grace <= before + after:
        given = engine.pod.spec.at("terminationGracePeriodSeconds")
        default = "" if given else " by default"
        message = f"the grace period is {engine.pod.grace} s{default}, but preStop takes {before} s and "
        message += f"--shutdown-timeout {after} s"
        fix = f"Set terminationGracePeriodSeconds to {before + after + 15} or more."
        yield Problem(given, message, fix)


@rule("RUN022", "requests-cut", Severity.WARNING, scope=Engine, since="0.18.0")
def requests_cut(engine: Engine, context: Context) -> Iterator[Problem]:
    """An engine that gives up its requests as soon as it is told to stop.

    Why:
        --shutdown-timeout is 0 by default: on SIGTERM requests in flight are aborted, at every rollout,
        scale-down and node drain.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B]
        ```

    Good:
        ```yaml
        terminationGracePeriodSeconds: 90
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --shutdown-timeout=60]
            lifecycle: {preStop: {sleep: {seconds: 15}}}
        ```
        ```yaml
        image: vllm/vllm-openai:v0.17.0
        args: [Qwen/Qwen3-8B]
        ```

    References:
        - https://github.com/vllm-project/vllm/pull/36666
        - https://github.com/llm-d/llm-d/issues/927
    """
    headless = engine.arguments.truth("headless")
    if engine.pod.as_written and not headless and engine.number("shutdown-timeout") == 0:
        given = engine.arguments.last("shutdown-timeout")
        message = (
            f"--shutdown-timeout is 0{'' if given else ' by default'}, so a stop aborts requests in flight"
        )
        fix = "Set --shutdown-timeout, a preStop that sleeps, and a grace period longer than both."
        yield Problem(given or engine.node.at("args"), message, fix)


@rule("RUN023", "no-pre-stop", Severity.NOTE, scope=Engine, since="0.18.0")
def no_pre_stop(engine: Engine, context: Context) -> Iterator[Problem]:
    """An engine that drains, but at once.

    Why:
        Requests go on coming for some seconds after SIGTERM, until all that route have heard of the end, and
        an engine that drains answers new ones with an abort.

    Bad:
        ```yaml
        terminationGracePeriodSeconds: 90
        containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B, --shutdown-timeout=60]}]
        ```

    Good:
        ```yaml
        terminationGracePeriodSeconds: 90
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --shutdown-timeout=60]
            lifecycle: {preStop: {sleep: {seconds: 15}}}
        ```

    References:
        - https://github.com/kserve/kserve/pull/5496
    """
    given = engine.arguments.last("shutdown-timeout")
    drains = given is not None and (engine.number("shutdown-timeout") or 0) > 0
    if given and drains and engine.pod.as_written and engine.container.pre_stop is None:
        message = "the engine drains, but no preStop hook waits until requests stop coming"
        yield Problem(given, message, "Add lifecycle.preStop with a sleep of about 15 seconds.")


@rule("RUN024", "rollout-needs-spare-gpu", Severity.WARNING, scope=Engine)
def rollout_needs_spare_gpu(engine: Engine, context: Context) -> Iterator[Problem]:
    """A Deployment that starts a new pod before it stops an old one, which holds the GPU.

    Why:
        Without a spare GPU the new pod stays Pending and the rollout stands still. So it is by default with
        fewer than four replicas: maxSurge rounds up, maxUnavailable down.

    Bad:
        ```yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: chat}
        spec:
          replicas: 1
          selector: {matchLabels: {app: chat}}
          template:
            metadata: {labels: {app: chat}}
            spec:
              containers:
                - name: vllm
                  image: vllm/vllm-openai:v0.33.0
                  args: [Qwen/Qwen3-8B]
                  resources: {limits: {nvidia.com/gpu: 1}}
        ```

    Good:
        ```yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: chat}
        spec:
          replicas: 1
          strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
          selector: {matchLabels: {app: chat}}
          template:
            metadata: {labels: {app: chat}}
            spec:
              containers:
                - name: vllm
                  image: vllm/vllm-openai:v0.33.0
                  args: [Qwen/Qwen3-8B]
                  resources: {limits: {nvidia.com/gpu: 1}}
        ```

    References:
        - https://github.com/kserve/kserve/issues/5452
    """
    rolling = _rolling(engine.pod)
    if rolling is None or engine.gpu.kind in ("none", "unknown"):
        return
    surge, unavailable, node = rolling
    if surge > 0 and unavailable == 0:
        default = "" if node.at("rollingUpdate") else " by default"
        message = f"a rollout starts {surge} new pods{default} before it stops one: that takes a spare GPU"
        fix = "Set strategy.rollingUpdate to maxSurge 0 and maxUnavailable 1, or type: Recreate."
        yield Problem(node, message, fix)


@rule("RUN025", "volume-of-one-node", Severity.WARNING, scope=Release)
def volume_of_one_node(release: Release, context: Context) -> Iterator[Problem]:
    """Several pods with a volume that only one node, or one pod, can mount.

    Why:
        A volume that is ReadWriteOnce attaches to one node: pods elsewhere wait with Multi-Attach error, also
        the new pod of a rollout. ReadWriteOncePod allows a single pod anywhere.

    Bad:
        ```yaml
        apiVersion: v1
        kind: PersistentVolumeClaim
        metadata: {name: models}
        spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 100Gi}}}
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: chat}
        spec:
          replicas: 2
          selector: {matchLabels: {app: chat}}
          template:
            metadata: {labels: {app: chat}}
            spec:
              containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]
              volumes: [{name: models, persistentVolumeClaim: {claimName: models}}]
        ```

    Good:
        ```yaml
        apiVersion: v1
        kind: PersistentVolumeClaim
        metadata: {name: models}
        spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 100Gi}}}
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: chat}
        spec:
          replicas: 2
          selector: {matchLabels: {app: chat}}
          template:
            metadata: {labels: {app: chat}}
            spec:
              containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]
              volumes: [{name: models, persistentVolumeClaim: {claimName: models}}]
        ```

    References:
        - https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes
        - https://github.com/vllm-project/production-stack/issues/107
    """
    for claim, users in _claims(release).items():
        found = release.find("PersistentVolumeClaim", claim[1], claim[0])
        modes = {mode.text() for mode in found.node.items("spec", "accessModes")} if found else set()
        if not modes or not modes <= {"ReadWriteOnce", "ReadWriteOncePod"}:
            continue
        total = sum(count for count, _, _ in users)
        surges = any(surge for _, surge, _ in users)
        alone = "ReadWriteOncePod" in modes
        if total > 1 or surges:
            who = f"{total} pods mount" if total > 1 else "the old and the new pod of a rollout mount"
            message = f"{who} claim {claim[1]}, which is {' and '.join(sorted(modes))}"
            fix = "Use ReadWriteMany or ReadOnlyMany, a claim for each pod, or strategy Recreate for a single one."
            yield Problem(users[-1][2], message, fix, Severity.ERROR if alone and total > 1 else None)


def _claims(release: Release) -> dict[tuple[str, str], list[tuple[int, bool, Node]]]:
    """By namespace and name of a claim: how many pods mount it, whether a rollout adds one, and where."""
    users: dict[tuple[str, str], list[tuple[int, bool, Node]]] = {}
    for pod in release.pods:
        if pod.owner is None or pod.owner.kind in ("Job", "CronJob"):
            continue
        rolling = _rolling(pod)
        for volume in pod.volumes.values() if pod.platform == "kubernetes" else ():
            if name := volume.text("persistentVolumeClaim", "claimName"):
                surges = rolling is not None and rolling[0] > 0
                entry = _count(pod), surges, volume.at("persistentVolumeClaim")
                users.setdefault((pod.namespace, name), []).append(entry)
    return users


def _count(pod: Pod) -> int:
    """How many pods there are of a template, at least."""
    size = pod.owner.node.number("spec", "leaderWorkerTemplate", "size") if pod.owner else None
    workers = (size or 1) - 1 if pod.owner and pod.owner.node.at(*_LEADER) else size or 1
    return (1 if pod.replicas is None else pod.replicas) * (1 if pod.group == "leaderTemplate" else workers)


def _rolling(pod: Pod) -> tuple[int, int, Node] | None:
    """maxSurge and maxUnavailable of a Deployment in pods, and its strategy; None where it does not roll."""
    if pod.owner is None or pod.owner.kind != "Deployment" or not pod.replicas:
        return None
    strategy = pod.owner.node.at("spec", "strategy")
    if (strategy.text("type") or "RollingUpdate") != "RollingUpdate":
        return None
    surge = _pods(strategy.text("rollingUpdate", "maxSurge") or _QUARTER, pod.replicas, math.ceil)
    gone = _pods(strategy.text("rollingUpdate", "maxUnavailable") or _QUARTER, pod.replicas, math.floor)
    return (surge, gone, strategy) if surge is not None and gone is not None else None


def _pods(given: str, replicas: int, rounded: Callable[[float], int]) -> int | None:
    """A number or percentage of pods; None where it is neither."""
    if given.isdecimal():
        return int(given)
    share = given.removesuffix("%")
    return rounded(replicas * int(share) / 100) if share.isdecimal() and given.endswith("%") else None
