"""Environment variables of engines, held against those that their release reads."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from vllm_phases.finding import Finding, Severity
from vllm_phases.rules.history import last_release
from vllm_phases.rules.origin import origin
from vllm_phases.yaml_document import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.catalogue import EngineRelease
    from vllm_phases.rules.engine import Engine
    from vllm_phases.values import Values

_LIKENESS = 0.8  # every name begins alike, so difflib's default of 0.6 would take any for a misspelling


def check(engine: Engine, release: EngineRelease, values: Values) -> Iterator[Finding]:
    """ENV001 unknown-environment: a VLLM_ variable that nothing in this release reads.

    vLLM itself only logs a warning, so a misspelt variable, or one that a release dropped, changes nothing.
    """
    for name in engine.environment:
        if name.startswith("VLLM_") and name not in release.env:
            path, location = origin(engine, values, "env", name)
            message, remediation = _words(name, release)
            yield Finding(
                "ENV001",
                "unknown-environment",
                Severity.WARNING,
                message,
                remediation,
                dotted(path),
                engine.manifest.id,
                location,
            )


def _words(name: str, release: EngineRelease) -> tuple[str, str]:
    message = f"vLLM {release.version} does not read {name}"
    if last := last_release(release.version, lambda earlier: name in earlier.env):
        return f"{message} any more; {last} was the last release that did", f"Remove {name}."
    if near := get_close_matches(name, sorted(release.env), 1, _LIKENESS):
        return f"{message}; did you mean {near[0]}?", f"Write {near[0]}."
    return message, f"Remove {name}."
