"""ARG: JSON of flags, held against the classes that vLLM makes of it."""

from __future__ import annotations

import ast
import json
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Severity
from vllm_phases.model import Engine, Key
from vllm_phases.rules import repairs
from vllm_phases.rules.history import last_release
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vllm_phases.catalogue import Config, EngineRelease
    from vllm_phases.model import Argument

_OF_KV_RULES = "kv-transfer-config"
_TRUTHS = frozenset(("true", "false", "1", "0", "yes", "no", "on", "off", "t", "f", "y", "n"))


@rule(
    "ARG012",
    "unknown-json-key",
    Severity.ERROR,
    scope=Engine,
    versioned=True,
    fix="with --unsafe-fixes, writes the key that it resembles most.",
)
def unknown_json_key(engine: Engine, context: Context) -> Iterator[Problem]:
    """A key in the JSON of a flag that the class behind it does not have; for --kv-transfer-config see KV002.

    Why:
        Where the class is closed, which most are from 0.16 on, the parser refuses the flag and the engine does
        not start. Before, the key is passed over without a word, which is told as a warning.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config={"enable_kv_cache_events":true,"port":5557}']
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --compilation-config.cudagraph_modes=FULL]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config={"enable_kv_cache_events":true,"endpoint":"tcp://*:5557"}']
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--hf-overrides={"anything":true}']
        ```

    References:
        - catalogue/data/configs.json, read from the releases by `vllm-phases catalogue add`
    """
    for flag, config, release in _configs(engine):
        for key, where in _keys(engine, flag):
            if key in config.fields:
                continue
            name, fix = f"{key!r} of --{flag}", f"Remove {key} from --{flag}."
            near = get_close_matches(key, sorted(config.fields), 1)
            message = f"vLLM {release.version} has no key {name}"
            if last := _last_with(release, flag, key):
                message = f"{message} any more; {last} was the last release that had it"
            elif near:
                message, fix = f"{message}; did you mean {near[0]}?", f"Write {near[0]}."
            option = where.argument if isinstance(where, Key) else where
            repair = repairs.json_key_respelt(option, key, near[0]) if near and not last else None
            yield Problem(where, message, fix, None if config.closed else Severity.WARNING, repair)


@rule("ARG013", "bad-json-value", Severity.ERROR, scope=Engine, versioned=True)
def bad_json_value(engine: Engine, context: Context) -> Iterator[Problem]:
    """A value in the JSON of a flag that the class behind it refuses, or JSON that is no object.

    Why:
        vLLM reads the JSON into a typed class while it parses its arguments, and exits.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config={"enable_kv_cache_events":true,"publisher":"nats"}']
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config={"topic":5}']
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config=["zmq"]']
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config={"enable_kv_cache_events":"yes","publisher":"zmq","hwm":"12"}']
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--compilation-config={"cudagraph_mode":"FULL","compile_sizes":[1,"cudagraph_capture_sizes"]}']
        ```

    References:
        - catalogue/data/configs.json, read from the releases by `vllm-phases catalogue add`
        - https://docs.pydantic.dev/latest/concepts/conversion_table/
    """
    for flag, config, _ in _configs(engine):
        for option in engine.arguments.all(flag):
            if not option.keys and option.value is not None and _is_json_but_no_object(option.value):
                yield Problem(
                    option, f"--{flag} is {option.value!r}, but must be a JSON object", "Write {…}."
                )
        given = engine.arguments.object(flag) or {}
        for key, where in _keys(engine, flag):
            if key in config.fields and (wanted := _misfit(given[key], config.fields[key])):
                message = f"{key} of --{flag} is {json.dumps(given[key])}, but must be {wanted}"
                yield Problem(where, message, f"Set {wanted}.")


def _configs(engine: Engine) -> Iterator[tuple[str, Config, EngineRelease]]:
    """The flags of an engine whose JSON becomes an object of a class, but those of the KV rules."""
    if engine.release is not None:
        for flag, config in engine.release.configs.items():
            if flag != _OF_KV_RULES and flag in engine.arguments:
                yield flag, config, engine.release


def _keys(engine: Engine, flag: str) -> Iterator[tuple[str, Argument | Key]]:
    """Each key that is given, with where that is: in the JSON, or an option of its own."""
    options = engine.arguments.all(flag)
    for key in engine.arguments.object(flag) or {}:
        dotted = (option for option in options if option.keys[:1] in ((key,), (f"{key}+",)))
        whole = (option for option in options if not option.keys)
        if (option := next(dotted, None)) is not None:
            yield key.removesuffix("+"), option
        elif (option := next(whole, None)) is not None:
            yield key, option.key(key)


def _last_with(release: EngineRelease, flag: str, key: str) -> str | None:
    def has(earlier: EngineRelease) -> bool:
        return flag in earlier.configs and key in earlier.configs[flag].fields

    return last_release(release.version, has)


def _is_json_but_no_object(text: str) -> bool:
    import json

    try:
        return not isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False  # ARG004 tells


def _misfit(value: Any, hint: str) -> str | None:
    """What a type asks for, if pydantic would refuse the value; None also where the type is not known here."""
    if isinstance(value, str) and re.search(r"\$[({A-Za-z]|\{\{", value):
        return None
    optional = hint.endswith(" | None")
    kind = hint.removesuffix(" | None")
    if value is None:
        return None if optional or kind not in ("int", "str", "bool", "float") else _WORDS[kind]
    if kind.startswith("Literal[") and "|" not in kind:
        choices = ast.literal_eval(f"[{kind[8:-1]}]")
        return None if value in choices else f"one of {', '.join(map(str, choices))}"
    if kind in _FITS:
        return None if _FITS[kind](value) else _WORDS[kind]
    container = next((name for name in _CONTAINERS if re.match(rf"{name}\b", kind)), None)
    if container is None or "|" in kind.partition("[")[0]:
        return None
    plain, word = _CONTAINERS[container]
    items = kind.removeprefix("list[").removesuffix("]")
    inside: list[Any] = list(value) if isinstance(value, list | dict) else []
    fits = isinstance(value, plain) and (items not in _FITS or all(map(_FITS[items], inside)))
    return None if fits else word


def _number(value: Any, whole: bool) -> bool:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return False
    return not whole or number.is_integer()


_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text in quotes"}
_CONTAINERS: dict[str, tuple[type, str]] = {"dict": (dict, "a JSON object"), "list": (list, "a JSON list")}
_FITS: dict[str, Callable[[Any], bool]] = {
    "int": lambda value: _number(value, whole=True),
    "float": lambda value: _number(value, whole=False),
    "bool": lambda value: str(value).lower() in _TRUTHS,
    "str": lambda value: isinstance(value, str),
}
