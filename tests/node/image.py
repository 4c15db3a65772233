"""The image of all pods on the tests' node: one layer, under every name that a pod asks for."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from typing import TYPE_CHECKING, Any

from vllm_phases import manifests, values
from vllm_phases.render import Release
from vllm_phases.render.embedded import EmbeddedRenderer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def write_archive(path: Path, layer: Path, references: Sequence[str]) -> None:
    """Write an archive such as `docker save` makes. As the sandbox of a pod the image only sleeps."""
    digest = hashlib.sha256(layer.read_bytes()).hexdigest()
    config = {
        "architecture": ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Env": [f"PATH={PATH}"], "Cmd": ["sleep", "infinity"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": list(references), "Layers": [layer.name]}]
    with tarfile.open(path, "w") as archive:
        archive.add(layer, layer.name)
        for name, content in (("config.json", config), ("manifest.json", manifest)):
            encoded = json.dumps(content).encode()
            member = tarfile.TarInfo(name)
            member.size = len(encoded)
            archive.addfile(member, io.BytesIO(encoded))


def images_of(chart: Path, files: Sequence[Path]) -> set[str]:
    """Return the references of all images that a chart asks for with these values files."""
    rendering = EmbeddedRenderer().render(chart, values.load(files), Release())
    return {image for manifest in manifests.parse(rendering) for image in images_in(manifest.document)}


def images_in(node: Any) -> Iterator[str]:
    """Find the images of the containers in an object, however deep its pod template lies."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("containers", "initContainers"):
                yield from (container["image"] for container in value)
            yield from images_in(value)
    elif isinstance(node, list):
        for value in node:
            yield from images_in(value)
