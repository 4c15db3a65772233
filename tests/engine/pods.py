"""A rendered container as a command of this machine.

Nothing that the chart rendered is changed, but for what a machine without Kubernetes cannot have:
- a container's file system: every volume is a folder here, and paths below a mount, wherever they stand in
  command, args and env, become paths below that folder;
- the cluster's name service: the names given in `hosts` become addresses of this machine;
- an address of its own: `address`, of the loopback network, is what `status.podIP` gives.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.conftest import Objects

Secrets = dict[str, dict[str, str]]
"""Text by key, by the name of the Secret."""

_ENTRYPOINT = ("vllm", "serve")  # of vLLM's images since 0.11.1
_FIELDS = {"metadata.name": "demo-server-0", "metadata.namespace": "default"}
_NOBODY: Mapping[str, str] = MappingProxyType({})
_VARIABLE = re.compile(r"\$\((\w+)\)")


@dataclass(frozen=True)
class Command:
    """What to run and its whole environment, but for PATH, which belongs to the image."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


def engines(objects: Objects) -> list[dict[str, Any]]:
    """The specifications of all pods that run an engine; of a LeaderWorkerSet those of one replica."""
    specs = [document.get("spec", {}) for document in objects.by_id.values()]
    pods = [spec["template"]["spec"] for spec in specs if "template" in spec]
    pods += [pod for spec in specs for pod in members(spec.get("leaderWorkerTemplate", {}))]
    return [pod for pod in pods if pod["containers"][0]["name"] == "vllm"]


def members(group: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The pods of a replica, with what the controller of LeaderWorkerSets tells each by variables."""
    for index in range(group.get("size", 0)):
        worker = group["workerTemplate"]
        template = worker if index else group.get("leaderTemplate", worker)
        text = json.dumps(template["spec"]).replace("$(LWS_WORKER_INDEX)", str(index))
        yield json.loads(text.replace("$(LWS_LEADER_ADDRESS)", "demo-0.demo-0.default"))


def deployment(objects: Objects, name: str) -> dict[str, Any]:
    """The specification of a Deployment's pods."""
    return dict(objects.get(f"Deployment/{name}")["spec"]["template"]["spec"])


def helm_test(objects: Objects) -> dict[str, Any]:
    """The specification of the pod that `helm test` runs."""
    (pod,) = (document["spec"] for document in objects.by_id.values() if document["kind"] == "Pod")
    return dict(pod)


def words(container: Mapping[str, Any]) -> list[str]:
    """Command and arguments; the command is the image's own where none is given."""
    return [*container.get("command", _ENTRYPOINT), *container.get("args", ())]


def command(
    pod: Mapping[str, Any],
    folder: Path,
    secrets: Secrets,
    address: str = "127.0.0.1",
    hosts: Mapping[str, str] = _NOBODY,
) -> Command:
    """The command of a pod's first container, whose writable volumes come to lie in `folder`."""
    container = pod["containers"][0]
    places = {mount: str(place) for mount, place in _mounts(pod, folder, secrets)}
    places.update(hosts)
    # Longest first, and whole path segments only: /model is part of neither /models nor x/model.
    names = "|".join(re.escape(name) for name in sorted(places, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w.-])(?:{names})(?![\w.-])")

    def here(text: str) -> str:
        return pattern.sub(lambda match: places[match[0]], text)

    env = _environment(container, secrets, address)
    argv = (_VARIABLE.sub(lambda match: env[match[1]], word) for word in words(container))
    return Command(tuple(map(here, argv)), {name: here(value) for name, value in env.items()})


def _mounts(pod: Mapping[str, Any], folder: Path, secrets: Secrets) -> Iterator[tuple[str, Path]]:
    """Each mount path of the first container with its folder on this machine."""
    volumes = {volume["name"]: volume for volume in pod.get("volumes", ())}
    for mount in pod["containers"][0].get("volumeMounts", ()):
        place = _volume(volumes[mount["name"]], folder, secrets) / mount.get("subPath", "")
        place.mkdir(parents=True, exist_ok=True)
        yield mount["mountPath"], place


def _volume(volume: Mapping[str, Any], folder: Path, secrets: Secrets) -> Path:
    """The folder of a volume: a hostPath where it is, a Secret with its files, all others empty."""
    if "hostPath" in volume:
        return Path(volume["hostPath"]["path"])
    place = folder / str(volume["name"])
    place.mkdir(parents=True, exist_ok=True)
    if "secret" in volume:
        for key, text in secrets[volume["secret"]["secretName"]].items():
            (place / key).write_text(text)
    return place


def _environment(container: Mapping[str, Any], secrets: Secrets, address: str) -> dict[str, str]:
    """The variables as the kubelet sets them, in their order, so that later ones may use earlier ones."""
    assert "envFrom" not in container, "envFrom is not read here: add it to this function"
    env: dict[str, str] = {}
    for variable in container.get("env", ()):
        source = variable.get("valueFrom", {})
        if "secretKeyRef" in source:
            value = secrets[source["secretKeyRef"]["name"]][source["secretKeyRef"]["key"]]
        elif "fieldRef" in source:
            value = {"status.podIP": address, **_FIELDS}[source["fieldRef"]["fieldPath"]]
        else:
            value = _VARIABLE.sub(lambda match: env.get(match[1], match[0]), variable.get("value", ""))
        env[variable["name"]] = value
    return env
