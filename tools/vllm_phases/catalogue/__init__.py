"""Facts of vLLM by release: flags, environment variables, connectors, images, metrics and features.

`load(version)` answers what a release knows; `facts(name)` gives the hand-written files beside it. The data
is in data/, made by `vllm-phases catalogue add` or written by hand with its source; no fact stands in code.
"""

from __future__ import annotations

from vllm_phases.catalogue.release import (
    Config,
    EngineRelease,
    Flag,
    KvField,
    Resolution,
    UnknownVersion,
    load,
    versions,
)
from vllm_phases.catalogue.store import facts

__all__ = [
    "Config",
    "EngineRelease",
    "Flag",
    "KvField",
    "Resolution",
    "UnknownVersion",
    "facts",
    "load",
    "versions",
]
