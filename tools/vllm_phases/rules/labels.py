"""Texts that are not the last word: labels that no template shows, and templates with holes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vllm_phases.model import Release
    from vllm_phases.rules.registry import Context


def added_by_controllers(selector: Mapping[str, str], context: Context) -> bool:
    """Whether a selector names labels that only controllers put on pods, such as a LeaderWorkerSet's index."""
    patterns = context.facts("llmd")["hidden_labels"]["patterns"]
    return any(re.fullmatch(pattern, key) for pattern in patterns for key in selector)


def kustomized(release: Release) -> bool:
    """Whether kustomize has yet to build what is here, so that names and labels are not the last word."""
    return bool(release.of_kind("Kustomization"))


def unfinished(text: str) -> bool:
    """Whether a text still has holes for a template engine, a shell or envsubst to fill."""
    return "{{" in text or "$" in text
