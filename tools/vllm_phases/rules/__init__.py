"""The linter: rules look at rendered objects and point at the line of the values behind what they see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm_phases.rules import arguments, environment
from vllm_phases.rules.engine import engines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vllm_phases.catalogue import EngineRelease
    from vllm_phases.finding import Finding
    from vllm_phases.manifests import Manifest
    from vllm_phases.values import Values


def run(manifests: Iterable[Manifest], release: EngineRelease, values: Values) -> Iterator[Finding]:
    """What every rule finds in the objects of one rendering, for engines of one vLLM release."""
    for manifest in manifests:
        for engine in engines(manifest):
            yield from arguments.check(engine, release, values)
            yield from environment.check(engine, release, values)
