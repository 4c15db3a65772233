"""LINT: what the linter says of its own work. LINT001 to LINT004 beside these come from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm_phases import catalogue
from vllm_phases.finding import Severity
from vllm_phases.model import Release
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule("LINT003", "unknown-version", Severity.NOTE, scope=Release)
def unknown_version(release: Release, context: Context) -> Iterator[Problem]:
    """Engines whose vLLM version nothing tells, so that rules tied to versions pass them over.

    Why:
        Flags, variables and connectors belong to releases. An image by digest, or of another name than the
        official ones, does not say which release it holds.

    Bad:
        ```yaml
        image: registry.example.net/serving/engine:stable
        command: [vllm, serve]
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.33.0
        ```

    References:
        - docs/lint.md, the version of an engine
    """
    unknown = [engine for engine in release.engines if engine.release is None]
    if unknown:
        count = f"{len(unknown)} of {len(release.engines)} engines"
        old = unknown[0].version
        reason = f"vLLM {old.text} is none of the catalogue's" if old else "nothing tells the vLLM version"
        known = f"{catalogue.versions()[0]} to {catalogue.versions()[-1]}"
        message = f"{reason}, here and in all for {count}: rules tied to a version were skipped"
        fix = f"Give --vllm-version, or the annotation vllm-phases.dev/vllm-version ({known} are known)."
        yield Problem(unknown[0].container.image, message, fix)
