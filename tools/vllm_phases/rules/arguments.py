"""ARG: flags of engines, held against the parser of their release."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.rules import repairs
from vllm_phases.rules.history import last_release
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vllm_phases.catalogue import EngineRelease, Flag, Resolution
    from vllm_phases.model import Argument
    from vllm_phases.sources.repair import Repair

# What the parser reads as a value of each type (vllm/utils/argparse_utils.py); other types take any text.
_INT = r"[+-]?\d+(_\d+)*"
_HUMAN_INT = rf"{_INT}|\d+(\.\d+)?[kmgt]|\d+[KMGT]"
_NUMBERS = {
    "int": (_INT, "a whole number"),
    "human int": (_HUMAN_INT, "a whole number, such as 4096, 4k (4000) or 4K (4096)"),
    "human int or auto": (
        rf"{_HUMAN_INT}|(?i:auto)",
        "auto or a whole number, such as 4096, 4k (4000) or 4K (4096)",
    ),
}
_READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "float": (float, "a number"),
    "json": (json.loads, "JSON"),
}


@rule(
    "ARG001",
    "unknown-flag",
    Severity.ERROR,
    scope=Engine,
    versioned=True,
    fix="with --unsafe-fixes, writes the flag that it resembles most.",
)
def unknown_flag(engine: Engine, context: Context) -> Iterator[Problem]:
    """A flag that no release up to the engine's has, or a beginning that fits several flags.

    Why:
        vLLM's parser refuses what it does not know, so the server does not start.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --max-modell-len=4096]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --max-model-len=4096]
        ```
        ```yaml
        args: [Qwen/Qwen2.5-Omni-7B, --omni, --stage-configs-path=/etc/stages.yaml]  # vLLM-Omni's parser
        ```

    References:
        - `vllm serve --help=all` of the release, read by `vllm-phases catalogue add`
    """
    if "omni" in engine.arguments:
        return
    for option, resolution, release in _resolved(engine):
        if resolution.matches and resolution.flag is None:
            message = f"{_this(release)} takes {resolution.option} for any of {', '.join(resolution.matches)}"
            yield Problem(option, message, _successor(resolution.option, context) or "Write the whole flag.")
        elif (
            resolution.flag is None and not _last_with(resolution.option, release) and not _has_blank(option)
        ):
            yield _unknown(option, resolution.option, release, context)


def _unknown(option: Argument, name: str, release: EngineRelease, context: Context) -> Problem:
    """A flag that no release of the catalogue has: an older one's, or else misspelt."""
    message = f"{_this(release)} has no flag {name}"
    if successor := _successor(name, context):
        return Problem(option, f"{message} any more", successor)
    if near := release.nearest(name):
        repair = repairs.respelt(option.word, _written(option), near, safe=False)
        return Problem(option, f"{message}; did you mean {near}?", f"Write {near}.", repair=repair)
    return Problem(option, message, f"Remove {name}.")


def _successor(name: str, context: Context) -> str | None:
    """What to write instead of a flag that went away, where that is known."""
    entry = context.facts("argument_successors").get(name.lstrip("-"))
    return entry["use"] if entry else None


@rule(
    "ARG002",
    "removed-flag",
    Severity.ERROR,
    scope=Engine,
    versioned=True,
    fix="leaves it out where it does nothing any more, or gives its value to the flag that takes it now.",
)
def removed_flag(engine: Engine, context: Context) -> Iterator[Problem]:
    """A flag that only earlier releases have.

    Why:
        vLLM's parser refuses what it does not know, so the server does not start after an update.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args: [Qwen/Qwen3-Embedding-4B, --task=embed]
        ```
        ```yaml
        image: vllm/vllm-openai:v0.12.0
        args: [Qwen/Qwen3-Embedding-4B, '--override-pooler-config={"pooling_type":"CLS"}']
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args: [Qwen/Qwen3-Embedding-4B, --runner=pooling, --convert=embed]
        ```

    References:
        - `vllm serve --help=all` of the releases, read by `vllm-phases catalogue add`
        - https://github.com/gpustack/gpustack/issues/3991
    """
    for option, resolution, release in _resolved(engine):
        name = resolution.option
        if not resolution.matches and (last := _last_with(name, release)):
            message = f"{_this(release)} has no flag {name} any more; {last} was the last release that had it"
            fact = context.facts("argument_successors").get(name.lstrip("-"), {})
            fix = fact.get("use") or f"Remove {name}, or run vLLM {last}."
            yield Problem(option, message, fix, repair=repairs.succeeded(option, fact, engine))


@rule(
    "ARG003",
    "bad-choice",
    Severity.ERROR,
    scope=Engine,
    versioned=True,
    fix="writes the choice that differs in upper and lower case only.",
)
def bad_choice(engine: Engine, context: Context) -> Iterator[Problem]:
    """A value that is not among those that the flag takes.

    Why:
        vLLM's parser refuses it, so the server does not start.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args: [Qwen/Qwen3-8B, --prefix-caching-hash-algo=sha256_cbor_64bit]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --dtype=BFloat16]
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args: [Qwen/Qwen3-8B, --prefix-caching-hash-algo=sha256_cbor]
        ```

    References:
        - `vllm serve --help=all` of the release, read by `vllm-phases catalogue add`
        - https://github.com/kserve/kserve/issues/5011
    """
    for option, flag, value in _given_values(engine):
        if _is_choice(value, flag):
            continue
        choices = ", ".join(map(str, flag.choices or ()))
        message = f"{_spelling(option)} is {value!r}, but takes only {choices}"
        alike = [str(one) for one in flag.choices or () if str(one).lower() == value.lower()]
        repair = repairs.value_set(option, alike[0]) if len(alike) == 1 else None
        yield Problem(option, message, f"Choose one of {choices}.", repair=repair)


@rule(
    "ARG004",
    "bad-type",
    Severity.ERROR,
    scope=Engine,
    versioned=True,
    fix="writes a whole number without an exponent, and a switch without =true.",
)
def bad_type(engine: Engine, context: Context) -> Iterator[Problem]:
    """A value that is not what the flag takes: no number, no JSON, or one where none belongs.

    Why:
        vLLM's parser refuses it, so the server does not start. Helm writes large numbers as 1.31072e+05.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --max-model-len=1.31072e+05]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --enable-prefix-caching=true]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --max-model-len=131072]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, "--max-model-len=${LENGTH}", "--port={{ port }}"]
        ```

    References:
        - `vllm serve --help=all` of the release, read by `vllm-phases catalogue add`
        - vllm/utils/argparse_utils.py (human_readable_int)
    """
    for option, resolution, _ in _resolved(engine):
        if resolution.flag is not None and _is_spelt_out(option, resolution.flag):
            for message, remediation in _misfits(option, resolution.flag):
                yield Problem(option, message, remediation, repair=_without_truth(option))
    for option, flag, value in _given_values(engine):
        if _is_choice(value, flag) and (wanted := _wanted(value, _kind(flag))):
            message = f"{_spelling(option)} is {value!r}, but must be {wanted}"
            yield Problem(option, message, f"Set {wanted}.", repair=_whole(option, value, wanted))


@rule(
    "ARG005", "abbreviated-flag", Severity.WARNING, scope=Engine, versioned=True, fix="writes the whole flag."
)
def abbreviated_flag(engine: Engine, context: Context) -> Iterator[Problem]:
    """A flag that the parser only completes.

    Why:
        A later release may have a second flag with the same beginning, and then refuses this one.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --gpu-memory-util=0.8]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --gpu-memory-utilization=0.8]
        ```

    References:
        - https://docs.python.org/3/library/argparse.html#allow-abbrev
    """
    for option, resolution, release in _resolved(engine):
        if resolution.abbreviated and option.written.startswith("--"):
            spelling = resolution.matches[0]
            message = (
                f"{_this(release)} completes {resolution.option} to {spelling}; a later release may refuse it"
            )
            repair = repairs.respelt(option.word, _written(option), spelling)
            yield Problem(option, message, f"Write {spelling}.", repair=repair)


def _written(option: Argument) -> str:
    """The flag as it is written, without its value and its keys."""
    return option.written.partition(".")[0]


def _without_truth(option: Argument) -> Repair | None:
    """A switch without the value true."""
    text = option.word.text
    if option.keys or not option.attached or option.values[0].text.lower() != "true":
        return None
    return repairs.respelt(option.word, text, option.written)


def _whole(option: Argument, value: str, wanted: str) -> Repair | None:
    """A whole number that is written with an exponent, in digits."""
    if "whole number" not in wanted or not re.fullmatch(r"\d(\.\d+)?e\+?\d{1,2}", value):
        return None
    return repairs.value_set(option, f"{float(value):.0f}") if float(value).is_integer() else None


def _is_spelt_out(option: Argument, flag: Flag) -> bool:
    """Whether an option is written as such; -O3, -n2 and the like hold their value."""
    return option.written.startswith("--") or option.written in flag.options


def _has_blank(option: Argument) -> bool:
    """Whether flag and value are one word, which is told as ARG014."""
    return " " in option.written


def _resolved(engine: Engine) -> Iterator[tuple[Argument, Resolution, EngineRelease]]:
    """The options of an engine as the parser of its release reads them."""
    for option in engine.arguments.options:
        if engine.release is not None and option.resolution is not None:
            yield option, option.resolution, engine.release


def _given_values(engine: Engine) -> Iterator[tuple[Argument, Flag, str]]:
    """Each known value of a whole flag that takes values."""
    for option, resolution, _ in _resolved(engine):
        flag = resolution.flag
        if flag is None or flag.type is None or option.keys or not _is_spelt_out(option, flag):
            continue
        for word in option.values:
            if word.known and not (flag.type.startswith("optional ") and word.text in ("", "None")):
                yield option, flag, word.text


def _misfits(option: Argument, flag: Flag) -> Iterator[tuple[str, str]]:
    """What is wrong with the form of an option, and what to write."""
    spelling = _spelling(option)
    if option.keys:
        if "json" not in (flag.type or ""):
            yield f"{option.written}: {spelling} takes no keys", f"Write {spelling} without a key."
    elif flag.type is None:
        if option.attached:
            value = option.values[0].text
            yield (
                f"{spelling} takes no value, but is given {value!r}",
                f"Write {spelling} alone; in values, {spelling[2:]}: true.",
            )
    elif not option.values and flag.nargs not in ("?", "*"):
        yield f"{spelling} has no value", f"Give {spelling} a value."


def _spelling(option: Argument) -> str:
    return option.resolution.matches[0] if option.resolution else option.written


def _this(release: EngineRelease) -> str:
    return f"vLLM {release.version}"


def _last_with(option: str, release: EngineRelease) -> str | None:
    return last_release(release.version, lambda earlier: option in earlier.flags)


def _kind(flag: Flag) -> str:
    return (flag.type or "").removeprefix("optional ")


def _is_choice(value: str, flag: Flag) -> bool:
    return flag.choices is None or value in map(str, flag.choices)


def _wanted(value: str, kind: str) -> str | None:
    """What the type asks for, if the value is not it."""
    if kind in _NUMBERS:
        pattern, wanted = _NUMBERS[kind]
        return None if re.fullmatch(pattern, value.strip()) else wanted
    if kind == "json or str" and re.fullmatch(r"\s*\{.*\}\s*", value, re.DOTALL):
        kind = "json"
    if kind in _READERS:
        reader, wanted = _READERS[kind]
        try:
            reader(value)
        except ValueError:
            return wanted
    return None
