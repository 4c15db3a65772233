"""What GPU nodes must be told so that rendered engines find the parts of a GPU that they ask for.

Functions below make values or configuration of the programs that run on the nodes, as plain data.
Sources: NVIDIA/k8s-device-plugin v0.20.0 (README.md, api/config/v1), NVIDIA/mig-parted v0.15.0 (README.md),
Project-HAMi/HAMi v2.10.0 (charts/hami/values.yaml).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Mode = Literal["hami", "hami-mig", "mig", "time-slicing", "mps"]

_LABEL = "For the nodes of decode: kubectl label node NODE"
_REPLICAS = "vllm-phases.dev/replicas-per-gpu"
_STRATEGY = "nvidia.com/gpu.sharing-strategy"
_WORKLOADS = ("Deployment", "LeaderWorkerSet")
_MIG = re.compile(r"nvidia\.com/mig-(?P<profile>\d+g\.\d+gb)")
_CLAIMED = re.compile(r"\.profile == '(?P<profile>\d+g\.\d+gb)'")
_CONFIGURED = re.compile(r"all-(?P<profile>\d+g\.\d+gb)")


@dataclass(frozen=True, order=True)
class Share:
    """A way in which engines share the GPUs of some nodes.

    replicas  engines on one GPU
    what      MIG profile, or resource name of a shared card; "" for HAMi
    strategy  of MIG: mixed, single, or "" for claims
    """

    mode: Mode
    replicas: int
    what: str = ""
    strategy: str = ""


@dataclass(frozen=True)
class Config:
    """One document for the nodes: what it is, as lines of a comment, and its content."""

    comment: tuple[str, ...]
    content: Mapping[str, Any]


def shares(objects: Iterable[Mapping[str, Any]]) -> list[Share]:
    """How the engines of rendered objects share GPUs, each way once."""
    everything = list(objects)
    claims = {
        each["metadata"]["name"]: match["profile"]
        for each in everything
        if each.get("kind") == "ResourceClaimTemplate" and (match := _CLAIMED.search(json.dumps(each)))
    }
    return sorted({share for workload in everything for share in _of_workload(workload, claims)})


def configs(found: Sequence[Share], nodes: Sequence[str]) -> Iterator[Config]:
    """The documents for these ways; nodes are the names of those on which HAMi makes MIG instances."""
    shared = [share for share in found if share.mode in ("time-slicing", "mps")]
    instances = [share for share in found if share.mode == "mig"]
    slices = [share for share in found if share.mode in ("hami", "hami-mig")]
    if shared or any(share.strategy for share in instances):
        yield _device_plugin(shared, instances)
    if instances:
        yield _layouts(instances)
    if slices:
        yield _hami(slices, nodes)


def text(content: Mapping[str, Any]) -> str:
    """YAML in the order of the content, with a text of several lines as such."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def literal(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, literal)
    return yaml.dump(dict(content), Dumper=Dumper, sort_keys=False, width=200)


def _template(workload: Mapping[str, Any]) -> Mapping[str, Any]:
    """The pod template of a workload, of a LeaderWorkerSet that of its first pod; {} for other objects."""
    if workload.get("kind") not in _WORKLOADS:
        return {}
    group = workload["spec"].get("leaderWorkerTemplate", {})
    template: Mapping[str, Any] = (
        group.get("leaderTemplate") or group.get("workerTemplate") or workload["spec"]["template"]
    )
    return template


def _annotation(workload: Mapping[str, Any]) -> str:
    """How many engines a GPU is meant to hold; "" where it is not shared."""
    metadata = _template(workload).get("metadata", {})
    return str((metadata.get("annotations") or {}).get(_REPLICAS, ""))


def _of_workload(workload: Mapping[str, Any], claims: Mapping[str, str]) -> Iterator[Share]:
    """The ways of one workload; claims are the MIG profiles of claims by their name."""
    if not (count := _annotation(workload)):
        return
    replicas, spec = int(count), _template(workload)["spec"]
    selector = spec.get("nodeSelector") or {}
    limits = [name for each in spec["containers"] for name in each.get("resources", {}).get("limits", {})]
    for profile, strategy in _profiles(spec, selector, limits, claims):
        yield Share("mig", replicas, profile, strategy)
    if "nvidia.com/gpumem" in limits:
        mode = _template(workload)["metadata"]["annotations"].get("nvidia.com/vgpu-mode")
        yield Share("hami-mig" if mode == "mig" else "hami", replicas)
    elif "nvidia.com/mps.capable" in selector:
        yield Share("mps", replicas, next(name for name in limits if name.startswith("nvidia.com/")))
    elif selector.get(_STRATEGY) == "time-slicing":
        yield Share("time-slicing", replicas, next(name for name in limits if name.startswith("nvidia.com/")))


