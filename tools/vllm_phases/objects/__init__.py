"""Would an API server take these objects? Their shape by Kubernetes' own schemas, then what else it refuses.

An object of the wrong shape gets findings about its shape only: an API server, too, decodes before it
validates. What no object says of itself, such as whether a Secret exists, is left to the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jsonschema_rs import ValidationErrorKind

from vllm_phases.finding import Finding, Location, Severity
from vllm_phases.objects import published, wording
from vllm_phases.objects.published import GroupVersionKind
from vllm_phases.objects.refusals import RULES, Refusal, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.manifests import Manifest
    from vllm_phases.objects.published import Validators
    from vllm_phases.yaml_document import KeyPath

_SHAPE = Rule("OBJ001", "invalid-object")
_NO_SCHEMA = Rule("OBJ002", "no-schema", Severity.WARNING)
_NOT_SERVED = Rule("OBJ003", "api-not-served")


def validate(manifest: Manifest, kube_version: str) -> tuple[Finding, ...]:
    """What an API server of a Kubernetes version ("1.34", "v1.34.2") has against an object.

    Built-in kinds are checked against that version, custom resources against the schemas in data/; a kind
    without a schema gets the warning OBJ002. UsageError for a version without schemas.
    """
    minor = published.minor_version(kube_version)
    given = {key: manifest.document.get(key) for key in ("apiVersion", "kind")}
    nameless = [key for key, value in given.items() if not value or not isinstance(value, str)]
    if nameless:
        return tuple(_finding(manifest, _SHAPE, (key,), "missing, but required") for key in nameless)
    group, _, version = str(given["apiVersion"]).rpartition("/")
    kind = GroupVersionKind(group, version, str(given["kind"]))
    validators = published.validators(minor, kind)
    if validators is None:
        return (_without_schema(manifest, minor, kind),)
    try:
        misshapen = tuple(dict.fromkeys(_shape(manifest, minor, validators)))
    except ValueError as error:  # a key that is no string, a value that JSON has not, a list in itself
        return (_finding(manifest, _SHAPE, (), f"not JSON: {error}"),)
    return misshapen or tuple(_refused(manifest, validators))


def _shape(manifest: Manifest, minor: str, validators: Validators) -> Iterator[Finding]:
    for error in validators.shape.iter_errors(manifest.document):
        schema = published.api(minor).schema_around(error.absolute_keyword_location)
        for refusal in wording.refusals(error, schema):
            yield _finding(manifest, _SHAPE, (*error.instance_path, *refusal.path), refusal.message)


def _refused(manifest: Manifest, validators: Validators) -> Iterator[Finding]:
    for error in validators.rules.iter_errors(_without_nulls(manifest.document)):
        if not isinstance(error.kind, ValidationErrorKind.Custom):
            continue
        if not isinstance(error.__cause__, Refusal):
            raise RuntimeError(f"the rule {error.kind.keyword} failed") from error.__cause__
        (rule, _), refusal = RULES[error.kind.keyword], error.__cause__
        path = (*error.instance_path, *refusal.path)
        yield _finding(manifest, rule, path, refusal.message, refusal.remediation)


def _without_nulls(value: Any) -> Any:
    """A null is an absent field to an API server, and an empty object in a list."""
    if isinstance(value, dict):
        return {key: _without_nulls(child) for key, child in value.items() if child is not None}
    if isinstance(value, list):
        return [{} if child is None else _without_nulls(child) for child in value]
    return value


def _without_schema(manifest: Manifest, minor: str, kind: GroupVersionKind) -> Finding:
    """A kind that this Kubernetes version does not serve, or a custom resource that is not known here."""
    served = published.api(minor).kinds
    versions = sorted(other.api_version for other in served if other.kind == kind.kind)
    siblings = [other.kind for other in served if other.api_version == kind.api_version]
    hint = f"set apiVersion to {' or '.join(versions)}" if versions else wording.nearest(kind.kind, siblings)
    built_in = published.is_built_in(minor, kind.group)
    others = published.minors_with(kind) if built_in or kind.group.endswith(".k8s.io") else ()
    if not built_in and not others:
        return _finding(manifest, _NO_SCHEMA, ("kind",), f"no schema for {kind}, so it is not checked", hint)
    only = f", only {' to '.join(dict.fromkeys((others[0], others[-1])))}" if others else ""
    message = f"Kubernetes {minor} does not serve {kind}{only}"
    return _finding(manifest, _NOT_SERVED, ("apiVersion",), message, hint)


def _finding(manifest: Manifest, rule: Rule, path: KeyPath, message: str, remediation: str = "") -> Finding:
    place = wording.dotted(path)
    return Finding(
        rule.rule_id,
        rule.name,
        rule.severity,
        f"{place}: {message}" if place else message,
        remediation,
        path=place,
        object=manifest.id,
        location=Location(manifest.template, manifest.line, 1),
    )
