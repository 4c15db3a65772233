"""Short examples as documents: the fragments that a rule's docstring shows, put where they belong."""

from __future__ import annotations

import json
import textwrap
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from vllm_phases import rules, sources
from vllm_phases.model import Document, Release

if TYPE_CHECKING:
    from vllm_phases.finding import Finding
    from vllm_phases.rules.registry import Example

KUBE_VERSION = "1.35.0"
_CONTAINER = {"name": "vllm", "image": "vllm/vllm-openai:v0.33.0", "args": ["Qwen/Qwen3-8B"]}
_EVERY_RULE = rules.Selection()
_FILES = {"yaml": "example.yaml", "compose": "compose.yaml", "sh": "example.sh"}


def documents(example: Example) -> tuple[Document, ...]:
    """The documents of an example. In "yaml", what has no kind is a part of a Deployment:

    a pod template (it has spec.containers), a pod (it has containers), or else the engine's container.
    """
    name = _FILES[example.language]
    if example.language != "yaml":
        found = list(sources.read_text(example.text, name))
        assert all(isinstance(item, Document) for item in found), found
        return tuple(item for item in found if isinstance(item, Document))
    trees, _ = sources.yaml_reader.documents(example.text)
    return tuple(_document(tree, index) for index, tree in enumerate(trees))


def findings(example: Example, selection: rules.Selection = _EVERY_RULE) -> list[Finding]:
    """What the linter finds in an example."""
    context = rules.Context(Release(documents(example)), KUBE_VERSION)
    return list(rules.run(context, selection))


def _document(tree: Any, index: int) -> Document:
    assert isinstance(tree, dict), f"an example is a mapping, not {tree!r}"
    file = PurePath("example.yaml").name
    return Document(file, "kubernetes", tree if "kind" in tree else _deployment(tree, index))


def _deployment(tree: dict[str, Any], index: int) -> dict[str, Any]:
    name = f"demo-{index}"
    if isinstance(tree.get("spec"), dict) and "containers" in tree["spec"]:
        template = tree
    else:
        template = {"spec": tree if "containers" in tree else {"containers": [{**_CONTAINER, **tree}]}}
    labels = {"app": name, **(template.get("metadata") or {}).get("labels", {})}
    template = {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }


def written(example: Example) -> tuple[str, str]:
    """The name and the whole text of a file with an example, fragments put where they belong."""
    if example.language != "yaml":
        return _FILES[example.language], example.text
    parts = example.text.split("\n---\n")
    return _FILES["yaml"], "\n---\n".join(_whole(part.strip("\n"), index) for index, part in enumerate(parts))


def judged(
    text: str, name: str, selection: rules.Selection = _EVERY_RULE, vllm_version: str | None = None
) -> list[Finding]:
    """What the linter finds in the text of a file."""
    found = sources.read_text(text, name)
    release = Release(tuple(item for item in found if isinstance(item, Document)), vllm_version)
    return list(rules.run(rules.Context(release, KUBE_VERSION), selection))


def _whole(text: str, index: int) -> str:
    """A document with a fragment in it, at the place where `_deployment` puts it."""
    ((tree,), _) = sources.yaml_reader.documents(text)
    if "kind" in tree:
        return text
    name = f"demo-{index}"
    head = (
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n"
        f"  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n"
    )
    labels = f"    metadata: {{labels: {{app: {name}}}}}\n"
    if isinstance(tree.get("spec"), dict) and "containers" in tree["spec"]:
        if "labels" in (tree.get("metadata") or {}):
            return head + textwrap.indent(text.replace("labels: {", f"labels: {{app: {name}, ", 1), "    ")
        text = text.replace("metadata: {", f"metadata: {{labels: {{app: {name}}}, ", 1)
        return head + ("" if "metadata" in tree else labels) + textwrap.indent(text, "    ")
    if "containers" in tree:
        return head + labels + "    spec:\n" + textwrap.indent(text, "      ")
    given = "\n".join(f"{key}: {json.dumps(value)}" for key, value in _CONTAINER.items() if key not in tree)
    container = textwrap.indent(f"{given}\n{text}".strip("\n"), "          ")
    return f"{head}{labels}    spec:\n      containers:\n        -{container[9:]}"
