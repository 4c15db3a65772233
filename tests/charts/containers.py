"""Looking into the engine of a rendered release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.conftest import Objects


def pod(objects: Objects, deployment: str = "demo-server") -> Any:
    return objects.get(f"Deployment/{deployment}")["spec"]["template"]["spec"]


def engine(objects: Objects, deployment: str = "demo-server") -> Any:
    (container,) = [c for c in pod(objects, deployment)["containers"] if c["name"] == "vllm"]
    return container


def argv(objects: Objects) -> list[str]:
    return list(engine(objects)["args"])


def env(objects: Objects) -> dict[str, Any]:
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in engine(objects)["env"]}


def mounts(objects: Objects) -> dict[str, Any]:
    return {mount["mountPath"]: mount for mount in engine(objects)["volumeMounts"]}


def volumes(objects: Objects) -> dict[str, Any]:
    return {volume["name"]: volume for volume in pod(objects)["volumes"]}
