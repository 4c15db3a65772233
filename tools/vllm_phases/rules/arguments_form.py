"""ARG: how the command line is put together: words, quotes, the model, and what starts the server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from vllm_phases.catalogue.store import sort_key
from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.model.engine import is_official_image
from vllm_phases.rules import repairs
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Argument, Word
    from vllm_phases.sources.repair import Repair

Server = Literal["serve", "module", "unknown"]

_QUOTED = re.compile(r"'.*'|\".*\"", re.DOTALL)
_LONG_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_DASH = re.compile(rf"[{_LONG_DASHES}]+\w")
_FIRST = "Give the model as the first argument."
_LEGACY = "vllm.entrypoints.api_server"


@rule(
    "ARG014",
    "flag-and-value-in-one-word",
    Severity.ERROR,
    scope=Engine,
    fix="writes = in place of the blank, for a flag with one value.",
)
def flag_and_value_in_one_word(engine: Engine, context: Context) -> Iterator[Problem]:
    """A flag and its value in one item of a list, with a blank between them.

    Why:
        No shell splits the items of a list, so the parser sees one word, which is no flag, and refuses it:
        `unrecognized arguments: --max-model-len 4096`.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --max-model-len 4096]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config {"enable_kv_cache_events":true}']
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --max-model-len, "4096", '--served-model-name=my chat']
        ```
        ```yaml
        command: [sh, -c, vllm serve Qwen/Qwen3-8B --max-model-len 4096]
        ```

    References:
        - https://kubernetes.io/docs/tasks/inject-data-application/define-command-argument-container/
        - tried with the parsers of 0.13.0 and 0.33.0
    """
    for option in engine.arguments.options:
        flag, blank, value = option.word.text.partition(" ")
        if blank and " " in option.written:
            message = f"{flag} and its value are one word, {option.word.text!r}, which is no flag"
            fix = f"Write two items, {flag} and {value}, or {flag}={value}."
            yield Problem(option, message, fix, repair=_joined(engine, option))


@rule("ARG015", "quotes-in-value", Severity.ERROR, scope=Engine, fix="takes the quotes off.")
def quotes_in_value(engine: Engine, context: Context) -> Iterator[Problem]:
    """A value that keeps its quotes, since no shell takes them off.

    Why:
        In a list the quotes belong to the value: the model is looked for under a name with quotes, and JSON in
        quotes is no JSON.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--served-model-name="chat"']
        ```
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --kv-events-config='{"enable_kv_cache_events":true}'
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, "--served-model-name=chat", '--hf-overrides={"a":"b"}']
        ```
        ```yaml
        command: [sh, -c, vllm serve "Qwen/Qwen3-8B" --served-model-name="chat"]
        ```

    References:
        - https://kubernetes.io/docs/tasks/inject-data-application/define-command-argument-container/
        - https://github.com/kserve/kserve/pull/5880
    """
    named = [(f"--{option.name}", word) for option in engine.arguments.options for word in option.values]
    for name, word in [("the model", word) for word in engine.arguments.positionals[:1]] + named:
        if word.known and len(word.text) > 1 and _QUOTED.fullmatch(word.text):
            message = f"{name} is {word.text}, in which the quotes belong to the value"
            plain = word.text[1:-1]
            repair = repairs.respelt(word, word.text, plain)
            yield Problem(word, message, f"Write {plain} without quotes of its own.", repair=repair)


@rule(
    "ARG016",
    "no-real-dash",
    Severity.ERROR,
    scope=Engine,
    fix="writes two short dashes, where that is a flag of the release.",
)
def no_real_dash(engine: Engine, context: Context) -> Iterator[Problem]:
    r"""A flag that begins with a long dash, as text programs make of two short ones.

    Why:
        The parser does not know it for a flag and refuses it as one word too many.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, "\u2014max-model-len=4096"]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --max-model-len=4096, --served-model-name, "a\u2013b"]
        ```

    References:
        - https://docs.python.org/3/library/argparse.html#prefix-chars
    """
    for word in engine.words:
        if _DASH.match(word.text):
            plain = "--" + word.text.lstrip(_LONG_DASHES)
            message = f"{word.text!r} begins with a dash that is none"
            yield Problem(word, message, f"Write {plain}.", repair=_dashed(engine, word, plain))


@rule("ARG017", "no-model", Severity.WARNING, scope=Engine)
def no_model(engine: Engine, context: Context) -> Iterator[Problem]:
    """A server without a model.

    Why:
        vLLM then serves its default, a small Qwen model, under that name. With --served-model-name it refuses
        to start from 0.17 on. A list such as that of --served-model-name takes a model behind it for its own.
        With --config, vLLM looks for the model in first place or in the file, and else stops.

    Bad:
        ```yaml
        args: [--port=8000]
        ```
        ```yaml
        args: [--served-model-name, chat, Qwen/Qwen3-8B]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --port=8000]
        ```
        ```yaml
        args: [--config, /etc/vllm/config.yaml]
        ```

    References:
        - vllm/utils/argparse_utils.py, "should be provided as the first positional argument"
    """
    arguments = engine.arguments
    if engine.config is not None and _server(engine) == "serve" and "model" not in arguments:
        if engine.words[0].text.startswith("-"):
            message = "no model is given in first place, and none in the file of --config"
            yield Problem(engine.config, message, _FIRST, Severity.ERROR)
        return
    unseen = arguments.open or "config" in arguments or any(not word.known for word in engine.words)
    if arguments.positionals or "model" in arguments or unseen or _server(engine) == "unknown":
        return
    names = arguments.last("served-model-name")
    refused = names is not None and _server(engine) == "serve" and _from(engine, "0.17.0")
    swallowed = names.values[-1].text if names and len(names.values) > 1 else ""
    message = "no model is given" + (f"; {swallowed} is read as a further served name" if swallowed else "")
    where = names or engine.start or engine.container
    yield Problem(where, message, _FIRST, Severity.ERROR if refused else None)


@rule(
    "ARG018",
    "model-twice",
    Severity.ERROR,
    scope=Engine,
    fix="leaves out true after a switch, and --model where it names the same model again.",
)
def model_twice(engine: Engine, context: Context) -> Iterator[Problem]:
    """A second model, or a word that belongs to no flag.

    Why:
        `vllm serve` takes one word that is no flag, the model, and --model counts for it: anything further is
        `unrecognized arguments`. `python -m vllm.entrypoints.openai.api_server` reads --model only and serves
        its default where the model is a word of its own.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --port=8000, --enable-prefix-caching, "true"]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --model=Qwen/Qwen3-8B]
        ```
        ```yaml
        command: [python3, -m, vllm.entrypoints.openai.api_server, Qwen/Qwen3-8B]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --served-model-name, a, b, --enable-prefix-caching]
        ```
        ```yaml
        command: [python3, -m, vllm.entrypoints.openai.api_server, --model, Qwen/Qwen3-8B]
        ```
        ```sh
        docker manifest create vllm/vllm-openai:v0.33.0 vllm/vllm-openai:v0.33.0-x86_64 vllm/vllm-openai:v0.33.0-aarch64
        ```

    References:
        - vllm/utils/argparse_utils.py; vllm/entrypoints/cli/serve.py, model_tag
    """
    arguments, server = engine.arguments, _server(engine)
    if arguments.open or engine.release is None or server == "unknown":
        return
    words = [word for word in arguments.positionals if word.known and not _DASH.match(word.text)]
    named = arguments.last("model")
    if named is not None and engine.configured(named):  # the model in first place wins
        named = None
    if server == "serve" and named is not None and words:
        message = f"a model is given twice: {words[0].text} and --model {named.value or ''}".rstrip()
        repair = repairs.without(named) if named.value == words[0].text else None
        yield Problem(named, message, "Leave --model out.", repair=repair)
    elif server == "serve":
        yield from (_too_many(engine, word) for word in words[1:])
    elif words and named is None:
        message = f"the api_server module does not read {words[0].text} and serves its default model"
        yield Problem(words[0], message, f"Write --model {words[0].text}, or start `vllm serve`.")


@rule(
    "ARG019",
    "model-flag",
    Severity.WARNING,
    scope=Engine,
    versioned=True,
    fix="leaves --model out where the model then is the first word.",
)
def model_flag(engine: Engine, context: Context) -> Iterator[Problem]:
    """`vllm serve` with --model in place of a first word.

    Why:
        0.11.0 refuses it; later releases move it and log that it will be removed.

    Bad:
        ```yaml
        command: [vllm, serve]
        args: [--model, Qwen/Qwen3-8B]
        ```

    Good:
        ```yaml
        command: [vllm, serve, Qwen/Qwen3-8B]
        ```
        ```yaml
        image: vllm/vllm-openai:v0.11.0
        args: [--model, Qwen/Qwen3-8B]
        ```

    References:
        - vllm/utils/argparse_utils.py of 0.11.1 to 0.33.0; vllm/utils/__init__.py of 0.11.0
    """
    named = engine.arguments.last("model")
    if (
        named is None
        or _server(engine) != "serve"
        or engine.arguments.positionals
        or engine.configured(named)
    ):
        return
    refused = not _from(engine, "0.11.1") and not named.attached
    message = "`vllm serve` refuses --model" if refused else "`vllm serve` takes --model only for now"
    fix = f"Give {named.value or 'the model'} as the first argument."
    yield Problem(named, message, fix, Severity.ERROR if refused else None, _model_first(engine, named))


@rule("ARG020", "entrypoint-twice", Severity.ERROR, scope=Engine)
def entrypoint_twice(engine: Engine, context: Context) -> Iterator[Problem]:
    """The official image told to start the server, which its entrypoint starts already.

    Why:
        Without a command, the words of args follow the image's own `vllm serve` (up to 0.11.0 `python3 -m
        vllm.entrypoints.openai.api_server`): "vllm" is then taken for the model, and the rest is refused.

    Bad:
        ```yaml
        args: [vllm, serve, Qwen/Qwen3-8B]
        ```
        ```yaml
        args: [bash, -c, vllm serve Qwen/Qwen3-8B]
        ```
        ```compose
        services:
          engine: {image: "vllm/vllm-openai:v0.33.0", command: vllm serve Qwen/Qwen3-8B}
        ```

    Good:
        ```yaml
        command: [vllm, serve, Qwen/Qwen3-8B]
        ```
        ```yaml
        image: registry.example.net/ours/serving:1.0
        args: [vllm, serve, Qwen/Qwen3-8B]
        ```
        ```compose
        services:
          engine: {image: "vllm/vllm-openai:v0.33.0", entrypoint: "", command: vllm serve Qwen/Qwen3-8B}
        ```

    References:
        - docker/Dockerfile of vLLM, ENTRYPOINT
    """
    if (
        engine.start is not None
        and not engine.container.has_command
        and is_official_image(engine.container.image)
    ):
        first = engine.container.words[0] if engine.container.words else engine.start
        message = f"args begin with {first.text!r}, but the image starts the server itself"
        yield Problem(first, message, "Write these words as command, or leave the program out of args.")


@rule("ARG021", "api-server-module", Severity.WARNING, scope=Engine)
def api_server_module(engine: Engine, context: Context) -> Iterator[Problem]:
    """The server started as a Python module.

    Why:
        vllm.entrypoints.openai.api_server is deprecated from 0.33 on and goes in a later release;
        vllm.entrypoints.api_server, a demo without the OpenAI routes, is gone from 0.25 on.

    Bad:
        ```yaml
        command: [python3, -m, vllm.entrypoints.openai.api_server, --model=Qwen/Qwen3-8B]
        ```
        ```yaml
        command: [python3, -m, vllm.entrypoints.api_server, --model=Qwen/Qwen3-8B]
        ```

    Good:
        ```yaml
        command: [vllm, serve, Qwen/Qwen3-8B]
        ```
        ```yaml
        image: vllm/vllm-openai:v0.20.0
        command: [python3, -m, vllm.entrypoints.openai.api_server, --model=Qwen/Qwen3-8B]
        ```

    References:
        - vllm 0.33.0: vllm/entrypoints/openai/api_server.py; vllm 0.24.0 and 0.25.0: vllm/entrypoints
    """
    start = engine.start
    if start is None or not start.text.startswith("vllm.entrypoints") or engine.release is None:
        return
    if start.text == _LEGACY:
        gone = _from(engine, "0.25.0")
        message = f"{_LEGACY} {'is gone from vLLM 0.25 on' if gone else 'has no OpenAI routes'}"
        yield Problem(start, message, "Start `vllm serve MODEL`.", Severity.ERROR if gone else None)
    elif _from(engine, "0.33.0"):
        message = f"vLLM {engine.release.version} calls `python -m {start.text}` deprecated"
        yield Problem(start, message, "Start `vllm serve MODEL`.")


def _server(engine: Engine) -> Server:
    """What reads the words of an engine: `vllm serve`, or the api_server module."""
    if engine.start is not None:
        return "serve" if engine.start.text == "serve" else "module"
    if engine.release is None or not is_official_image(engine.container.image):
        return "unknown"
    return "serve" if _from(engine, "0.11.1") else "module"


def _from(engine: Engine, version: str) -> bool:
    """Whether an engine is known to be of a release or a later one."""
    return engine.release is not None and sort_key(engine.release.version) >= sort_key(version)


def _too_many(engine: Engine, word: Word) -> Problem:
    before = _option_before(engine, word)
    message = f"{word.text} belongs to no flag, and the model is {engine.model or 'given already'}"
    if before is not None and before.flag is not None and before.flag.type is None:
        message = f"{message}; --{before.name} takes no value"
    switch = before is not None and before.flag is not None and before.flag.type is None
    repair = repairs.without_word(word) if switch and word.text.lower() == "true" else None
    return Problem(word, message, f"Remove {word.text}, or put its flag before it.", repair=repair)


def _joined(engine: Engine, option: Argument) -> Repair | None:
    """A flag with one value in one word, joined by =."""
    written, _, value = option.word.text.partition(" ")
    flag = engine.release.resolve(written).flag if engine.release and "=" not in written else None
    if (
        flag is None
        or flag.type is None
        or flag.nargs not in (None, "?")
        or " --" in f" {value}"
        or value[:1] in ("", " ")
    ):
        return None
    return repairs.respelt(option.word, f"{written} ", f"{written}=")


def _dashed(engine: Engine, word: Word, plain: str) -> Repair | None:
    """A long dash made two short ones; the item as a whole, for it may be written with an escape."""
    if engine.release is None or engine.release.resolve(plain).flag is None:
        return None
    return repairs.rewritten(word, plain)


def _model_first(engine: Engine, named: Argument) -> Repair | None:
    """The model as the first word, where --model stands before everything else."""
    if engine.words[:1] != (named.word,) or len(named.values) != 1:
        return None
    if named.attached:
        return repairs.respelt(named.word, f"{named.written}=", "")
    return repairs.without_word(named.word)


def _option_before(engine: Engine, word: Word) -> Argument | None:
    return next((option for option in engine.arguments.options if word in option.following), None)
