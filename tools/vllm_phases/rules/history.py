"""What an earlier vLLM release knew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm_phases import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

    from vllm_phases.catalogue import EngineRelease


def last_release(version: str, knows: Callable[[EngineRelease], bool]) -> str | None:
    """The newest release of the catalogue before `version` that knows something; None if none does."""
    known = catalogue.versions()
    earlier = reversed(known[: known.index(version)])
    return next((release for release in earlier if knows(catalogue.load(release))), None)
