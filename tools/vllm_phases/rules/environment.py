"""ENV: environment variables of engines, held against those that their release reads."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.rules import repairs
from vllm_phases.rules.history import last_release
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.catalogue import EngineRelease

_LIKENESS = 0.8  # every name begins alike, so difflib's default of 0.6 would take any for a misspelling


@rule(
    "ENV001",
    "unknown-environment",
    Severity.WARNING,
    scope=Engine,
    versioned=True,
    fix="leaves out what only a former engine read; with --unsafe-fixes, writes the name that it resembles most.",
)
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
        ```yaml
        env: [{name: VLLM_USE_V1, value: "1"}, {name: VLLM_LOGING_LEVEL, value: DEBUG}]
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
            message, fix, near = _words(name, engine.release)
            fact = context.facts("environment_successors").get(name, {})
            repair = repairs.without_variable(variable) if fact.get("drop") else None
            if near and not fact and near not in engine.variables:
                repair = repairs.variable_renamed(variable, near, safe=False)
            yield Problem(variable, message, fact.get("use") or fix, repair=repair)


@rule(
    "ENV002",
    "unread-name",
    Severity.WARNING,
    scope=Engine,
    fix="writes the name that is read, where nothing else speaks of the old one.",
)
def unread_name(engine: Engine, context: Context) -> Iterator[Problem]:
    """A variable whose name nothing reads, close to one that is read.

    Why:
        The engine starts as if it were not there: a gated model is then refused with 401.

    Bad:
        ```yaml
        env:
          - {name: HUGGINGFACE_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}
        ```

    Good:
        ```yaml
        env:
          - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}
        ```
        ```yaml
        env:
          - {name: HUGGINGFACE_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}
          - {name: HF_TOKEN, value: $(HUGGINGFACE_TOKEN)}
        ```

    References:
        - https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables
    """
    if not engine.container.complete or "HF_TOKEN" in engine.variables:
        return
    for name, fact in context.facts("environment_successors").items():
        if fact.get("never") and name in engine.variables:
            variable = engine.variables[name]
            repair = repairs.variable_renamed(variable, fact["name"])
            yield Problem(variable, f"nothing reads {name}", fact["use"], repair=repair)


@rule(
    "ENV003",
    "vllm-port-variable",
    Severity.WARNING,
    scope=Engine,
    fix="leaves it out, where nothing else speaks of it.",
)
def vllm_port_variable(engine: Engine, context: Context) -> Iterator[Problem]:
    """VLLM_PORT that is meant as the port of the API, or is no number.

    Why:
        VLLM_PORT is where the engine begins to look for ports of its own processes. The API listens at --port,
        8000 by default; both the same can meet. A text that is no number ends the engine at start.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --port=8000]
        env: [{name: VLLM_PORT, value: "8000"}]
        ```
        ```yaml
        env: [{name: VLLM_PORT, value: "tcp://10.0.0.7:8000"}]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --port=8000]
        env: [{name: VLLM_PORT, value: "29600"}]
        ```

    References:
        - vllm/envs.py, get_vllm_port
        - https://github.com/vllm-project/vllm/issues/15613
    """
    given = engine.variable("VLLM_PORT")
    if given is None:
        return
    variable, out = engine.variables["VLLM_PORT"], repairs.without_variable(engine.variables["VLLM_PORT"])
    if not given.strip().isdecimal():
        message = f"VLLM_PORT is {given!r}, but must be a number"
        yield Problem(variable, message, "Remove VLLM_PORT.", Severity.ERROR, out)
    elif int(given) == engine.port:
        message = (
            f"VLLM_PORT is {given}, the port of the API; it is the first port of the engine's own processes"
        )
        yield Problem(variable, message, "Remove VLLM_PORT; --port sets the port of the API.", repair=out)


def _words(name: str, release: EngineRelease) -> tuple[str, str, str | None]:
    """Message, remediation and the name that it resembles."""
    message = f"vLLM {release.version} does not read {name}"
    if last := last_release(release.version, lambda earlier: name in earlier.env):
        return f"{message} any more; {last} was the last release that did", f"Remove {name}.", None
    if near := get_close_matches(name, sorted(release.env), 1, _LIKENESS):
        return f"{message}; did you mean {near[0]}?", f"Write {near[0]}.", near[0]
    return message, f"Remove {name}.", None
