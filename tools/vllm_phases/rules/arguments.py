"""Flags of engines, held against the parser of their release."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Finding, Severity
from vllm_phases.rules.history import last_release
from vllm_phases.rules.origin import origin
from vllm_phases.yaml_document import dotted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vllm_phases.catalogue import EngineRelease, Flag
    from vllm_phases.rules.engine import Engine
    from vllm_phases.values import Values

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


@dataclass(frozen=True)
class _Option:
    """An option as it was written, with the words that the parser would take for its values."""

    written: str
    values: tuple[str, ...]
    attached: bool  # the value stands in the same word, after "="


def check(engine: Engine, release: EngineRelease, values: Values) -> Iterator[Finding]:
    """ARG001 to ARG005: flags that the engine would not accept, or accepts only by luck."""
    for option in _options(engine.arguments):
        for finding in _problems(option, release):
            key = option.written.lstrip("-")
            path, location = origin(engine, values, "args", key, key.removeprefix("no-"))
            yield replace(finding, path=dotted(path), object=engine.manifest.id, location=location)


def _options(words: Sequence[str]) -> Iterator[_Option]:
    """The options among the words, each with the words that follow it up to the next option."""
    starts = [index for index, word in enumerate(words) if re.match(r"--\w|-[A-Za-z]", word)]
    for start, end in pairwise([*starts, len(words)]):
        written, attached, value = words[start].partition("=")
        following = (value,) if attached else tuple(words[start + 1 : end])
        yield _Option(written, following, bool(attached))


def _problems(option: _Option, release: EngineRelease) -> Iterator[Finding]:
    resolution = release.resolve(option.written)
    if resolution.flag is None:
        yield _unknown(resolution.option, resolution.matches, release)
        return
    spelling = resolution.matches[0]
    if not option.written.startswith("--"):  # -O3 and the like hold their value
        return
    if resolution.abbreviated:
        yield _abbreviated(resolution.option, spelling, release)
    if "." in option.written:
        yield from _keys(option, spelling, resolution.flag)
    else:
        yield from _values(option, spelling, resolution.flag)


def _unknown(option: str, matches: Sequence[str], release: EngineRelease) -> Finding:
    """ARG002 for a flag of an earlier release, ARG001 for any other that this release does not take."""
    this = f"vLLM {release.version}"
    if matches:
        return _unknown_flag(
            f"{this} takes {option} for any of {', '.join(matches)}", "Write the whole flag."
        )
    if last := last_release(release.version, lambda earlier: option in earlier.flags):
        message = f"{this} has no flag {option} any more; {last} was the last release that had it"
        return Finding(
            "ARG002", "removed-flag", Severity.ERROR, message, f"Remove {option}, or run vLLM {last}."
        )
    near = release.nearest(option)
    return _unknown_flag(
        f"{this} has no flag {option}" + (f"; did you mean {near}?" if near else ""),
        f"Write {near}." if near else f"Remove {option}.",
    )


def _unknown_flag(message: str, remediation: str) -> Finding:
    return Finding("ARG001", "unknown-flag", Severity.ERROR, message, remediation)


def _abbreviated(option: str, spelling: str, release: EngineRelease) -> Finding:
    message = f"vLLM {release.version} completes {option} to {spelling}; a later release may refuse it"
    return Finding("ARG005", "abbreviated-flag", Severity.WARNING, message, f"Write {spelling}.")


def _keys(option: _Option, spelling: str, flag: Flag) -> Iterator[Finding]:
    """ARG004 for `--flag.key` where the flag is no JSON object."""
    if "json" not in (flag.type or ""):
        yield _bad_type(f"{option.written}: {spelling} takes no keys", f"Write {spelling} without a key.")


def _values(option: _Option, spelling: str, flag: Flag) -> Iterator[Finding]:
    """ARG003 and ARG004: what the option is given is not what it takes."""
    if flag.type is None:
        if option.attached:
            message = f"{spelling} takes no value, but is given {option.values[0]!r}"
            yield _bad_type(message, f"Write {spelling} alone; in values, {spelling[2:]}: true.")
        return
    if not option.values and flag.nargs not in ("?", "*"):
        yield _bad_type(f"{spelling} has no value", f"Give {spelling} a value.")
    several = flag.nargs not in (None, "?")
    for value in option.values if several else option.values[:1]:
        yield from _value(value, spelling, flag)


def _value(value: str, spelling: str, flag: Flag) -> Iterator[Finding]:
    kind = (flag.type or "").removeprefix("optional ")
    if kind != flag.type and value in ("", "None"):
        return
    if flag.choices is not None and value not in map(str, flag.choices):
        choices = ", ".join(map(str, flag.choices))
        message = f"{spelling} is {value!r}, but takes only {choices}"
        yield Finding("ARG003", "bad-choice", Severity.ERROR, message, f"Choose one of {choices}.")
    elif wanted := _wanted(value, kind):
        yield _bad_type(f"{spelling} is {value!r}, but must be {wanted}", f"Set {wanted}.")


def _wanted(value: str, kind: str) -> str | None:
    """What the type asks for, if the value is not it."""
    if kind in _NUMBERS:
        pattern, wanted = _NUMBERS[kind]
        return None if re.fullmatch(pattern, value.strip()) else wanted
    if kind in _READERS:
        reader, wanted = _READERS[kind]
        try:
            reader(value)
        except ValueError:
            return wanted
    return None


def _bad_type(message: str, remediation: str) -> Finding:
    return Finding("ARG004", "bad-type", Severity.ERROR, message, remediation)
