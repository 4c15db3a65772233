"""OPS: what scales engines, watches them and keeps them running."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vllm_phases.catalogue.store import sort_key
from vllm_phases.finding import Severity
from vllm_phases.model import Autoscaler, Monitor, Object, Release, relations
from vllm_phases.model.objects import same_namespace
from vllm_phases.rules import repairs, windows
from vllm_phases.rules.labels import kustomized, unfinished
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.model import Engine, Node, Picker, Pod, Service

_ENGINE_METRIC = re.compile(r"\bvllm:([a-z0-9_]+)")
_SAMPLE = re.compile(r"_(total|bucket|count|sum)$")
_SERIES = re.compile(
    r"\b(?P<name>(?:llm_d_epp|inference_pool|inference_objective|inference_extension|llm_d_inference_scheduler)_\w+)(?:\{(?P<labels>[^{}]*)\})?"
)
_LABEL = re.compile(r'(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"')
_MODEL_LABEL = re.compile(r'vllm:\w+\{[^{}]*\bmodel_name\s*=\s*"([^"]*)"')
_WORKLOADS = ("Deployment", "StatefulSet", "LeaderWorkerSet", "DisaggregatedSet", "ReplicaSet")


def _queries(release: Release) -> Iterator[tuple[Node, Autoscaler | None]]:
    """Every query of an autoscaler, and those of rules that only watch."""
    for autoscaler in release.autoscalers:
        for query in autoscaler.queries:
            yield query, autoscaler
    for found in release.of_kind("PrometheusRule"):
        for group in found.node.items("spec", "groups"):
            for one in group.items("rules"):
                yield one.at("expr"), None


def _engines(release: Release, autoscaler: Autoscaler | None) -> tuple[Engine, ...]:
    """The engines that a query is about: those that it scales, or all."""
    return (_targeted(release, autoscaler) if autoscaler else ()) or release.engines


def _targeted(release: Release, autoscaler: Autoscaler) -> tuple[Engine, ...]:
    """The engines that an autoscaler scales."""
    target = relations.scaled(release, autoscaler)
    return tuple(_engines_by_owner(release).get(id(target), ())) if target else ()


@lru_cache(maxsize=2)
def _engines_by_owner(release: Release) -> dict[int, list[Engine]]:
    found: dict[int, list[Engine]] = {}
    for engine in release.engines:
        found.setdefault(id(engine.pod.owner), []).append(engine)
    return found


def _weight(autoscaler: Autoscaler | None) -> Severity:
    """A query that finds nothing stops an autoscaler for good, and an alarm less so."""
    return Severity.ERROR if autoscaler else Severity.WARNING


@rule("OPS001", "scaled-twice", Severity.ERROR, scope=Release)
def scaled_twice(release: Release, context: Context) -> Iterator[Problem]:
    """Two autoscalers scale the same object.

    Why:
        Each sets the replicas by its own rule, so they undo each other; KEDA refuses a target that has an
        HorizontalPodAutoscaler.

    Bad:
        ```yaml
        kind: HorizontalPodAutoscaler
        apiVersion: autoscaling/v2
        metadata: {name: demo}
        spec: {scaleTargetRef: {kind: Deployment, name: demo}, maxReplicas: 4}
        ---
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec: {scaleTargetRef: {name: demo}, maxReplicaCount: 4}
        ```

    Good:
        ```yaml
        kind: HorizontalPodAutoscaler
        apiVersion: autoscaling/v2
        metadata: {name: demo}
        spec: {scaleTargetRef: {kind: Deployment, name: demo-prefill}, maxReplicas: 4}
        ---
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec: {scaleTargetRef: {name: demo-decode}, maxReplicaCount: 4}
        ```

    References:
        - https://keda.sh/docs/latest/concepts/admission-webhooks/
    """
    first: dict[tuple[str, str, str], Autoscaler] = {}
    for autoscaler in release.autoscalers:
        key = (autoscaler.object.namespace, *autoscaler.target)
        other = first.setdefault(key, autoscaler)
        if autoscaler.target[1] and other.object.id != autoscaler.object.id:
            target = "/".join(autoscaler.target)
            message = f"{target} is scaled by {other.object.id} and by {autoscaler.object.id}"
            weight = None if _of_one_deployment(release, autoscaler, other) else Severity.WARNING
            yield Problem(autoscaler.node.at("spec", "scaleTargetRef"), message, "Keep one of them.", weight)


def _of_one_deployment(release: Release, one: Autoscaler, other: Autoscaler) -> bool:
    """Whether two autoscalers are surely applied together: one file, or what they scale is here as well."""
    one_file = one.node.document.file == other.node.document.file
    return one_file or relations.scaled(release, one) is not None


@rule("OPS002", "replicas-with-autoscaler", Severity.WARNING, scope=Autoscaler)
def replicas_with_autoscaler(autoscaler: Autoscaler, context: Context) -> Iterator[Problem]:
    """The scaled object sets its replicas itself.

    Why:
        Every apply puts the written number back, whatever the autoscaler has come to: engines end and start
        again for nothing. Server-side apply reports a conflict over spec.replicas.

    Bad:
        ```yaml
        kind: HorizontalPodAutoscaler
        apiVersion: autoscaling/v2
        metadata: {name: demo}
        spec: {scaleTargetRef: {kind: Deployment, name: demo}, maxReplicas: 4}
        ---
        kind: Deployment
        apiVersion: apps/v1
        metadata: {name: demo}
        spec: {replicas: 1, template: {spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}}}
        ```

    Good:
        ```yaml
        kind: HorizontalPodAutoscaler
        apiVersion: autoscaling/v2
        metadata: {name: demo}
        spec: {scaleTargetRef: {kind: Deployment, name: demo}, maxReplicas: 4}
        ---
        kind: Deployment
        apiVersion: apps/v1
        metadata: {name: demo}
        spec: {template: {spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}}}
        ```

    References:
        - https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
    """
    target = relations.scaled(context.release, autoscaler)
    given = target.node.at("spec", "replicas") if target else None
    if target is not None and given is not None and given:
        message = f"{target.id} sets replicas: {given.text()}, and {autoscaler.object.id} scales it"
        yield Problem(given, message, "Leave spec.replicas out.")


@rule(
    "OPS003",
    "engine-metric",
    Severity.ERROR,
    scope=Release,
    fix="with --unsafe-fixes, writes the metric that it resembles most.",
)
def engine_metric(release: Release, context: Context) -> Iterator[Problem]:
    """A query names a metric that the engine's release does not have.

    Why:
        The query finds nothing, so the autoscaler never scales and the alarm never fires. Metrics were renamed
        in 0.12 and 0.16.

    Bad:
        ```yaml
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec:
          scaleTargetRef: {name: demo-1}
          triggers: [{type: prometheus, metadata: {query: 'avg(vllm:gpu_cache_usage_perc)', threshold: '0.7'}}]
        ---
        image: vllm/vllm-openai:v0.33.0
        ```
        ```yaml
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec:
          scaleTargetRef: {name: demo-1}
          triggers: [{type: prometheus, metadata: {query: 'avg(vllm:kv_cache_usage_percent)', threshold: '0.7'}}]
        ---
        image: vllm/vllm-openai:v0.33.0
        ```

    Good:
        ```yaml
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec:
          scaleTargetRef: {name: demo-1}
          triggers: [{type: prometheus, metadata: {query: 'avg(vllm:kv_cache_usage_perc)', threshold: '0.7'}}]
        ---
        image: vllm/vllm-openai:v0.33.0
        ```

    References:
        - vllm/v1/metrics/loggers.py of each release
    """
    known = context.facts("operations")
    for query, autoscaler in _queries(release):
        versions = {engine.release.version for engine in _engines(release, autoscaler) if engine.release}
        for name in dict.fromkeys(_ENGINE_METRIC.findall(query.text())):
            found = known.get(name) or known.get(_SAMPLE.sub("", name))
            near = get_close_matches(_SAMPLE.sub("", name), known, 1, 0.92)
            lacking = [version for version in versions if found is not None and not _has(found, version)]
            if found is not None and lacking and len(lacking) == len(versions):
                fix = f"Use vllm:{found['instead']}." if "instead" in found else "Use a newer vLLM."
                yield Problem(
                    query, f"vLLM {max(lacking, key=sort_key)} has no vllm:{name}", fix, _weight(autoscaler)
                )
            elif found is None and near:
                message = f"vLLM has no vllm:{name}; did you mean vllm:{near[0]}?"
                repair = repairs.word_in_text(query, f"vllm:{name}", f"vllm:{near[0]}", safe=False)
                yield Problem(query, message, f"Write vllm:{near[0]}.", Severity.WARNING, repair)


def _has(metric: Mapping[str, Any], version: str) -> bool:
    here = sort_key(version)
    after = "since" not in metric or here >= sort_key(metric["since"])
    return after and ("until" not in metric or here < sort_key(metric["until"]))


@rule("OPS004", "picker-metric-label", Severity.ERROR, scope=Release)
def picker_metric_label(release: Release, context: Context) -> Iterator[Problem]:
    """A query on a picker's metric looks for a pool that does not exist.

    Why:
        The label holds the name of the InferencePool, not that of the picker or its Service: name, or
        inference_pool on flow control metrics. The query finds nothing, so nothing ever scales.

    Bad:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec:
          scaleTargetRef: {name: demo}
          triggers: [{type: prometheus, metadata: {query: 'max(llm_d_epp_average_queue_size{name="demo-epp"})', threshold: '5'}}]
        ```

    Good:
        ```yaml
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec:
          scaleTargetRef: {name: demo}
          triggers: [{type: prometheus, metadata: {query: 'max(llm_d_epp_average_queue_size{name="demo"})', threshold: '5'}}]
        ```

    References:
        - https://github.com/llm-d/llm-d-benchmark/issues/1618
    """
    pools = release.index.pools_by_name
    facts = context.facts("llmd_metrics")["pool_label"]
    for query, autoscaler in _queries(release) if pools else ():
        for match in _SERIES.finditer(query.text()):
            starts = [start for start in facts if start != "source" and match["name"].startswith(start)]
            label = facts[max(starts, key=len)] if starts else None
            for name, operator, value in _LABEL.findall(match["labels"] or ""):
                if name == label and operator == "=" and value not in pools and not unfinished(value):
                    message = (
                        f"{match['name']} is asked for {name}={value!r}, and there is no such InferencePool"
                    )
                    fix = f"Write {name}={_quoted(pools)}, the name of the pool."
                    yield Problem(query, message, fix, _weight(autoscaler))


def _quoted(names: Mapping[str, object]) -> str:
    return " or ".join(f'"{name}"' for name in sorted(names)[:5])


@rule(
    "OPS005",
    "picker-metric-name",
    Severity.WARNING,
    scope=Release,
    fix="writes the new name of the same metric; with --unsafe-fixes also where the picker is not seen.",
)
def picker_metric_name(release: Release, context: Context) -> Iterator[Problem]:
    """A query names a picker's metric by a name that its release gives up, or does not have yet.

    Why:
        From v0.9 on every metric of the picker begins with llm_d_epp_; the old names are deprecated twins.
        A picker up to v0.8 has the old names only.

    Bad:
        ```yaml
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec:
          scaleTargetRef: {name: demo}
          triggers: [{type: prometheus, metadata: {query: 'max(inference_pool_average_queue_size)', threshold: '5'}}]
        ```

    Good:
        ```yaml
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec:
          scaleTargetRef: {name: demo}
          triggers: [{type: prometheus, metadata: {query: 'max(llm_d_epp_average_queue_size)', threshold: '5'}}]
        ```

    References:
        - llm-d/llm-d-router v0.10.0: pkg/epp/metrics/metrics.go
    """
    facts = context.facts("llmd_metrics")["deprecated"]
    versions = [picker.version for picker in release.pickers if picker.version]
    old = bool(versions) and max(versions) < (0, 9, 0)
    for query, autoscaler in _queries(release):
        for name in dict.fromkeys(match["name"] for match in _SERIES.finditer(query.text())):
            start = next((prefix for prefix in facts["prefixes"] if name.startswith(prefix)), None)
            if start and not old and name not in facts["kept"]:
                plain = _SAMPLE.sub("", name)
                new = facts["renamed"].get(plain, facts["instead"] + plain.removeprefix(start))
                message = f"{name} is deprecated since picker v{facts['since']}"
                known = bool(versions) and min(versions) >= (0, 9, 0)
                repair = repairs.word_in_text(query, plain, new, safe=known) if plain == name else None
                yield Problem(query, message, f"Use {new}.", repair=repair)
            elif start is None and old:
                message = f"picker {windows.spelled(max(versions))} has no {name}, which came with v{facts['since']}"
                yield Problem(query, message, "Use the inference_pool_ metric.", _weight(autoscaler))


@rule("OPS006", "disruption-budget-blocks", Severity.WARNING, scope=Object)
def disruption_budget_blocks(found: Object, context: Context) -> Iterator[Problem]:
    """A disruption budget that never lets a pod of an engine go.

    Why:
        A node cannot be drained while minAvailable is the number of pods, or maxUnavailable is 0: upgrades of
        nodes wait for ever.

    Bad:
        ```yaml
        kind: PodDisruptionBudget
        apiVersion: policy/v1
        metadata: {name: demo}
        spec: {minAvailable: 1, selector: {matchLabels: {app: demo-1}}}
        ---
        image: vllm/vllm-openai:v0.33.0
        ```

    Good:
        ```yaml
        kind: PodDisruptionBudget
        apiVersion: policy/v1
        metadata: {name: demo}
        spec: {maxUnavailable: 1, selector: {matchLabels: {app: demo-1}}}
        ---
        image: vllm/vllm-openai:v0.33.0
        ```

    References:
        - https://kubernetes.io/docs/tasks/run-application/configure-pdb/
    """
    if found.kind != "PodDisruptionBudget" or found.group != "policy":
        return
    spec = found.node.at("spec")
    pods = context.release.index.selected(spec.mapping("selector", "matchLabels"), found.namespace)
    if not any(relations.engines_in(context.release, pod) for pod in pods):
        return
    least, most = spec.at("minAvailable"), spec.at("maxUnavailable")
    counts = [_smallest(context.release, pod) for pod in pods]
    known = sum(count for count in counts if count is not None)
    if most.text() in ("0", "0%"):
        yield Problem(
            most, f"maxUnavailable is {most.text()}: no pod may ever be moved", "Set maxUnavailable: 1."
        )
    elif least.text() == "100%":
        yield Problem(least, "minAvailable is 100%: no pod may ever be moved", "Set maxUnavailable: 1.")
    elif (number := least.number()) and None not in counts and number >= known:
        message = f"minAvailable is {number} of {known} pods: none may ever be moved"
        yield Problem(least, message, "Set maxUnavailable: 1 instead.")


def _smallest(release: Release, pod: Pod) -> int | None:
    """The least number of pods: what an autoscaler may go down to, or the replicas."""
    autoscaler = _autoscalers_by_target(release).get(id(pod.owner))
    if autoscaler is None:
        return pod.replicas
    return autoscaler.minimum if autoscaler.minimum is not None else 1


@lru_cache(maxsize=2)
def _autoscalers_by_target(release: Release) -> dict[int, Autoscaler]:
    found = {id(relations.scaled(release, autoscaler)): autoscaler for autoscaler in release.autoscalers}
    found.pop(id(None), None)
    return found


@rule("OPS007", "scale-target-missing", Severity.ERROR, scope=Autoscaler)
def scale_target_missing(autoscaler: Autoscaler, context: Context) -> Iterator[Problem]:
    """An autoscaler's target is not here, but an object that it may mean is.

    Why:
        An autoscaler with a target that does not exist does nothing, and says so in its status only. KEDA
        takes a target without kind for a Deployment.

    Bad:
        ```yaml
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec: {scaleTargetRef: {name: demo}, maxReplicaCount: 4}
        ---
        kind: LeaderWorkerSet
        apiVersion: leaderworkerset.x-k8s.io/v1
        metadata: {name: demo}
        spec: {leaderWorkerTemplate: {workerTemplate: {spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}}}}
        ```

    Good:
        ```yaml
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec: {scaleTargetRef: {apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: demo}, maxReplicaCount: 4}
        ---
        kind: LeaderWorkerSet
        apiVersion: leaderworkerset.x-k8s.io/v1
        metadata: {name: demo}
        spec: {leaderWorkerTemplate: {workerTemplate: {spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}}}}
        ```

    References:
        - https://keda.sh/docs/latest/reference/scaledobject-spec/
    """
    kind, name = autoscaler.target
    space = autoscaler.object.namespace
    if not name or unfinished(name) or relations.scaled(context.release, autoscaler) is not None:
        return
    place = autoscaler.node.at("spec", "scaleTargetRef")
    other = next((one for one in _WORKLOADS if context.release.find(one, name, space)), None)
    workloads = [
        found.name
        for one in _WORKLOADS
        for found in context.release.of_kind(one)
        if same_namespace(found.namespace, space)
    ]
    near = get_close_matches(name, workloads, 1, 0.8)
    if other:
        yield Problem(
            place, f"there is no {kind} {name!r} here, but a {other} of that name", f"Set kind: {other}."
        )
    elif near:
        message = f"there is no {kind} {name!r} here; did you mean {near[0]}?"
        yield Problem(place, message, f"Write {near[0]}.", Severity.WARNING)


@rule("OPS008", "scale-from-zero", Severity.ERROR, scope=Autoscaler)
def scale_from_zero(autoscaler: Autoscaler, context: Context) -> Iterator[Problem]:
    """An engine scales to zero by a metric that only a running engine has.

    Why:
        Without a pod there is no vllm: metric, so nothing ever starts the first one. A picker with flow
        control holds requests meanwhile and counts them in llm_d_epp_flow_control_queue_size.

    Bad:
        ```yaml
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec:
          scaleTargetRef: {name: demo}
          minReplicaCount: 0
          triggers: [{type: prometheus, metadata: {query: 'sum(vllm:num_requests_waiting)', threshold: '5'}}]
        ```

    Good:
        ```yaml
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec:
          scaleTargetRef: {name: demo}
          minReplicaCount: 0
          triggers: [{type: prometheus, metadata: {query: 'sum(llm_d_epp_flow_control_queue_size)', threshold: '1'}}]
        ```

    References:
        - https://keda.sh/docs/latest/concepts/scaling-deployments/
    """
    triggers = list(autoscaler.node.items("spec", "triggers"))
    texts = [query.text() for query in autoscaler.queries]
    engines_only = bool(texts) and all("vllm:" in text and "llm_d_epp_" not in text for text in texts)
    zero = autoscaler.node.at("spec", "minReplicaCount" if triggers else "minReplicas")
    if autoscaler.minimum == 0 and engines_only and len(texts) == max(len(triggers), 1):
        message = "the least number of replicas is 0, and every metric comes from a running engine"
        yield Problem(
            zero if zero else autoscaler.node, message, "Set it to 1, or scale by a metric of the router."
        )


@rule("OPS009", "flow-control-metric", Severity.ERROR, scope=Release)
def flow_control_metric(release: Release, context: Context) -> Iterator[Problem]:
    """A query counts on flow control, which the picker has not switched on.

    Why:
        llm_d_epp_flow_control_ metrics are written only with the feature gate flowControl, which is off by
        default: the query finds nothing, so nothing ever scales.

    Bad:
        ```yaml
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec:
          scaleTargetRef: {name: demo}
          triggers: [{type: prometheus, metadata: {query: 'sum(llm_d_epp_flow_control_queue_size)', threshold: '1'}}]
        ---
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: queue-scorer}]
        schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]
        ```

    Good:
        ```yaml
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec:
          scaleTargetRef: {name: demo}
          triggers: [{type: prometheus, metadata: {query: 'sum(llm_d_epp_flow_control_queue_size)', threshold: '1'}}]
        ---
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        featureGates: [flowControl]
        plugins: [{type: queue-scorer}]
        schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]
        ```

    References:
        - llm-d/llm-d-router v0.10.0: cmd/epp/runner/runner.go, flowcontrol.FeatureGate
    """
    gates = [[gate.text() for gate in config.node.items("featureGates")] for config in release.picker_configs]
    if not gates or any(
        gate.startswith("flowControl") and not gate.endswith("=false") for some in gates for gate in some
    ):
        return
    for query, autoscaler in _queries(release):
        if "_flow_control_" in query.text() and (
            "llm_d_epp_" in query.text() or "inference_extension_" in query.text()
        ):
            message = (
                "flow control metrics are asked for, and no picker here has the feature gate flowControl"
            )
            yield Problem(
                query, message, "Add flowControl to featureGates of the picker.", _weight(autoscaler)
            )


@rule("OPS010", "query-model-name", Severity.ERROR, scope=Release)
def query_model_name(release: Release, context: Context) -> Iterator[Problem]:
    """A query looks for a model name under which no engine serves.

    Why:
        The label model_name holds the first --served-model-name, or the model as it is given to vllm serve. A
        query for another name finds nothing, so the autoscaler never scales.

    Bad:
        ```yaml
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec:
          scaleTargetRef: {name: demo-1}
          triggers: [{type: prometheus, metadata: {query: 'sum(vllm:num_requests_waiting{model_name="Qwen3-8B"})', threshold: '5'}}]
        ---
        args: [Qwen/Qwen3-8B]
        ```

    Good:
        ```yaml
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec:
          scaleTargetRef: {name: demo-1}
          triggers: [{type: prometheus, metadata: {query: 'sum(vllm:num_requests_waiting{model_name="chat"})', threshold: '5'}}]
        ---
        args: [Qwen/Qwen3-8B, --served-model-name=chat]
        ```

    References:
        - https://github.com/llm-d/llm-d/pull/2310
    """
    for query, autoscaler in _queries(release):
        asked = set(_MODEL_LABEL.findall(query.text()))
        names = [_served(engine) for engine in _engines(release, autoscaler)] if asked else []
        for name in sorted(asked) if names and None not in names else ():
            if name not in names and not unfinished(name):
                served = ", ".join(sorted({str(one) for one in names})[:5])
                message = f"the query asks for model_name {name!r}, the engines serve {served}"
                yield Problem(
                    query, message, "Ask for the name under which the engine serves.", _weight(autoscaler)
                )


def _served(engine: Engine) -> str | None:
    """The value of the label model_name."""
    if "served-model-name" in engine.arguments:
        return engine.arguments.text("served-model-name")
    return None if engine.arguments.open else engine.model


@rule("OPS011", "autoscaler-bounds", Severity.ERROR, scope=Autoscaler)
def autoscaler_bounds(autoscaler: Autoscaler, context: Context) -> Iterator[Problem]:
    """An autoscaler's minimum is above its maximum.

    Why:
        The API server refuses it.

    Bad:
        ```yaml
        kind: HorizontalPodAutoscaler
        apiVersion: autoscaling/v2
        metadata: {name: demo}
        spec: {scaleTargetRef: {kind: Deployment, name: demo}, minReplicas: 4, maxReplicas: 2}
        ```

    Good:
        ```yaml
        kind: HorizontalPodAutoscaler
        apiVersion: autoscaling/v2
        metadata: {name: demo}
        spec: {scaleTargetRef: {kind: Deployment, name: demo}, minReplicas: 2, maxReplicas: 4}
        ```

    References:
        - https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
    """
    low, high = autoscaler.minimum, autoscaler.maximum
    if low is not None and high is not None and low > high:
        message = f"the minimum of {low} replicas is above the maximum of {high}"
        yield Problem(autoscaler.node.at("spec"), message, "Raise the maximum.")


@rule("OPS012", "scaled-by-cpu", Severity.WARNING, scope=Autoscaler)
def scaled_by_cpu(autoscaler: Autoscaler, context: Context) -> Iterator[Problem]:
    """An engine on GPUs is scaled by CPU or memory alone.

    Why:
        An engine keeps its CPU busy whatever the load, and its memory is taken at start, so neither follows
        the requests.

    Bad:
        ```yaml
        kind: HorizontalPodAutoscaler
        apiVersion: autoscaling/v2
        metadata: {name: demo}
        spec:
          scaleTargetRef: {kind: Deployment, name: demo-1}
          maxReplicas: 4
          metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
        ---
        resources: {limits: {nvidia.com/gpu: 1}}
        ```

    Good:
        ```yaml
        kind: HorizontalPodAutoscaler
        apiVersion: autoscaling/v2
        metadata: {name: demo}
        spec:
          scaleTargetRef: {kind: Deployment, name: demo-1}
          maxReplicas: 4
          metrics: [{type: Pods, pods: {metric: {name: vllm_num_requests_waiting}, target: {type: AverageValue, averageValue: '5'}}}]
        ---
        resources: {limits: {nvidia.com/gpu: 1}}
        ```

    References:
        - https://docs.vllm.ai/en/latest/usage/metrics/
    """
    metrics = list(autoscaler.node.items("spec", "metrics"))
    kinds = {metric.text("type") for metric in metrics}
    kinds |= {
        "Resource" if trigger.text("type") in ("cpu", "memory") else "Other"
        for trigger in autoscaler.node.items("spec", "triggers")
    }
    targeted = _targeted(context.release, autoscaler)
    on_gpu = [engine for engine in targeted if engine.gpu.kind not in ("none", "unknown")]
    if on_gpu and kinds and kinds <= {"Resource", "ContainerResource"}:
        place = autoscaler.node.at("spec", "metrics")
        message = "an engine on GPUs is scaled by CPU or memory, which do not follow its requests"
        yield Problem(
            place if place else autoscaler.node.at("spec", "triggers"),
            message,
            "Scale by vllm:num_requests_waiting.",
        )


@rule("OPS013", "monitor-port", Severity.ERROR, scope=Monitor)
def monitor_port(monitor: Monitor, context: Context) -> Iterator[Problem]:
    """A monitor scrapes a port that its Services or pods do not name.

    Why:
        A ServiceMonitor selects Services by their labels and takes the names of their ports; a PodMonitor those
        of containers. Prometheus finds no target and says nothing.

    Bad:
        ```yaml
        kind: PodMonitor
        apiVersion: monitoring.coreos.com/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {app: demo-1}}, podMetricsEndpoints: [{port: metrics}]}
        ---
        ports: [{name: http, containerPort: 8000}]
        ```

    Good:
        ```yaml
        kind: PodMonitor
        apiVersion: monitoring.coreos.com/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {app: demo-1}}, podMetricsEndpoints: [{port: http}]}
        ---
        ports: [{name: http, containerPort: 8000}]
        ```

    References:
        - https://prometheus-operator.dev/docs/developer/getting-started/
    """
    names = _scraped(monitor, context.release)
    for endpoint in monitor.endpoints if names else ():
        place, name = endpoint.at("port"), endpoint.text("port")
        if name and name not in (names or ()) and not unfinished(name):
            listed = ", ".join(sorted(filter(None, names or ()))) or "none"
            message = f"no port is called {name!r} where {monitor.object.id} scrapes, only {listed}"
            weight = Severity.WARNING if kustomized(context.release) else None
            yield Problem(place, message, "Name a port that is there.", weight)


def _scraped(monitor: Monitor, release: Release) -> set[str]:
    """The names of the ports that a monitor may scrape; empty where it selects nothing here."""
    if monitor.node.at("spec", "selector", "matchExpressions") or not monitor.selector:
        return set()
    wide = bool(monitor.node.at("spec", "namespaceSelector"))
    space = "" if wide else monitor.object.namespace
    if monitor.object.kind == "PodMonitor":
        pods = release.index.selected(monitor.selector, space)
        return {port.name for pod in pods for container in pod.containers for port in container.ports}
    return {port.name for service in _labelled(release, monitor.selector, space) for port in service.ports}


def _labelled(release: Release, selector: Mapping[str, str], namespace: str) -> list[Service]:
    """The Services that have the labels of a selector themselves."""
    candidates = _services_by_label(release).get(next(iter(selector.items())), ())
    return [
        service
        for service in candidates
        if relations.selects(selector, service.object.labels)
        and same_namespace(service.object.namespace, namespace)
    ]


@lru_cache(maxsize=2)
def _services_by_label(release: Release) -> dict[tuple[str, str], list[Service]]:
    found: dict[tuple[str, str], list[Service]] = {}
    for service in release.services:
        for pair in service.object.labels.items():
            found.setdefault(pair, []).append(service)
    return found


@rule("OPS014", "monitor-selects-nothing", Severity.ERROR, scope=Monitor)
def monitor_selects_nothing(monitor: Monitor, context: Context) -> Iterator[Problem]:
    """A ServiceMonitor selects by labels that the pods have and no Service.

    Why:
        A ServiceMonitor goes by the labels of Services, not by their selectors or their pods. Prometheus finds
        no target and says nothing.

    Bad:
        ```yaml
        kind: ServiceMonitor
        apiVersion: monitoring.coreos.com/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {app: demo-2}}, endpoints: [{port: http}]}
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: demo}
        spec: {selector: {app: demo-2}, ports: [{name: http, port: 8000}]}
        ---
        ports: [{name: http, containerPort: 8000}]
        ```

    Good:
        ```yaml
        kind: ServiceMonitor
        apiVersion: monitoring.coreos.com/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {app: demo-2}}, endpoints: [{port: http}]}
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: demo, labels: {app: demo-2}}
        spec: {selector: {app: demo-2}, ports: [{name: http, port: 8000}]}
        ---
        ports: [{name: http, containerPort: 8000}]
        ```

    References:
        - https://prometheus-operator.dev/docs/developer/getting-started/
    """
    if monitor.object.kind != "ServiceMonitor" or not monitor.selector:
        return
    if monitor.node.at("spec", "selector", "matchExpressions") or monitor.node.at(
        "spec", "namespaceSelector"
    ):
        return
    space = monitor.object.namespace
    if _labelled(context.release, monitor.selector, space):
        return
    pods = context.release.index.selected(monitor.selector, space)
    behind = [service for pod in pods for service in relations.services_of(context.release, pod)]
    if behind:
        wanted = ", ".join(f"{key}={value}" for key, value in monitor.selector.items())
        message = f"no Service has the label {wanted}, only the pods behind {behind[0].object.id}"
        weight = Severity.WARNING if kustomized(context.release) else None
        yield Problem(monitor.node.at("spec", "selector"), message, "Give the Service these labels.", weight)


@rule("OPS015", "picker-metrics-closed", Severity.WARNING, scope=Monitor)
def picker_metrics_closed(monitor: Monitor, context: Context) -> Iterator[Problem]:
    """A monitor scrapes a picker without the token that the picker asks for.

    Why:
        In Kubernetes the picker answers /metrics with 401 unless the request has a token of an account that
        may read them, or --metrics-endpoint-auth=false is set.

    Bad:
        ```yaml
        kind: PodMonitor
        apiVersion: monitoring.coreos.com/v1
        metadata: {name: epp}
        spec: {selector: {matchLabels: {app: demo-1}}, podMetricsEndpoints: [{port: metrics}]}
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo]
            ports: [{name: metrics, containerPort: 9090}]
        ```

    Good:
        ```yaml
        kind: PodMonitor
        apiVersion: monitoring.coreos.com/v1
        metadata: {name: epp}
        spec: {selector: {matchLabels: {app: demo-1}}, podMetricsEndpoints: [{port: metrics}]}
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --metrics-endpoint-auth=false]
            ports: [{name: metrics, containerPort: 9090}]
        ```

    References:
        - observed with llm-d-router v0.10.0
    """
    for picker in _watched(monitor, context.release):
        closed = picker.arguments.truth("metrics-endpoint-auth") is not False and not picker.arguments.open
        for endpoint in monitor.endpoints if closed else ():
            if not any(
                endpoint.at(way)
                for way in ("authorization", "bearerTokenSecret", "bearerTokenFile", "tlsConfig")
            ):
                message = f"{picker.pod.name} answers 401 to a scrape without a token, and this one has none"
                yield Problem(endpoint, message, "Set authorization here, or --metrics-endpoint-auth=false.")


def _watched(monitor: Monitor, release: Release) -> Iterator[Picker]:
    for pod in release.index.selected(monitor.selector, monitor.object.namespace) if monitor.selector else ():
        if monitor.object.kind == "PodMonitor":
            yield from release.index.pickers_by_pod.get(id(pod), ())


@rule("OPS016", "variant-autoscaling", Severity.WARNING, scope=Object)
def variant_autoscaling(found: Object, context: Context) -> Iterator[Problem]:
    """A VariantAutoscaling, which llm-d no longer recommends.

    Why:
        The workload variant autoscaler is deprecated; llm-d recommends KEDA on llm_d_epp_flow_control_queue_size
        and llm_d_epp_request_running.

    Bad:
        ```yaml
        kind: VariantAutoscaling
        apiVersion: llmd.ai/v1alpha1
        metadata: {name: demo}
        spec: {modelID: Qwen/Qwen3-8B}
        ```

    Good:
        ```yaml
        kind: ScaledObject
        apiVersion: keda.sh/v1alpha1
        metadata: {name: demo}
        spec: {scaleTargetRef: {name: demo}}
        ```

    References:
        - llm-d/llm-d: docs on autoscaling
    """
    if found.kind == "VariantAutoscaling":
        message = "the workload variant autoscaler is deprecated"
        yield Problem(found.node.at("kind"), message, "Scale with KEDA on metrics of the endpoint picker.")


@rule("OPS017", "overlapping-selectors", Severity.WARNING, scope=Object)
def overlapping_selectors(found: Object, context: Context) -> Iterator[Problem]:
    """The selector of an engine's workload takes pods of another one as well.

    Why:
        Two releases with the same labels share Services and disruption budgets, an autoscaler averages over
        the pods of both, and StatefulSets adopt pods of others.

    Bad:
        ```yaml
        kind: Deployment
        apiVersion: apps/v1
        metadata: {name: one}
        spec:
          selector: {matchLabels: {app: vllm}}
          template: {metadata: {labels: {app: vllm}}, spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}}
        ---
        kind: Deployment
        apiVersion: apps/v1
        metadata: {name: two}
        spec:
          selector: {matchLabels: {app: vllm}}
          template: {metadata: {labels: {app: vllm}}, spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}}
        ```

    Good:
        ```yaml
        kind: Deployment
        apiVersion: apps/v1
        metadata: {name: one}
        spec:
          selector: {matchLabels: {app: vllm, instance: one}}
          template: {metadata: {labels: {app: vllm, instance: one}}, spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}}
        ---
        kind: Deployment
        apiVersion: apps/v1
        metadata: {name: two}
        spec:
          selector: {matchLabels: {app: vllm, instance: two}}
          template: {metadata: {labels: {app: vllm, instance: two}}, spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}}
        ```

    References:
        - https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#selector
    """
    if found.kind not in ("Deployment", "StatefulSet"):
        return
    place = found.node.at("spec", "selector")
    pods = context.release.index.selected(place.mapping("matchLabels"), found.namespace)
    mine = any(pod.owner is found and relations.engines_in(context.release, pod) for pod in pods)
    others = [
        pod.owner.id
        for pod in pods
        if pod.owner is not None and pod.owner is not found and pod.owner.kind != "Pod"
    ]
    if mine and others and not place.at("matchExpressions"):
        message = f"the selector of {found.id} takes pods of {others[0]} too"
        yield Problem(
            place, message, "Give each workload a label of its own, in its selector and its template."
        )