def _profiles(
    spec: Mapping[str, Any], selector: Mapping[str, str], limits: Sequence[str], claims: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The MIG profiles of a pod, each with the strategy by which the device plugin offers it."""
    for match in filter(None, map(_MIG.fullmatch, limits)):
        yield match["profile"], "mixed"
    if configured := _CONFIGURED.fullmatch(selector.get("nvidia.com/mig.config", "")):
        yield configured["profile"], "single"
    for claim in spec.get("resourceClaims", ()):
        if profile := claims.get(claim.get("resourceClaimTemplateName")):
            yield profile, ""


def _device_plugin(shared: Sequence[Share], instances: Sequence[Share]) -> Config:
    """Values of the chart of NVIDIA's device plugin.

    Its own policy, `distributed`, gives each engine a card of its own while there are idle ones.
    """
    configurations: dict[str, Any] = {"default": {"version": "v1"}}
    for share in shared:
        key = "timeSlicing" if share.mode == "time-slicing" else "mps"
        sharing: dict[str, Any] = {"renameByDefault": share.what != "nvidia.com/gpu"}
        if share.mode == "time-slicing":
            sharing["failRequestsGreaterThanOne"] = True
        sharing["resources"] = [{"name": "nvidia.com/gpu", "replicas": share.replicas}]
        configurations[f"{share.mode}-{share.replicas}"] = {
            "version": "v1",
            "flags": {"plugin": {"sharedDevicesAllocationPolicy": "packed"}},
            "sharing": {key: sharing},
        }
    for strategy in sorted({share.strategy for share in instances} - {""}):
        configurations[f"mig-{strategy}"] = {"version": "v1", "flags": {"migStrategy": strategy}}
    names = [name for name in configurations if name != "default"]
    comment = (
        "Values of the chart nvidia-device-plugin, 0.20.0 or newer.",
        *(
            f"For the nodes of decode: kubectl label node NODE nvidia.com/device-plugin.config={name}"
            for name in names
        ),
    )
    texts = {name: text(content) for name, content in configurations.items()}
    return Config(comment, {"config": {"default": "default", "map": texts}, "gfd": {"enabled": True}})


def _layouts(instances: Sequence[Share]) -> Config:
    """The configuration of mig-parted, which MIG manager reads: every GPU of a node cut alike."""
    cuts = {share.what: share.replicas for share in instances}
    layouts = {
        f"all-{profile}": [{"devices": "all", "mig-enabled": True, "mig-devices": {profile: count}}]
        for profile, count in cuts.items()
    }
    comment = (
        "Configuration of mig-parted, for MIG manager or `nvidia-mig-parted apply`.",
        *(
            f"For the nodes of decode: kubectl label node NODE nvidia.com/mig.config={name}"
            for name in layouts
        ),
    )
    return Config(comment, {"version": "v1", "mig-configs": layouts})


def _hami(slices: Sequence[Share], nodes: Sequence[str]) -> Config:
    """Values of HAMi's chart.

    The split count caps the slices of a card. Scaled memory is promised twice, and scaled cores switch off
    HAMi's check that a card is exclusive. Pods choose to be packed by annotations of their own.
    """
    plugin: dict[str, Any] = {
        "deviceSplitCount": max(share.replicas for share in slices),
        "deviceMemoryScaling": 1,
        "deviceCoreScaling": 1,
        "nodeSelector": {"gpu": "on"},
    }
    content: dict[str, Any] = {"devicePlugin": plugin}
    comment = [
        "Values of HAMi's chart, 2.10.0, which belongs into kube-system once a cluster.",
        "For its nodes: kubectl label node NODE gpu=on. NVIDIA's device plugin must not run there: with the",
        "GPU Operator set devicePlugin.enabled to false, and where it uses CDI (25.10 and newer),",
        "devicePlugin.runtimeClassName here to nvidia.",
    ]
    if any(share.mode == "hami-mig" for share in slices):
        modes = [{"name": name, "operatingmode": "mig"} for name in nodes]
        content["nodeConfiguration"] = {"config": json.dumps({"nodeconfig": modes})}
        if not nodes:
            comment.append(
                "Name the nodes on which HAMi shall make MIG instances: --node NAME, once for each."
            )
    return Config(tuple(comment), content)
