"""What documents deploy, as vLLM, Kubernetes and llm-d will see it: engines and all that belongs to them.

`Release(documents, vllm_version)` reads documents once and lazily; relations between its parts are functions
in `relations` and `access`. Every part keeps the node it was read from, so that a finding knows its line.
"""

from __future__ import annotations

from vllm_phases.model.arguments import Argument, Arguments, Key
from vllm_phases.model.container import Container, Image, Mount, Port, Probe, Variable
from vllm_phases.model.engine import Engine
from vllm_phases.model.gpu import GpuRequest
from vllm_phases.model.kv import KvTransfer
from vllm_phases.model.llmd import Component, Picker, PickerConfig, Pool, Router, Sidecar
from vllm_phases.model.network import Autoscaler, Monitor, Policy, Route, Service
from vllm_phases.model.objects import Object
from vllm_phases.model.pod import Pod
from vllm_phases.model.release import Release
from vllm_phases.sources.document import Document, Node
from vllm_phases.sources.shell import Word

__all__ = [
    "Argument",
    "Arguments",
    "Autoscaler",
    "Component",
    "Container",
    "Document",
    "Engine",
    "GpuRequest",
    "Image",
    "Key",
    "KvTransfer",
    "Monitor",
    "Mount",
    "Node",
    "Object",
    "Picker",
    "PickerConfig",
    "Pod",
    "Policy",
    "Pool",
    "Port",
    "Probe",
    "Release",
    "Route",
    "Router",
    "Service",
    "Sidecar",
    "Variable",
    "Word",
]
