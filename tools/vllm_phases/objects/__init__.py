"""Would an API server take these objects? Their shape by Kubernetes' own schemas, then what else it refuses.

An object of the wrong shape gets findings about its shape only: an API server, too, decodes before it
validates. What no object says of itself, such as whether a Secret exists, is left to the cluster.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from jsonschema_rs import ValidationErrorKind

from vllm_phases.objects import published, wording
from vllm_phases.objects.published import GroupVersionKind
from vllm_phases.objects.refusals import RULES, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.objects.published import Validators
    from vllm_phases.yaml_document import KeyPath

_NESTED = (dict, list)
SHAPE, NO_SCHEMA, NOT_SERVED = "OBJ001", "OBJ002", "OBJ003"


class Refused(NamedTuple):
    """A reason to refuse an object: the id of the rule, and the path of the culprit in the object."""

    rule_id: str
    path: KeyPath
    reason: str
    remediation: str = ""

    @property
    def message(self) -> str:
        """The path, as far as there is one, and the reason."""
        place = wording.dotted(self.path)
        return f"{place}: {self.reason}" if place else self.reason


def validate(document: Mapping[str, Any], kube_version: str) -> tuple[Refused, ...]:
    """What an API server of a Kubernetes version ("1.34", "v1.34.2") has against an object.

    Built-in kinds are checked against that version, custom resources against the schemas in data/; a kind
    without a schema gets OBJ002, which says that it was not checked. UsageError for a version without
    schemas.
    """
    minor = published.minor_version(kube_version)
    api_version, kind = document.get("apiVersion"), document.get("kind")
    if not (api_version and kind and isinstance(api_version, str) and isinstance(kind, str)):
        return tuple(_nameless(apiVersion=api_version, kind=kind))
    group, _, version = api_version.rpartition("/")
    name = GroupVersionKind(group, version, kind)
    validators = published.validators(minor, name)
    if validators is None:
        return (_without_schema(minor, name),)
    try:
        misshapen = tuple(dict.fromkeys(_misshapen(document, minor, validators)))
    except ValueError as error:  # a key that is no string, a value that JSON has not, a list in itself
        return (Refused(SHAPE, (), f"not JSON: {error}"),)
    return misshapen or tuple(_refused(document, validators))


def _nameless(**given: object) -> Iterator[Refused]:
    for key, value in given.items():
        if not value or not isinstance(value, str):
            yield Refused(SHAPE, (key,), "missing, but required")


def _misshapen(document: Mapping[str, Any], minor: str, validators: Validators) -> Iterator[Refused]:
    for error in validators.shape.iter_errors(document):
        schema = published.api(minor).schema_around(error.absolute_keyword_location)
        for refusal in wording.refusals(error, schema):
            yield Refused(SHAPE, (*error.instance_path, *refusal.path), refusal.message)


def _refused(document: Mapping[str, Any], validators: Validators) -> Iterator[Refused]:
    for error in validators.rules.iter_errors(_without_nulls(document)):
        if not isinstance(error.kind, ValidationErrorKind.Custom):
            continue
        if not isinstance(error.__cause__, Refusal):
            raise RuntimeError(f"the rule {error.kind.keyword} failed") from error.__cause__
        (rule_id, _), refusal = RULES[error.kind.keyword], error.__cause__
        path = (*error.instance_path, *refusal.path)
        yield Refused(rule_id, path, refusal.message, refusal.remediation)


def _without_nulls(value: Any) -> Any:
    """A null is an absent field to an API server, and an empty object in a list."""
    if type(value) is dict:
        return {
            key: _without_nulls(child) if type(child) in _NESTED else child
            for key, child in value.items()
            if child is not None
        }
    return [
        {} if child is None else _without_nulls(child) if type(child) in _NESTED else child for child in value
    ]


@functools.lru_cache(maxsize=1024)
def _without_schema(minor: str, kind: GroupVersionKind) -> Refused:
    """A kind that this Kubernetes version does not serve, or a custom resource that is not known here."""
    served = published.api(minor).kinds
    versions = sorted(other.api_version for other in served if other.kind == kind.kind)
    siblings = [other.kind for other in served if other.api_version == kind.api_version]
    hint = f"set apiVersion to {' or '.join(versions)}" if versions else wording.nearest(kind.kind, siblings)
    built_in = published.is_built_in(minor, kind.group)
    others = published.minors_with(kind) if built_in or kind.group.endswith(".k8s.io") else ()
    if not built_in and not others:
        return Refused(NO_SCHEMA, ("kind",), f"no schema for {kind}, so it is not checked", hint)
    only = f", only {' to '.join(dict.fromkeys((others[0], others[-1])))}" if others else ""
    return Refused(NOT_SERVED, ("apiVersion",), f"Kubernetes {minor} does not serve {kind}{only}", hint)
