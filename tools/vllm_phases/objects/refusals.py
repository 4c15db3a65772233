"""What an API server refuses although the published schema allows it.

Each rule is a function behind an extra keyword of JSON Schema, which vllm_phases.objects.refinements puts on
Kubernetes' own definitions: a rule holds wherever that type occurs. Rules see only objects of the right
shape, without nulls. Source: the validation of Kubernetes 1.37, pkg/apis/*/validation.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from vllm_phases.objects.spelling import FORMATS, amount, is_label_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from vllm_phases.yaml_document import KeyPath

    Refusals = Callable[[Any, Any], Iterator["Refusal"]]


class Refusal(Exception):  # noqa: N818  # a reason, and no failure of ours
    """One reason to refuse an object; path leads to the culprit from the part that the rule was given."""

    def __init__(self, path: KeyPath, message: str, remediation: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.remediation = remediation


RULES: dict[str, tuple[str, Refusals]] = {}
"""By keyword: the rule's id, and its function of the part of an object on which that stands and of its value.
What each id is called, and why it is wrong: vllm_phases.rules.objects."""


def rule(rule_id: str, keyword: str) -> Callable[[Refusals], Refusals]:
    """Make a function the rule of a keyword."""

    def register(refusals: Refusals) -> Refusals:
        RULES[keyword] = rule_id, refusals
        return refusals

    return register


def quoted(value: object) -> str:
    """A value as JSON writes it."""
    return json.dumps(value, ensure_ascii=False)


@rule("OBJ010", "x-name")
def misspelt_name(name: str | int, form: str) -> Iterator[Refusal]:
    """Names become host names, DNS names or parts of a URL; a port may be a number instead."""
    if isinstance(name, str) and not FORMATS[form].fits(name):
        yield Refusal((), f"{quoted(name)} is not a {form} ({FORMATS[form]})")


@rule("OBJ011", "x-labels")
def misspelt_labels(labels: Mapping[str, str], _: object) -> Iterator[Refusal]:
    """The keys and values of labels, which selectors and URLs carry."""
    yield from misspelt_keys(labels, _)
    for key, value in labels.items():
        if not FORMATS["label value"].fits(value):
            yield Refusal((key,), f"{quoted(value)} is not a label value ({FORMATS['label value']})")


@rule("OBJ011", "x-annotations")
def misspelt_keys(labels: Mapping[str, str], _: object) -> Iterator[Refusal]:
    """The keys of annotations are spelt like those of labels; their values are free."""
    for key in labels:
        if not is_label_key(key):
            yield Refusal(
                (key,), f'not a key (an optional DNS subdomain and "/", then {FORMATS["label value"]})'
            )


@rule("OBJ012", "x-selector")
def selects_others(workload: Mapping[str, Any], _: object) -> Iterator[Refusal]:
    """A workload selects the pods that it makes."""
    selector = workload.get("selector", {})
    labels = workload.get("template", {}).get("metadata", {}).get("labels", {})
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield Refusal(("selector",), "selects nothing", "set matchLabels to labels of the pod template")
    for key, wanted in selector.get("matchLabels", {}).items():
        if labels.get(key) != wanted:
            given = quoted(labels[key]) if key in labels else "missing"
            yield Refusal(
                ("template", "metadata", "labels", key),
                f"{given}, but the selector asks for {quoted(wanted)}",
            )


@rule("OBJ013", "x-quantity")
def no_quantity(quantity: object, _: object) -> Iterator[Refusal]:
    """Quantities are numbers with at most one suffix of the International System or its binary kin."""
    if amount(quantity) is None:
        yield Refusal((), f"{quoted(quantity)} is not a quantity such as 500m, 2, 40G or 16Gi")


@rule("OBJ014", "x-kubernetes-list-map-keys")
def repeated_entries(items: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> Iterator[Refusal]:
    """Lists that are maps by some key: server-side apply, which Helm 4 uses, refuses a key given twice."""
    seen: dict[tuple[object, ...], int] = {}
    for index, item in enumerate(items):
        key = tuple(item.get(name) for name in keys)
        if key[0] not in {None, ""} and seen.setdefault(key, index) != index:
            given = ", ".join(f"{name} {quoted(item[name])}" for name in keys if name in item)
            yield Refusal((index,), f"repeats entry {seen[key]} ({given})", "keep one of the two")


@rule("OBJ014", "x-unique-names")
def repeated_names(items: Sequence[Mapping[str, Any]], _: object) -> Iterator[Refusal]:
    """The named ports of a container, which are a map by number, differ in name too."""
    yield from repeated_entries(items, ["name"])


@rule("OBJ015", "x-resources")
def unfit_resources(resources: Mapping[str, Any], _: object) -> Iterator[Refusal]:
    """Requests keep to limits; devices such as GPUs are whole and never promised twice."""
    limits, requests = (resources.get(part, {}) for part in ("limits", "requests"))
    for part, given in (("limits", limits), ("requests", requests)):
        for name, quantity in given.items():
            number = amount(quantity) or Decimal(0)
            if _device(name) and number != number.to_integral_value():
                yield Refusal((part, name), f"{quantity} is not a whole number of devices")
    for name, request in requests.items():
        if name in limits:
            yield from _unequal(name, request, limits[name])
        elif _reserved(name):
            yield Refusal(("limits", name), f"missing, but {request} is requested", f"set it to {request}")


def _unequal(name: str, request: object, limit: object) -> Iterator[Refusal]:
    """Refuse a request that does not go with its limit; OBJ013 says what is no quantity."""
    low, high = amount(request), amount(limit)
    if low is None or high is None:
        return
    if _reserved(name) and low != high:
        yield Refusal(
            ("requests", name), f"{request} is not the limit of {limit}", "set both to the same number"
        )
    elif low > high:
        yield Refusal(("requests", name), f"{request} is over the limit of {limit}")


def _device(resource: str) -> bool:
    """Whether a resource is an extended one, such as nvidia.com/gpu."""
    return "/" in resource and "kubernetes.io/" not in resource


def _reserved(resource: str) -> bool:
    """Whether a resource cannot be promised to more containers than there is of it."""
    return _device(resource) or resource.startswith("hugepages-")


@rule("OBJ016", "x-volumes")
def mounts_nothing(owner: Mapping[str, Any], _: object) -> Iterator[Refusal]:
    """A container mounts volumes of its own pod, or claims of its own StatefulSet."""
    path: KeyPath = ("template", "spec") if "template" in owner else ("spec",)
    pod = owner.get("template", owner).get("spec", {})
    claims = [claim.get("metadata", {}) for claim in owner.get("volumeClaimTemplates", ())]
    known = {volume.get("name") for volume in (*pod.get("volumes", ()), *claims)}
    for role in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(role, ())):
            for number, mount in enumerate(container.get("volumeMounts", ())):
                if (name := mount.get("name")) not in known:
                    place = (*path, role, index, "volumeMounts", number, "name")
                    yield Refusal(place, f"{quoted(name)} is not a volume of the pod")


@rule("OBJ017", "x-at-most-one-of")
def several(union: Mapping[str, Any], choices: Sequence[str]) -> Iterator[Refusal]:
    """Some types are a choice: one volume has one source."""
    made = [name for name in choices if union.get(name, "") != ""]
    if len(made) > 1:
        yield Refusal((), f"{' and '.join(made)} exclude each other", "keep one of them")


@rule("OBJ017", "x-one-of")
def none_or_several(union: Mapping[str, Any], choices: Sequence[str]) -> Iterator[Refusal]:
    """Some choices have to be made: a probe says how to probe."""
    if not set(choices) & set(union):
        yield Refusal((), f"needs one of {', '.join(choices)}")
    yield from several(union, choices)


@rule("OBJ018", "x-rollout")
def stuck_rollout(strategy: Mapping[str, Any], _: object) -> Iterator[Refusal]:
    """A Deployment rolls out by adding pods first, by removing pods first, or by recreating all."""
    rolling = strategy.get("rollingUpdate", {})
    if strategy.get("type") == "Recreate" and "rollingUpdate" in strategy:
        yield Refusal(("rollingUpdate",), "given beside type Recreate", "set rollingUpdate to null")
    elif all(rolling.get(name) in {0, "0%"} for name in ("maxSurge", "maxUnavailable")):
        yield Refusal(("rollingUpdate",), "maxSurge and maxUnavailable are both 0", "set one of them to 1")
