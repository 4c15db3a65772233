"""Environment variables of Kubernetes containers, and the references to them in command and args."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vllm_phases.model.container import Variable
from vllm_phases.sources.shell import Word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from vllm_phases.sources.document import Node

    ConfigData = Callable[[str], Mapping[str, Node] | None]
    """The data of a ConfigMap by name; None where it is not among the documents."""

_REFERENCE = re.compile(r"\$\$|\$\(([^()\s]*)\)")
_HOLE = re.compile(r"\{\{.*?\}\}|\$\{\w+(:?[-=?+][^}]*)?\}", re.DOTALL)  # of templates and of envsubst


def variables(container: Node, config: ConfigData) -> tuple[dict[str, Variable], bool]:
    """The variables of a container by name, and whether these are all (https://kubernetes.io/docs/concepts/
    workloads/pods/#environment: later ones win, and each may refer to those before it).
    """
    found: dict[str, Variable] = {}
    complete = True
    for source in container.items("envFrom"):
        data = config(source.text("configMapRef", "name")) if source.at("configMapRef") else None
        complete = complete and data is not None
        for key, node in (data or {}).items():
            name = source.text("prefix") + key
            found[name] = Variable(
                name, node.text(), f"configMap {source.text('configMapRef', 'name')} {key}", node
            )
    for entry in container.items("env"):
        name = entry.text("name")
        found[name] = _variable(name, entry, found, config)
    return found, complete


def expand(text: str, known: Mapping[str, Variable], node: Node) -> Word:
    """A word of command or args as the kubelet expands it; an undefined reference stays as it is written."""
    if "$" not in text and "{{" not in text:
        return Word(text, node=node)
    unknown: list[str] = []
    undefined: list[str] = []

    def resolved(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        variable = known.get(match[1])
        if variable is None:
            undefined.append(match[1])
        elif variable.value is not None:
            return variable.value
        unknown.append(match[1])
        return match[0]

    expanded = _REFERENCE.sub(resolved, text)
    known_now = not unknown and not _HOLE.search(text)
    opaque = text.lstrip().startswith("{{")  # a template may put any option there, or none
    return Word(expanded, known_now, tuple(undefined), opaque, node=node)


def words(container: Node, known: Mapping[str, Variable]) -> Iterator[Word]:
    """The words of command and args."""
    for field in ("command", "args"):
        for item in container.items(field):
            yield expand(item.text(), known, item)


def _variable(name: str, entry: Node, known: Mapping[str, Variable], config: ConfigData) -> Variable:
    source = entry.at("valueFrom")
    if not source:
        word = expand(entry.text("value"), known, entry)
        return Variable(name, word.text if word.known or word.undefined else None, "value", entry)
    for kind, field in (("secretKeyRef", "secret"), ("configMapKeyRef", "configMap")):
        if source.at(kind):
            holder, key = source.text(kind, "name"), source.text(kind, "key")
            data = config(holder) if field == "configMap" else None
            value = data[key].text() if data and key in data else None
            return Variable(name, value, f"{field} {holder} {key}", entry)
    if source.at("fieldRef"):
        return Variable(name, None, f"field {source.text('fieldRef', 'fieldPath')}", entry)
    if source.at("resourceFieldRef"):
        return Variable(name, None, f"resource {source.text('resourceFieldRef', 'resource')}", entry)
    return Variable(name, None, "unknown", entry)
