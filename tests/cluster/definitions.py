"""Definitions of custom resources whose CRDs are on no module proxy, made from the schemas that the tool carries."""

from __future__ import annotations

import json
from typing import Any

from tests.conftest import ROOT

DATA = ROOT / "tools/vllm_phases/objects/data"
UNPINNED = ("inference.networking.x-k8s.io", "llm-d.ai")


def definitions() -> list[dict[str, Any]]:
    """One CustomResourceDefinition for each kind of those groups."""
    files = sorted(file for group in UNPINNED for file in (DATA / group).glob("*.json"))
    return [definition(json.loads(file.read_text())) for file in files]


def definition(schema: dict[str, Any]) -> dict[str, Any]:
    """A CustomResourceDefinition that says what the schema says."""
    (served,) = schema["x-kubernetes-group-version-kind"]
    kind = served["kind"]
    names = {"kind": kind, "listKind": f"{kind}List", "singular": kind.lower(), "plural": f"{kind.lower()}s"}
    root = {"type": "object", "required": schema.get("required", [])}
    root["properties"] = {"spec": structural(schema["properties"]["spec"])}
    version = {"name": served["version"], "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{names['plural']}.{served['group']}",
            # Asked for of groups below k8s.io.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests only"},
        },
        "spec": {
            "group": served["group"],
            "names": names,
            "scope": "Namespaced",
            "versions": [{**version, "schema": {"openAPIV3Schema": root}}],
        },
    }


def structural(schema: dict[str, Any]) -> dict[str, Any]:
    """A node as an API server wants it: null by a word of its own, and closed without saying so."""
    found = {key: value for key, value in schema.items() if key not in ("additionalProperties", "type")}
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    found["type"] = next(name for name in types if name != "null")
    if "null" in types:
        found["nullable"] = True
    if "enum" in schema:
        found["enum"] = [value for value in schema["enum"] if value is not None]
    if "properties" in schema:
        found["properties"] = {name: structural(child) for name, child in schema["properties"].items()}
    if "items" in schema:
        found["items"] = structural(schema["items"])
    return found
