"""Which text stands at a path of a container, where the documents tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm_phases.sources.document import Document
from vllm_phases.sources.files import text_beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model.container import Container
    from vllm_phases.model.environment import ConfigData
    from vllm_phases.model.pod import Pod
    from vllm_phases.sources.document import Node


def mounted(pod: Pod, container: Container, path: str, config: ConfigData) -> Node | None:
    """The text at a path: an entry of a ConfigMap, of a compose file's configs, or a file beside that one."""
    sources = (
        _compose(container, path) if pod.platform == "compose" else _config_maps(pod, container, path, config)
    )
    return next((node for node in sources if node), None)


def _config_maps(pod: Pod, container: Container, path: str, config: ConfigData) -> Iterator[Node]:
    for mount in container.mounts:
        volume = pod.volumes.get(mount.volume)
        name = volume.text("configMap", "name") if volume is not None else ""
        below = _below(mount.path, path)
        if volume is None or not name or below is None:
            continue
        key = below or mount.sub_path
        renamed = {item.text("path"): item.text("key") for item in volume.items("configMap", "items")}
        if node := (config(name) or {}).get(renamed.get(key, key)):
            yield node


def _compose(container: Container, path: str) -> Iterator[Node]:
    service = container.node
    for item in service.items("configs"):
        name = item.text("source") or item.text()
        if path == (item.text("target") or f"/{name}"):
            found = service.document.root.at("configs", name)
            yield found.at("content") or _beside(found.at("file"), found.text("file"))
    for mount in container.mounts:
        below = _below(mount.path, path)
        if below is not None:
            yield _beside(mount.node, f"{mount.volume}/{below}" if below else mount.volume)


def _beside(node: Node, name: str) -> Node:
    """The text of a file beside the document of a node; a node of None where there is none."""
    file, text = text_beside(node.document, name) or ("", None)
    return Document(file, "command", text, text or "", inside=node).root


def _below(base: str, path: str) -> str | None:
    """The rest of a path below a mount, "" for the mount itself; None where it is elsewhere."""
    base = base.rstrip("/")
    return path[len(base) + 1 :] if path == base or path.startswith(f"{base}/") else None
