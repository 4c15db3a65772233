"""What a pod's service account may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vllm_phases.model.objects import same_namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model.objects import Object
    from vllm_phases.model.pod import Pod
    from vllm_phases.model.release import Release
    from vllm_phases.sources.document import Node


@dataclass(frozen=True)
class Grant:
    """A rule of a role that is bound to a service account; namespace is "" for the whole cluster."""

    groups: frozenset[str]
    resources: frozenset[str]
    verbs: frozenset[str]
    namespace: str
    node: Node

    def allows(self, verb: str, group: str, resource: str) -> bool:
        """Whether it covers an action."""
        return bool(
            {verb, "*"} & self.verbs and {group, "*"} & self.groups and {resource, "*"} & self.resources
        )


def service_account(pod: Pod) -> str:
    """The name of the account that a pod runs under."""
    return pod.spec.text("serviceAccountName") or pod.spec.text("serviceAccount") or "default"


def grants(release: Release, pod: Pod) -> tuple[Grant, ...]:
    """Every rule that the documents bind to a pod's service account."""
    account = service_account(pod)
    return tuple(
        grant
        for kind in ("RoleBinding", "ClusterRoleBinding")
        for binding in release.of_kind(kind)
        if _binds(binding, account, pod.namespace)
        for grant in _rules(release, binding)
    )


def allowed(release: Release, pod: Pod, verb: str, group: str, resource: str) -> bool:
    """Whether a pod may do something, as far as the documents say."""
    return any(grant.allows(verb, group, resource) for grant in grants(release, pod))


def complete(release: Release, pod: Pod) -> bool:
    """Whether the documents tell all that a pod may do, as far as anybody can say.

    They do not where a binding refers to a role that is not here, or where neither the account nor a binding
    of it is. The account "default" has what is bound to it here, unless a binding has yet to say whom it
    binds.
    """
    account = service_account(pod)
    every = [*release.of_kind("RoleBinding"), *release.of_kind("ClusterRoleBinding")]
    bindings = [binding for binding in every if _binds(binding, account, pod.namespace)]
    if pod.merged or (not bindings and any(_unfinished(binding) for binding in every)):
        return False
    if not bindings:
        return account == "default" or release.find("ServiceAccount", account, pod.namespace) is not None
    roles = [_role(release, binding) for binding in bindings]
    return all(role is not None and not role.node.at("aggregationRule") for role in roles)


def _unfinished(binding: Object) -> bool:
    """Whether a template engine or envsubst has yet to say whom it binds."""
    names = [subject.text("name") for subject in binding.node.items("subjects")]
    return any("$" in name or "{{" in name for name in names)


def _binds(binding: Object, account: str, namespace: str) -> bool:
    group = f"system:serviceaccounts:{namespace}"
    for subject in binding.node.items("subjects"):
        kind, name = subject.text("kind"), subject.text("name")
        if kind == "Group" and name in (group, "system:serviceaccounts"):
            return True
        inside = subject.text("namespace") or binding.namespace
        if kind == "ServiceAccount" and name == account and same_namespace(inside, namespace):
            return True
    return False


def _rules(release: Release, binding: Object) -> Iterator[Grant]:
    role = _role(release, binding)
    for rule in role.node.items("rules") if role else ():
        groups, resources, verbs = (
            frozenset(item.text() for item in rule.items(field))
            for field in ("apiGroups", "resources", "verbs")
        )
        yield Grant(groups, resources, verbs, binding.namespace, rule)


def _role(release: Release, binding: Object) -> Object | None:
    reference = binding.node.at("roleRef")
    return release.find(reference.text("kind"), reference.text("name"), binding.namespace)
