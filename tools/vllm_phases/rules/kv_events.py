"""KV: events that tell others what an engine has in its cache."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

_FLAG = "kv-events-config"
_SELF = re.compile(r"tcp://0\.0\.0\.0:\d+")


@rule("KV081", "events-off", Severity.WARNING, scope=Engine)
def events_off(engine: Engine, context: Context) -> Iterator[Problem]:
    """A configuration of KV events that does not turn them on.

    Why:
        enable_kv_cache_events is false unless it is set, and the publisher null drops every event: a picker that
        scores by them sees empty caches.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config={"endpoint":"tcp://*:5557"}']
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config={"enable_kv_cache_events":true,"publisher":"null"}']
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config={"enable_kv_cache_events":true}']
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config={"enable_kv_cache_events":false}']
        ```

    References:
        - vllm/config/kv_events.py
    """
    flag, config = engine.arguments.last(_FLAG), engine.arguments.object(_FLAG)
    if flag is None or not config:
        return
    if "enable_kv_cache_events" not in config:
        message = "--kv-events-config does not set enable_kv_cache_events, so no event is published"
        yield Problem(flag, message, "Set enable_kv_cache_events to true, or remove --kv-events-config.")
    elif config["enable_kv_cache_events"] is True and config.get("publisher") == "null":
        yield Problem(flag.key("publisher"), "the publisher null drops every event", "Set publisher to zmq.")


@rule("KV082", "events-without-prefix-caching", Severity.WARNING, scope=Engine)
def events_without_prefix_caching(engine: Engine, context: Context) -> Iterator[Problem]:
    """KV events from an engine without prefix caching.

    Why:
        Events tell which prefixes are cached; without prefix caching there are none to tell.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --no-enable-prefix-caching, '--kv-events-config={"enable_kv_cache_events":true}']
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config={"enable_kv_cache_events":true}']
        ```

    References:
        - vllm/config/vllm.py
    """
    config = engine.arguments.object(_FLAG) or {}
    flag = engine.arguments.last("enable-prefix-caching")
    off = engine.truth("enable-prefix-caching") is False or (flag and flag.written.startswith("--disable"))
    if flag and off and config.get("enable_kv_cache_events") is True:
        message = "KV events are on, but without prefix caching there are none"
        yield Problem(flag, message, f"Remove {flag.written}, or --kv-events-config.")


@rule("KV083", "events-to-itself", Severity.WARNING, scope=Engine)
def events_to_itself(engine: Engine, context: Context) -> Iterator[Problem]:
    """An endpoint of KV events that names the engine's own wildcard address.

    Why:
        vLLM listens where the endpoint has a *; a concrete address it dials instead. 0.0.0.0 is taken for one, and
        so the engine may dial itself and publish to nobody.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config={"enable_kv_cache_events":true,"endpoint":"tcp://0.0.0.0:5557"}']
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config={"enable_kv_cache_events":true,"endpoint":"tcp://*:5557"}']
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-events-config={"enable_kv_cache_events":true,"endpoint":"tcp://picker:5557"}']
        ```

    References:
        - vllm/distributed/kv_events.py, ZmqEventPublisher
    """
    flag, config = engine.arguments.last(_FLAG), engine.arguments.object(_FLAG) or {}
    endpoint = str(config.get("endpoint") or "")
    if flag and config.get("enable_kv_cache_events") is True and _SELF.fullmatch(endpoint):
        message = f"the endpoint {endpoint} is dialled, not listened on"
        yield Problem(
            flag.key("endpoint"), message, "Write tcp://*:PORT to listen, or the subscriber's name to dial."
        )
