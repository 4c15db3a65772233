"""Releases of llm-d's parts, and what the catalogue says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm_phases.catalogue.store import sort_key

if TYPE_CHECKING:
    from collections.abc import Mapping

Version = tuple[int, int, int]


def before(version: Version, entry: Mapping[str, Any], field: str = "since") -> bool:
    """Whether a release is older than the one that a field of an entry names."""
    return field in entry and version < sort_key(entry[field])


def reached(version: Version, entry: Mapping[str, Any], field: str = "until") -> bool:
    """Whether a release is the one that a field of an entry names, or a newer one."""
    return field in entry and version >= sort_key(entry[field])


def spelled(version: Version) -> str:
    """A release as its tag says it: v0.10.0."""
    return "v" + ".".join(map(str, version))
