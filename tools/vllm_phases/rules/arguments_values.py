"""ARG: values of flags that the parser takes and the engine does not, and flags that do not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm_phases.catalogue.store import sort_key
from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.rules import repairs
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.model import Argument


@rule(
    "ARG006",
    "repeated-flag",
    Severity.WARNING,
    scope=Engine,
    fix="leaves the second one out where both have the same value.",
)
def repeated_flag(engine: Engine, context: Context) -> Iterator[Problem]:
    """A flag that is given more than once, where only the last one counts.

    Why:
        vLLM's parser takes the last one and at most logs a warning, so the first is a setting that somebody
        believes in and nobody has. A list is not added to either: its values follow one flag.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --max-model-len=8192, --port=8000, --max-model-len=32768]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --served-model-name, chat, --served-model-name, qwen]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --max-model-len, "8192", --port=8000, --max-model-len, "8192"]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --max-model-len=32768, --middleware=a.B, --middleware=c.D]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --served-model-name, chat, qwen]
        ```

    References:
        - vllm/utils/argparse_utils.py, "Found duplicate keys"
    """
    seen: dict[str, Argument] = {}
    for option in engine.arguments.options:
        if option.keys or option.flag is None or option.flag.action == "append":
            continue
        first = seen.get(option.name)
        overrides = first is not None and engine.configured(first) and not engine.configured(option)
        if first is not None and not overrides:
            same = _told(first) == _told(option)
            message = (
                f"--{option.name} is given again; {_told(first) or 'the first one'} before it is not used"
            )
            if same:
                message = f"--{option.name} is given twice"
            several = option.flag.nargs in ("+", "*")
            fix = "Put all values after one flag." if several and not same else "Leave one of them out."
            repair = repairs.without(option) if same else None
            yield Problem(option, message, fix, Severity.NOTE if same else None, repair)
        seen[option.name] = option


@rule("ARG007", "json-beside-keys", Severity.ERROR, scope=Engine)
def json_beside_keys(engine: Engine, context: Context) -> Iterator[Problem]:
    """A flag that is given as JSON and, besides, key by key.

    Why:
        The parser makes one object of the keys and puts it after everything else, so that the JSON is lost as
        a whole: `--kv-transfer-config '{"kv_connector":…}' --kv-transfer-config.kv_port 1` has no connector.

    Bad:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - '--kv-events-config={"enable_kv_cache_events":true}'
          - --kv-events-config.topic=kv@demo
        ```

    Good:
        ```yaml
        args:
          - Qwen/Qwen3-8B
          - --kv-events-config.enable_kv_cache_events=true
          - --kv-events-config.topic=kv@demo
        ```

    References:
        - vllm/utils/argparse_utils.py, "Add the dict args back", tried with the parsers of 0.13.0 and 0.33.0
    """
    keyed = {option.name for option in engine.arguments.options if option.keys}
    for option in engine.arguments.options:
        if option.name in keyed and not option.keys and option.flag is not None:
            message = (
                f"--{option.name} is given as JSON and key by key; the parser drops this JSON as a whole"
            )
            yield Problem(option, message, "Write all of it as JSON, or all of it key by key.")


@rule("ARG008", "deprecated-flag", Severity.WARNING, scope=Engine, versioned=True, fix="as for ARG002.")
def deprecated_flag(engine: Engine, context: Context) -> Iterator[Problem]:
    """A flag that the engine's release still takes, but calls deprecated or without effect.

    Why:
        A later release refuses it, and the engine does not start after that update.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.12.0
        args: [Qwen/Qwen3-Embedding-4B, --task=embed]
        ```
        ```yaml
        image: vllm/vllm-openai:v0.12.0
        args: [Qwen/Qwen3-8B, --disable-log-requests]
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.12.0
        args: [Qwen/Qwen3-Embedding-4B, --runner=pooling, --convert=embed]
        ```
        ```yaml
        image: vllm/vllm-openai:v0.33.0
        args: [Qwen/Qwen3-8B, --disable-log-requests]
        ```

    References:
        - catalogue/data/argument_successors.yaml
    """
    successors = context.facts("argument_successors")
    for option in engine.arguments.options:
        fact = successors.get(option.name)
        if (
            fact
            and option.flag
            and engine.release
            and _within(fact.get("deprecated"), engine.release.version)
        ):
            message = f"vLLM {engine.release.version} calls --{option.name} deprecated"
            repair = repairs.succeeded(option, fact, engine)
            yield Problem(option, message, fact["use"], repair=repair)


@rule("ARG009", "out-of-range", Severity.ERROR, scope=Engine)
def out_of_range(engine: Engine, context: Context) -> Iterator[Problem]:
    """A number that is too small or too large for its flag.

    Why:
        vLLM checks the number when it makes its configuration, and exits.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --gpu-memory-utilization=90]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --port=80000]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --gpu-memory-utilization=0.9, --port=8000]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --gpu-memory-utilization=1, --max-logprobs=-1]
        ```

    References:
        - catalogue/data/argument_ranges.yaml
    """
    for name, fact in context.facts("argument_ranges").items():
        option = engine.arguments.last(name)
        number = _float(option.value) if option is not None and not option.keys else None
        if option is None or number is None or not _since(fact, engine):
            continue
        if not _inside(number, fact):
            yield Problem(
                option, f"--{name} is {option.value}, but must be {_bounds(fact)}", f"Set {_bounds(fact)}."
            )


@rule("ARG010", "contradictory-flags", Severity.ERROR, scope=Engine)
def contradictory_flags(engine: Engine, context: Context) -> Iterator[Problem]:
    """Flags that do not go together, or one that needs another.

    Why:
        vLLM refuses most of them at start; of the others, one has no effect.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --enable-auto-tool-choice]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --kv-cache-memory-bytes=20G, --gpu-memory-utilization=0.9]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --enable-auto-tool-choice, --tool-call-parser=hermes]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --enable-auto-tool-choice, $(MORE)]
        env: [{name: MORE, valueFrom: {configMapKeyRef: {name: settings, key: more}}}]
        ```

    References:
        - catalogue/data/argument_conflicts.yaml
    """
    arguments = engine.arguments
    for fact in context.facts("argument_conflicts").values():
        missing = fact.get("missing", [])
        if not all(arguments.truth(name) for name in fact["given"]) or not _since(fact, engine):
            continue
        if missing and (_open(engine) or any(name in arguments for name in missing)):
            continue
        given = " and ".join(f"--{name}" for name in fact["given"])
        without = f" without --{missing[0]}" if missing else ""
        where = arguments.last(fact["given"][-1])
        if where is not None:
            message = f"{given}{' is' if len(fact['given']) == 1 else ' are'} given{without}: {fact['why']}"
            yield Problem(where, message, fact["fix"], Severity(fact["severity"]))


@rule("ARG011", "numbers-out-of-order", Severity.ERROR, scope=Engine)
def numbers_out_of_order(engine: Engine, context: Context) -> Iterator[Problem]:
    """Two numbers of which the smaller one must not be larger, and is.

    Why:
        vLLM compares them when it makes its configuration, and exits.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --max-num-seqs=4096, --max-num-batched-tokens=2048]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --no-enable-chunked-prefill, --max-model-len=32768, --max-num-batched-tokens=8192]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --max-num-seqs=256, --max-num-batched-tokens=2048]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --max-model-len=32768, --max-num-batched-tokens=8192]
        ```

    References:
        - catalogue/data/argument_orders.yaml
    """
    for fact in context.facts("argument_orders").values():
        low, high = (engine.arguments.number(fact[end]) for end in ("low", "high"))
        allowed = "unless" in fact and engine.arguments.truth(fact["unless"]) is not False
        option = engine.arguments.last(fact["low"])
        if low is None or high is None or option is None or allowed or not _since(fact, engine):
            continue
        if low > high or (low == high and fact.get("strict")):
            relation = "less than" if fact.get("strict") else "at most"
            message = f"--{fact['low']} is {low}, but must be {relation} --{fact['high']}, which is {high}"
            yield Problem(option, message, f"Raise --{fact['high']}, or lower --{fact['low']}.")


def _told(option: Argument) -> str:
    """The values of an option as text."""
    return " ".join(word.text for word in option.values) or option.written


def _within(window: Mapping[str, str] | None, version: str) -> bool:
    if window is None or sort_key(version) < sort_key(window["since"]):
        return False
    return "until" not in window or sort_key(version) < sort_key(window["until"])


def _since(fact: Mapping[str, Any], engine: Engine) -> bool:
    """Whether a fact holds for an engine; one with a first release needs to know the engine's."""
    if "since" not in fact:
        return True
    return engine.release is not None and sort_key(engine.release.version) >= sort_key(fact["since"])


def _open(engine: Engine) -> bool:
    """Whether there may be flags that cannot be seen: also a word such as $(MORE) may turn out to be one."""
    unknown = any(not word.known and word.text.startswith("$") for word in engine.words)
    return engine.arguments.open or "config" in engine.arguments or unknown


def _float(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def _inside(number: float, fact: Mapping[str, Any]) -> bool:
    return (
        number >= fact.get("least", number)
        and number <= fact.get("most", number)
        and ("above" not in fact or number > fact["above"])
        and ("below" not in fact or number < fact["below"])
    )


def _bounds(fact: Mapping[str, Any]) -> str:
    words = {"least": "at least", "above": "more than", "most": "at most", "below": "less than"}
    return " and ".join(f"{word} {fact[key]}" for key, word in words.items() if key in fact)
