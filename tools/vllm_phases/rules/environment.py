"""ENV: environment variables of engines, held against those that their release reads."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.rules.history import last_release
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.catalogue import EngineRelease

_LIKENESS = 0.8  # every name begins alike, so difflib's default of 0.6 would take any for a misspelling


@rule("ENV001", "unknown-environment", Severity.WARNING, scope=Engine, versioned=True)
def unknown_environment(engine: Engine, context: Context) -> Iterator[Problem]:
    """A VLLM_ variable that nothing in the engine's release reads.

    Why:
        vLLM only logs a warning, so a misspelt variable, or one that a release dropped, changes nothing.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.21.0
        env:
          - {name: VLLM_ATTENTION_BACKEND, value: TRITON_ATTN}
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.21.0
        args: [Qwen/Qwen3-8B, --attention-backend=TRITON_ATTN]
        ```

    References:
        - vllm/envs.py of the release, read by `vllm-phases catalogue add`
        - https://github.com/vllm-project/vllm/issues/50292
    """
    for name, variable in engine.variables.items():
        if engine.release and name.startswith("VLLM_") and name not in engine.release.env:
            yield Problem(variable, *_words(name, engine.release))


def _words(name: str, release: EngineRelease) -> tuple[str, str]:
    message = f"vLLM {release.version} does not read {name}"
    if last := last_release(release.version, lambda earlier: name in earlier.env):
        return f"{message} any more; {last} was the last release that did", f"Remove {name}."
    if near := get_close_matches(name, sorted(release.env), 1, _LIKENESS):
        return f"{message}; did you mean {near[0]}?", f"Write {near[0]}."
    return message, f"Remove {name}."
