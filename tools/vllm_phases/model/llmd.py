"""llm-d's parts: the routing sidecar, the endpoint picker with its configuration, and the pool."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vllm_phases import catalogue
from vllm_phases.sources.document import embedded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.model.arguments import Arguments
    from vllm_phases.model.container import Container
    from vllm_phases.model.objects import Object
    from vllm_phases.model.pod import Pod
    from vllm_phases.sources.document import Node

POOL_GROUPS = ("inference.networking.k8s.io", "inference.networking.x-k8s.io")
_RELEASE = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True, eq=False, repr=False)
class Component:
    """A program beside the engine: a sidecar, a picker or a router.

    kind     its key in the catalogue's components: "sidecar", "picker", "vllm-router" …
    version  of its image's tag as numbers, (0, 10, 0); None where the tag tells none
    """

    kind: str
    pod: Pod
    container: Container
    arguments: Arguments

    @property
    def node(self) -> Node:
        """Its container."""
        return self.container.node

    @property
    def version(self) -> tuple[int, int, int] | None:
        """Release of the image as numbers."""
        return _numbers(self.container.image.tag)


class Sidecar(Component):
    """llm-d's routing sidecar, which takes requests for a decode engine in the same pod."""


class Router(Component):
    """A router that knows its engines by URL or by label: vllm-router, production-stack's."""


class Picker(Component):
    """llm-d's endpoint picker, or the one of the Gateway API inference extension that it grew from."""

    @property
    def version(self) -> tuple[int, int, int] | None:
        """Release as numbers; of the extension's picker, the llm-d picker that was built on it."""
        own = super().version
        facts = catalogue.facts("llmd")["extension_releases"]
        if own is None or not self.container.image.path.endswith(tuple(facts["images"])):
            return own
        counterpart = facts["releases"].get(f"{own[0]}.{own[1]}")
        return _numbers(counterpart) if counterpart else None

    @property
    def pool_name(self) -> str | None:
        """The pool that its options name; None where they select endpoints in another way."""
        return self.arguments.text("pool-name") or self.arguments.text("poolName")

    @property
    def config_file(self) -> str | None:
        """The path of its configuration."""
        return self.arguments.text("config-file") or self.arguments.text("configFile")


@dataclass(frozen=True, eq=False, repr=False)
class PickerConfig:
    """An EndpointPickerConfig; node is its root, wherever it is written down.

    holder  the ConfigMap with it, or None
    key     under which the ConfigMap has it
    """

    node: Node
    holder: Object | None
    key: str

    @property
    def api_version(self) -> str:
        """Its apiVersion."""
        return self.node.text("apiVersion")

    def plugins(self) -> dict[str, Node]:
        """Plugin by name; a plugin without a name is called by its type."""
        return {plugin.text("name") or plugin.text("type"): plugin for plugin in self.node.items("plugins")}

    def of_type(self, *types: str) -> tuple[Node, ...]:
        """The plugins of some types."""
        return tuple(plugin for plugin in self.node.items("plugins") if plugin.text("type") in types)

    def profiles(self) -> dict[str, Node]:
        """Scheduling profile by name."""
        return {profile.text("name"): profile for profile in self.node.items("schedulingProfiles")}


@dataclass(frozen=True, eq=False, repr=False)
class Pool:
    """An InferencePool of either group, or the pods that a picker selects by its own options.

    object        of a picker's own selection, what has the picker's pods
    selector      labels that its pods have
    target_ports  with the nodes of their numbers
    picker        name of the picker's Service, "" where it has none
    chooser       the picker that selects the pods itself
    """

    object: Object
    selector: Mapping[str, str]
    target_ports: tuple[tuple[int, Node], ...]
    picker: str
    chooser: Picker | None = None

    @property
    def node(self) -> Node:
        """The object."""
        return self.object.node


def _numbers(tag: str) -> tuple[int, int, int] | None:
    match = _RELEASE.match(tag)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def pool(found: Object) -> Pool | None:
    """Read an InferencePool; None for any other object."""
    if found.kind != "InferencePool" or found.group not in POOL_GROUPS:
        return None
    node = found.node
    nested = node.at("spec", "selector", "matchLabels")
    selector = nested if nested else node.at("spec", "selector")
    ports = [(item.number("number"), item.at("number")) for item in node.items("spec", "targetPorts")]
    if node.at("spec", "targetPortNumber"):
        ports.append((node.number("spec", "targetPortNumber"), node.at("spec", "targetPortNumber")))
    reference = "endpointPickerRef" if node.at("spec", "endpointPickerRef") else "extensionRef"
    return Pool(
        found,
        selector.mapping(),
        tuple((number, place) for number, place in ports if number is not None),
        node.text("spec", reference, "name"),
    )


def selection(picker: Picker) -> Pool | None:
    """The pods that --endpoint-selector takes; None without it, or where it is more than a list of labels."""
    option = picker.arguments.last("endpoint-target-ports")
    pairs = [part.partition("=") for part in (picker.arguments.text("endpoint-selector") or "").split(",")]
    listed = [part.strip() for part in (option.value or "").split(",")] if option else []
    known = all(middle and value for _, middle, value in pairs) and all(map(str.isdecimal, listed))
    if not known or picker.pod.owner is None:
        return None
    place = (option.word.node if option else None) or picker.node
    ports = tuple((int(part), place) for part in listed)
    selector = {name.strip(): value.strip() for name, _, value in pairs}
    return Pool(picker.pod.owner, selector, ports, "", picker)


def picker_configs(config_map: Object) -> Iterator[PickerConfig]:
    """The configurations of a picker among the data of a ConfigMap."""
    for key, node in config_map.node.entries("data"):
        if isinstance(node.value, str) and "EndpointPickerConfig" in node.value:
            root = embedded(node)
            if root is not None and root.text("kind") == "EndpointPickerConfig":
                yield PickerConfig(root, config_map, key)
