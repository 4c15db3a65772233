"""LLMD: the endpoint picker's configuration, as its release reads it."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Severity
from vllm_phases.model import PickerConfig, relations
from vllm_phases.rules import repairs, windows
from vllm_phases.rules.labels import unfinished
from vllm_phases.rules.registry import Context, Problem, rule
from vllm_phases.sources.changes import Set
from vllm_phases.sources.repair import Repair

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.model import Engine, Node, Picker, Release
    from vllm_phases.rules.windows import Version

_STRICT = (0, 9, 0)  # since then unknown keys end the picker (llm-d-router pull request 1134)
_KNOWN = ((0, 9, 0), (0, 11, 0))  # releases whose plugins the catalogue keeps
_READ = (0, 10, 0)  # the release that the catalogue's parameters were read from
_LEARNS_BLOCKS = (0, 9, 0)
_EVENTS_PORT = 5557  # of picker and engine, where none is given
_BOUND = re.compile(r"tcp://\*:(\d+)")
_DISAGGREGATING = ("disagg-profile-handler", "pd-profile-handler")
_OWN_FILTERS = ("by-label", "by-label-selector", "label-selector-filter")
_REFUSED = "so the picker does not start"


def picker_of(config: PickerConfig, context: Context) -> Picker | None:
    """The picker that reads a configuration."""
    return _readers(context.release).get(id(config))


@lru_cache(maxsize=2)
def _readers(release: Release) -> dict[int, Picker]:
    return {id(relations.config_of(release, picker)): picker for picker in release.pickers}


def _version(config: PickerConfig, context: Context) -> Version | None:
    picker = picker_of(config, context)
    return picker.version if picker else None


def _engines(config: PickerConfig, context: Context) -> tuple[Engine, ...]:
    """The engines of the pool whose picker reads a configuration."""
    picker = picker_of(config, context)
    pool = relations.pool_of(context.release, picker) if picker else None
    return relations.engines_of(context.release, pool) if pool else ()


def _references(profile: Node) -> Iterator[tuple[str, Node]]:
    """The plugins of a profile by name, with the nodes of their references."""
    for entry in profile.items("plugins"):
        yield entry.text("pluginRef"), entry


def _kinds(config: PickerConfig, context: Context) -> dict[str, str]:
    """The kind of each plugin by its name, where the catalogue knows its type."""
    known = context.facts("llmd_plugins")
    found = {name: plugin.text("type") for name, plugin in config.plugins().items()}
    return {name: known[kind]["kind"] for name, kind in found.items() if kind in known}


@rule("LLMD040", "picker-config-version", Severity.ERROR, scope=PickerConfig)
def picker_config_version(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """The configuration's apiVersion is none that its picker reads.

    Why:
        The group moved from inference.networking.x-k8s.io to llm-d.ai with v0.9; llm-d.ai/v1 comes after v0.10.

    Bad:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: epp}
        data:
          config.yaml: |
            apiVersion: llm-d.ai/v1
            kind: EndpointPickerConfig
            plugins: [{type: queue-scorer}]
            schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --config-file=/etc/epp/config.yaml]
        volumes: [{name: config, configMap: {name: epp}}]
        ```

    Good:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: epp}
        data:
          config.yaml: |
            apiVersion: llm-d.ai/v1alpha1
            kind: EndpointPickerConfig
            plugins: [{type: queue-scorer}]
            schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --config-file=/etc/epp/config.yaml]
        volumes: [{name: config, configMap: {name: epp}}]
        ```

    References:
        - observed with llm-d-router v0.10.0
    """
    known, version = context.facts("llmd")["config_versions"], _version(config, context)
    entry = known.get(config.api_version)
    place = config.node.at("apiVersion")
    if entry is None and place and not unfinished(config.api_version):
        message = f"no picker reads EndpointPickerConfig of {config.api_version!r}"
        yield Problem(place, message, "Write llm-d.ai/v1alpha1.")
    elif entry and version and windows.before(version, entry):
        fitting = "llm-d.ai/v1alpha1" if version >= _STRICT else "inference.networking.x-k8s.io/v1alpha1"
        message = f"picker {windows.spelled(version)} does not read {config.api_version}, {_REFUSED}"
        yield Problem(place, message, f"Write {fitting}.")
    elif entry and version and windows.reached(version, entry, "deprecated"):
        message = f"{config.api_version} is deprecated since picker v{entry['deprecated']}"
        yield Problem(place, message, f"Write {entry['instead']}.", Severity.WARNING)


@rule("LLMD041", "picker-plugin-unknown", Severity.ERROR, scope=PickerConfig)
def picker_plugin_unknown(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """A plugin of a type that the picker's release does not register, or is about to drop.

    Why:
        The picker ends at start: "plugin type … is not registered". An image of one's own may register more,
        so it is a warning where the picker is none of llm-d's releases.

    Bad:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: queue-scorers}]
        schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorers}]}]
        ```

    Good:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: queue-scorer}, {type: our-own-scorer}]
        schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}, {pluginRef: our-own-scorer}]}]
        ```

    References:
        - llm-d/llm-d-router v0.10.0: cmd/epp/runner/runner.go
    """
    known, version = context.facts("llmd_plugins"), _version(config, context)
    picker = picker_of(config, context)
    official = picker is not None and picker.container.image.name.startswith("llm-d-")
    sure = official and version is not None and _KNOWN[0] <= version < _KNOWN[1]
    for plugin in config.node.items("plugins"):
        place, kind = plugin.at("type"), plugin.text("type")
        near = get_close_matches(kind, known, 1, 0.85)
        if kind and kind not in known and (sure or near):
            release = f"picker {windows.spelled(version)}" if sure and version else "llm-d's picker"
            hint = f"; did you mean {near[0]}?" if near else ""
            message = f"{release} has no plugin type {kind!r}{hint}"
            yield Problem(place, message, _instead(near), None if sure else Severity.WARNING)
        elif kind in known and version:
            yield from _against(plugin, kind, known[kind], version)


def _instead(near: list[str]) -> str:
    return f"Write {near[0]}." if near else "Use one of the plugins of its release."


def _against(plugin: Node, kind: str, entry: Mapping[str, Any], version: Version) -> Iterator[Problem]:
    """What a release has against a plugin that some release knows."""
    release, place = f"picker {windows.spelled(version)}", plugin.at("type")
    if version >= _KNOWN[0] and windows.before(version, entry):
        yield Problem(
            place, f"{release} does not know {kind}, which came with v{entry['since']}", "Use a newer picker."
        )
    elif windows.reached(version, entry, "removal"):
        fix = f"Use {entry['instead']}."
        yield Problem(place, f"{kind} was to go away with picker v{entry['removal']}", fix, Severity.WARNING)
    elif windows.reached(version, entry, "deprecated"):
        fix = f"Use {entry['instead']}."
        yield Problem(
            place, f"{kind} is deprecated since picker v{entry['deprecated']}", fix, Severity.WARNING
        )


@rule("LLMD042", "picker-plugin-reference", Severity.ERROR, scope=PickerConfig)
def picker_plugin_reference(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """A reference to a plugin that the configuration does not define.

    Why:
        The picker ends at start: "references undefined plugin". A plugin is called by its name, or by its type
        where it has none.

    Bad:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: queue-scorer, name: queue}]
        schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]
        ```
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        featureGates: [flowControl]
        plugins: [{type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise}}]
        schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer}]}]
        flowControl:
          saturationDetector: {pluginRef: concurrency-detector}
          priorityBands: [{priority: 10, fairnessPolicyRef: round-robin-fairness-policy}]
        ```

    Good:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: queue-scorer, name: queue}]
        schedulingProfiles: [{name: default, plugins: [{pluginRef: queue}]}]
        ```
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        featureGates: [flowControl]
        plugins: [{type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: approx-prefix-cache-producer}}]
        schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer}]}]
        flowControl: {saturationDetector: {pluginRef: utilization-detector}}
        ```

    References:
        - observed with llm-d-router v0.10.0
    """
    defined = config.plugins()
    added = context.facts("llmd")["injected_plugins"]["values"]
    for place in _all_references(config):
        name = place.text()
        if name and name not in defined and name not in added and not unfinished(name):
            near = get_close_matches(name, defined, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            message = f"no plugin is called {name!r}, {_REFUSED}{hint}"
            yield Problem(place, message, "Define it under plugins, or name one that is.")


def _all_references(config: PickerConfig) -> Iterator[Node]:
    root = config.node
    for profile in root.items("schedulingProfiles"):
        for entry in profile.items("plugins"):
            yield entry.at("pluginRef")
    for source in root.items("dataLayer", "sources"):
        yield source.at("pluginRef")
        for extractor in source.items("extractors"):
            yield extractor.at("pluginRef")
    yield root.at("dataLayer", "discovery", "pluginRef")
    yield root.at("dataLayer", "crossReplicaSyncerPluginRef")
    yield from (parser.at("pluginRef") for parser in root.items("requestHandler", "parsers"))
    yield from _flow_control_references(root)
    yield from (
        plugin.at("parameters", "prefixMatchInfoProducerName") for plugin in config.node.items("plugins")
    )
    for handler in config.of_type("disagg-profile-handler"):
        yield from (handler.at("parameters", "deciders", stage) for stage in ("prefill", "encode"))


def _flow_control_references(root: Node) -> Iterator[Node]:
    """What decides on waiting requests, where it is named."""
    yield root.at("saturationDetector", "pluginRef")
    yield root.at("flowControl", "saturationDetector", "pluginRef")
    yield root.at("flowControl", "usageLimitPolicyPluginRef")
    for band in _bands(root):
        yield from (band.at(policy) for policy in ("fairnessPolicyRef", "orderingPolicyRef"))


def _bands(root: Node) -> Iterator[Node]:
    """The priority bands of flow control."""
    yield root.at("flowControl", "defaultPriorityBand")
    yield root.at("flowControl", "defaultNegativePriorityBand")
    yield from root.items("flowControl", "priorityBands")


@rule(
    "LLMD043",
    "picker-config-key-unknown",
    Severity.ERROR,
    scope=PickerConfig,
    fix="with --unsafe-fixes, writes the key that it resembles most.",
)
def picker_config_key_unknown(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """A key that the picker's strict reader refuses.

    Why:
        Since v0.9 the picker ends at an unknown key of its configuration or of a plugin's parameters. Before,
        it passed it over. Plugins without parameters take anything.

    Bad:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: load-aware-scorer, params: {threshold: 64}}]
        schedulingProfiles: [{name: default, plugins: [{pluginRef: load-aware-scorer}]}]
        ```
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: prefix-based-pd-decider, parameters: {nonCachedToken: 16}}]
        schedulingProfiles: [{name: default, plugins: []}]
        ```
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: endpoint-notification-source}, {type: precise-prefix-cache-producer}]
        schedulingProfiles: [{name: default, plugins: []}]
        dataLayer: {sources: [{pluginRef: endpoint-notification-source, extractor: [{pluginRef: precise-prefix-cache-producer}]}]}
        flowControl: {maxRequest: 100, priorityBands: [{priority: 1, maxRequest: 10}]}
        ```

    Good:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins:
          - {type: load-aware-scorer, parameters: {threshold: 64}}
          - {type: queue-scorer, parameters: {whatever: 1}}
        schedulingProfiles: [{name: default, plugins: [{pluginRef: load-aware-scorer, weight: 2}]}]
        ```

    References:
        - https://github.com/llm-d/llm-d-router/pull/1134
    """
    keys, version = context.facts("llmd")["config_keys"], _version(config, context)
    if config.api_version == "llm-d.ai/v1" or (version and version >= _KNOWN[1]):
        return
    refused = version >= _STRICT if version else config.api_version.startswith("llm-d.ai/")
    severity = None if refused else Severity.WARNING
    for node, taken in _levels(config, keys):
        for key, below in node.entries():
            if key not in taken and (version or key not in keys["newer"]):
                near = get_close_matches(key, taken, 1)
                message = f"{key!r} is none of the keys {', '.join(taken)}"
                repair = repairs.key_respelt(below, near[0]) if near else None
                fix = f"Write {near[0]}." if near else "Remove it."
                yield Problem(below, message, fix, severity, repair)
    for plugin in config.node.items("plugins") if refused else ():
        entry = context.facts("llmd_plugins").get(plugin.text("type"), {})
        for key, below in plugin.entries("parameters") if "parameters" in entry else ():
            if key not in entry["parameters"]:
                yield _parameter(below, key, plugin.text("type"), entry["parameters"], version)


def _levels(config: PickerConfig, keys: Mapping[str, list[str]]) -> Iterator[tuple[Node, list[str]]]:
    yield config.node, keys["root"]
    for plugin in config.node.items("plugins"):
        yield plugin, keys["plugin"]
    for profile in config.node.items("schedulingProfiles"):
        yield profile, keys["profile"]
        for entry in profile.items("plugins"):
            yield entry, keys["reference"]
    for name in ("dataLayer", "flowControl", "requestHandler"):
        yield config.node.at(name), keys[name]
    for source in config.node.items("dataLayer", "sources"):
        yield source, keys["source_of_data"]
    for band in _bands(config.node):
        yield band, keys["band"]


def _parameter(node: Node, key: str, kind: str, taken: list[str], version: Version | None) -> Problem:
    """A parameter that a plugin does not read: certain where its release is known, or the spelling is near."""
    near = get_close_matches(key, taken, 1)
    sure = near or (version is not None and version >= (0, 10, 0))
    release = windows.spelled(version or _READ)
    message = f"{kind} of {release} has no parameter {key!r}, only {', '.join(taken)}"
    repair = repairs.key_respelt(node, near[0]) if near else None
    fix = f"Write {near[0]}." if near else "Remove it."
    return Problem(node, message, fix, None if sure else Severity.WARNING, repair)


@rule("LLMD044", "picker-config-structure", Severity.ERROR, scope=PickerConfig)
def picker_config_structure(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """Plugins or profiles that exclude each other, or a handler that is missing.

    Why:
        The picker ends at start at two plugins or profiles of one name, two profile handlers, two pickers in a
        profile, several profiles without a handler for them, a weight that is no number, and a feature gate that it
        does not know.

    Bad:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: prefill-filter}, {type: decode-filter}]
        schedulingProfiles:
          - {name: prefill, plugins: [{pluginRef: prefill-filter}]}
          - {name: decode, plugins: [{pluginRef: decode-filter}]}
        ```
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: max-score-picker}, {type: random-picker}]
        schedulingProfiles: [{name: default, plugins: [{pluginRef: max-score-picker}, {pluginRef: random-picker}]}]
        ```
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: epp}
        data:
          config.yaml: |
            apiVersion: llm-d.ai/v1alpha1
            kind: EndpointPickerConfig
            featureGates: [flowControl, prepareDataPlugins]
            plugins: [{type: queue-scorer}]
            schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --config-file=/etc/epp/config.yaml]
        volumes: [{name: config, configMap: {name: epp}}]
        ```

    Good:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins:
          - {type: prefill-filter}
          - {type: decode-filter}
          - {type: always-disagg-pd-decider}
          - {type: disagg-profile-handler, parameters: {deciders: {prefill: always-disagg-pd-decider}}}
        schedulingProfiles:
          - {name: prefill, plugins: [{pluginRef: prefill-filter}]}
          - {name: decode, plugins: [{pluginRef: decode-filter}]}
        ```

    References:
        - observed with llm-d-router v0.10.0
    """
    kinds, root = _kinds(config, context), config.node
    names = [plugin.text("name") or plugin.text("type") for plugin in root.items("plugins")]
    profiles = [profile.text("name") for profile in root.items("schedulingProfiles")]
    for place, given, what in (
        (root.at("plugins"), names, "plugins"),
        (root.at("schedulingProfiles"), profiles, "profiles"),
    ):
        if twice := sorted({name for name in given if given.count(name) > 1}):
            yield Problem(
                place, f"several {what} are called {twice[0]!r}, {_REFUSED}", "Give each its own name."
            )
    handlers = [name for name in names if kinds.get(name) == "handler"]
    unknown = any(name not in kinds for name in names)
    if len(handlers) > 1:
        message = f"there are several profile handlers, {', '.join(handlers)}, {_REFUSED}"
        yield Problem(root.at("plugins"), message, "Keep one.")
    elif len(profiles) > 1 and not handlers and not unknown:
        message = f"{len(profiles)} profiles and no profile handler, {_REFUSED}"
        yield Problem(root.at("schedulingProfiles"), message, "Add disagg-profile-handler to the plugins.")
    yield from _in_profiles(config, kinds)
    yield from _gates(config, context)


def _gates(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """Feature gates that the picker does not know."""
    known, version = context.facts("llmd")["feature_gates"], _version(config, context)
    if version is None or version >= _KNOWN[1]:
        return
    for gate in config.node.items("featureGates"):
        name = gate.text().partition("=")[0]
        window = known.get(name, {"until": "0.0.1"})
        if name and (windows.before(version, window) or windows.reached(version, window)):
            message = f"picker {windows.spelled(version)} has no feature gate {name!r}, {_REFUSED}"
            yield Problem(gate, message, "Remove it.")


def _in_profiles(config: PickerConfig, kinds: Mapping[str, str]) -> Iterator[Problem]:
    for profile in config.node.items("schedulingProfiles"):
        entries = list(_references(profile))
        pickers = [entry for name, entry in entries if kinds.get(name) == "picker"]
        if len(pickers) > 1:
            message = f"profile {profile.text('name')} has several pickers, {_REFUSED}"
            yield Problem(pickers[1], message, "Keep one.")
        for name, entry in entries:
            weight = entry.at("weight")
            if isinstance(weight.value, str) and not unfinished(weight.value):
                yield Problem(
                    weight, f"the weight of {name} is a text, {_REFUSED}", "Write it without quotes."
                )
            elif weight and kinds.get(name) in ("filter", "picker"):
                message = f"{name} is a {kinds[name]}, which has no weight"
                yield Problem(weight, message, "Remove the weight.", Severity.NOTE)
            elif isinstance(weight.value, int | float) and weight.value <= 0 and kinds.get(name) == "scorer":
                message = f"the weight of {name} is {weight.value}, so its score does not count for an engine"
                yield Problem(weight, message, "Give it a weight above 0, or remove it.", Severity.WARNING)


@rule("LLMD045", "never-disaggregates", Severity.ERROR, scope=PickerConfig)
def never_disaggregates(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """The picker's configuration never sends a request to a prefill engine.

    Why:
        Without a prefill decider, without a prefill profile, or with nonCachedTokens 0 (its default, which
        means never), all work is done on decode. The picker starts and requests are answered.

    Bad:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins:
          - {type: prefill-filter}
          - {type: decode-filter}
          - {type: prefix-based-pd-decider, parameters: {nonCachedTokens: 0}}
          - {type: disagg-profile-handler, parameters: {deciders: {prefill: prefix-based-pd-decider}}}
        schedulingProfiles:
          - {name: prefill, plugins: [{pluginRef: prefill-filter}]}
          - {name: decode, plugins: [{pluginRef: decode-filter}]}
        ```
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: prefill-filter}, {type: decode-filter}, {type: disagg-profile-handler}]
        schedulingProfiles:
          - {name: prefill, plugins: [{pluginRef: prefill-filter}]}
          - {name: decode, plugins: [{pluginRef: decode-filter}]}
        ```

    Good:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins:
          - {type: prefill-filter}
          - {type: decode-filter}
          - {type: prefix-based-pd-decider, parameters: {nonCachedTokens: 16}}
          - {type: disagg-profile-handler, parameters: {deciders: {prefill: prefix-based-pd-decider}}}
        schedulingProfiles:
          - {name: prefill, plugins: [{pluginRef: prefill-filter}]}
          - {name: decode, plugins: [{pluginRef: decode-filter}]}
        ```

    References:
        - observed with llm-d-router v0.10.0: "Prefix-based PD disabled (NonCachedTokens=0)"
    """
    for handler in config.of_type("disagg-profile-handler"):
        given = handler.at("parameters")
        names = (("deciders", "prefill"), ("prefillDeciderPluginName",), ("deciderPluginName",))
        decider = next(filter(None, (given.text(*steps) for steps in names)), "")
        encodes = given.at("deciders", "encode") or given.at("profiles", "encode")
        if encodes or given.text("stageOrder") == "prefill-first":
            continue
        profile = given.text("profiles", "prefill") or given.text("prefillProfile") or "prefill"
        plugin = config.plugins().get(decider)
        if not decider:
            message = "disagg-profile-handler has no prefill decider, so every request stays on decode"
            yield Problem(
                handler, message, "Set parameters.deciders.prefill, such as always-disagg-pd-decider."
            )
        elif (
            plugin is not None and plugin.text("type") == "prefix-based-pd-decider" and not _threshold(plugin)
        ):
            place = plugin.at("parameters", "nonCachedTokens")
            message = "nonCachedTokens is 0, which means never to disaggregate"
            yield Problem(place if place else plugin, message, "Set nonCachedTokens to 1 or more.")
        if config.profiles() and profile not in config.profiles():
            message = f"there is no profile {profile!r}, so every request stays on decode"
            yield Problem(config.node.at("schedulingProfiles"), message, "Add a prefill profile.")


def _threshold(decider: Node) -> bool:
    """Whether a decider has a threshold, or one that cannot be read."""
    given = decider.at("parameters", "nonCachedTokens")
    return bool(given) and given.value != 0


@rule("LLMD046", "no-decode-profile", Severity.ERROR, scope=PickerConfig)
def no_decode_profile(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """The disaggregating handler finds no decode profile.

    Why:
        The picker starts, and every request gets 429 "failed to run any scheduler profile". The handler looks
        for profiles called prefill and decode unless its parameters name others.

    Bad:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: always-disagg-pd-decider}, {type: disagg-profile-handler, parameters: {deciders: {prefill: always-disagg-pd-decider}}}]
        schedulingProfiles: [{name: prefill, plugins: []}, {name: decoding, plugins: []}]
        ```

    Good:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins:
          - {type: always-disagg-pd-decider}
          - type: disagg-profile-handler
            parameters: {profiles: {decode: decoding}, deciders: {prefill: always-disagg-pd-decider}}
        schedulingProfiles: [{name: prefill, plugins: []}, {name: decoding, plugins: []}]
        ```

    References:
        - observed with llm-d-router v0.10.0
    """
    for handler in config.of_type(*_DISAGGREGATING):
        given = handler.at("parameters")
        profile = given.text("profiles", "decode") or given.text("decodeProfile") or "decode"
        if profile not in config.profiles():
            listed = ", ".join(config.profiles()) or "none"
            message = f"there is no decode profile {profile!r} among the profiles ({listed}): every request gets 429"
            place = config.node.at("schedulingProfiles")
            yield Problem(place if place else handler, message, f"Call a profile {profile}.")


@rule("LLMD047", "profile-without-role-filter", Severity.WARNING, scope=PickerConfig)
def profile_without_role_filter(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """A profile of a disaggregating picker takes engines of either role.

    Why:
        A decode profile without decode-filter sends whole requests to prefill engines; a prefill profile
        without prefill-filter lets a decode engine prefill for itself.

    Bad:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins:
          - {type: prefill-filter}
          - {type: queue-scorer}
          - {type: always-disagg-pd-decider}
          - {type: disagg-profile-handler, parameters: {deciders: {prefill: always-disagg-pd-decider}}}
        schedulingProfiles:
          - {name: prefill, plugins: [{pluginRef: prefill-filter}]}
          - {name: decode, plugins: [{pluginRef: queue-scorer}]}
        ```

    Good:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins:
          - {type: prefill-filter}
          - {type: label-selector-filter, name: mine, parameters: {matchLabels: {llm-d.ai/role: decode}}}
          - {type: always-disagg-pd-decider}
          - {type: disagg-profile-handler, parameters: {deciders: {prefill: always-disagg-pd-decider}}}
        schedulingProfiles:
          - {name: prefill, plugins: [{pluginRef: prefill-filter}]}
          - {name: decode, plugins: [{pluginRef: mine}]}
        ```

    References:
        - observed with llm-d-router v0.10.0
    """
    types = {name: plugin.text("type") for name, plugin in config.plugins().items()}
    for handler in config.of_type(*_DISAGGREGATING):
        for role in ("prefill", "decode"):
            given = handler.at("parameters")
            name = given.text("profiles", role) or given.text(f"{role}Profile") or role
            profile = config.profiles().get(name)
            used = [types.get(plugin, "") for plugin, _ in _references(profile)] if profile else []
            other = {"prefill": "decode-filter", "decode": "prefill-filter"}[role]
            if profile and other in used:
                message = f"the {role} profile has {other}, which takes engines of the other role only"
                yield Problem(profile, message, f"Use {role}-filter.", Severity.ERROR)
            elif profile and not any(kind in (f"{role}-filter", *_OWN_FILTERS, "") for kind in used):
                message = f"the {role} profile has no filter by role, so it takes engines of either"
                yield Problem(profile, message, f"Add {role}-filter to it.")


@rule("LLMD048", "several-decode-endpoints", Severity.ERROR, scope=PickerConfig, fix="sets it to 1.")
def several_decode_endpoints(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """The picker chooses several endpoints, and the proxy takes one.

    Why:
        With maxNumOfEndpoints above 1 the destination header holds several addresses, and every request gets
        503.

    Bad:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: max-score-picker, parameters: {maxNumOfEndpoints: 2}}]
        schedulingProfiles: [{name: default, plugins: [{pluginRef: max-score-picker}]}]
        ```

    Good:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: max-score-picker, parameters: {maxNumOfEndpoints: 1}}]
        schedulingProfiles: [{name: default, plugins: [{pluginRef: max-score-picker}]}]
        ```

    References:
        - observed with llm-d-router v0.10.0 and Envoy 1.40.0
    """
    used = {
        name
        for profile in config.profiles().values()
        if profile.text("name") != "prefill"
        for name, _ in _references(profile)
    }
    for name, plugin in config.plugins().items():
        place = plugin.at("parameters", "maxNumOfEndpoints")
        if name in used and _kinds(config, context).get(name) == "picker" and (place.number() or 1) > 1:
            message = f"maxNumOfEndpoints is {place.number()}, and the proxy answers 503 to more than one"
            yield Problem(place, message, "Set it to 1, or remove it.", repair=Repair((Set(place, 1),)))


@rule("LLMD049", "experimental-plugin", Severity.ERROR, scope=PickerConfig)
def experimental_plugin(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """An experimental plugin without --allow-experimental-plugins.

    Why:
        From v0.10 on the picker ends at start at a plugin of alpha stability that nobody allowed.

    Bad:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: epp}
        data:
          config.yaml: |
            apiVersion: llm-d.ai/v1alpha1
            kind: EndpointPickerConfig
            plugins: [{type: session-affinity-scorer}]
            schedulingProfiles: [{name: default, plugins: [{pluginRef: session-affinity-scorer}]}]
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --config-file=/etc/epp/config.yaml]
        volumes: [{name: config, configMap: {name: epp}}]
        ```

    Good:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: epp}
        data:
          config.yaml: |
            apiVersion: llm-d.ai/v1alpha1
            kind: EndpointPickerConfig
            plugins: [{type: session-affinity-scorer}]
            schedulingProfiles: [{name: default, plugins: [{pluginRef: session-affinity-scorer}]}]
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --config-file=/etc/epp/config.yaml, --allow-experimental-plugins]
        volumes: [{name: config, configMap: {name: epp}}]
        ```

    References:
        - llm-d/llm-d-router v0.10.0: cmd/epp/runner/runner.go
    """
    picker = picker_of(config, context)
    if picker is None or picker.version is None or not (0, 10, 0) <= picker.version < _KNOWN[1]:
        return
    if picker.arguments.open or picker.arguments.truth("allow-experimental-plugins"):
        return
    for plugin in config.node.items("plugins"):
        if context.facts("llmd_plugins").get(plugin.text("type"), {}).get("alpha"):
            message = (
                f"{plugin.text('type')} is experimental, and the picker is not told to allow such plugins"
            )
            yield Problem(plugin.at("type"), message, "Start the picker with --allow-experimental-plugins.")


@rule("LLMD050", "precise-index-differs", Severity.WARNING, scope=PickerConfig)
def precise_index_differs(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """Picker and engine hash prompts differently, so the index of KV events never matches.

    Why:
        Up to v0.8 the picker hashes blocks as its own tokenProcessorConfig says; the engines hash theirs with
        --block-size and PYTHONHASHSEED. From v0.9 on it learns them from the events.

    Bad:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: epp}
        data:
          config.yaml: |
            apiVersion: inference.networking.x-k8s.io/v1alpha1
            kind: EndpointPickerConfig
            plugins: [{type: precise-prefix-cache-scorer, parameters: {tokenProcessorConfig: {blockSize: 64}}}]
            schedulingProfiles: [{name: default, plugins: [{pluginRef: precise-prefix-cache-scorer}]}]
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-inference-scheduler:v0.7.1
            args: [--pool-name=demo, --config-file=/etc/epp/config.yaml]
        volumes: [{name: config, configMap: {name: epp}}]
        ---
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {pool: demo}}
        spec:
          containers:
            - {name: vllm, image: 'vllm/vllm-openai:v0.17.1', args: [Qwen/Qwen3-8B, --block-size=128]}
        ```

    Good:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: epp}
        data:
          config.yaml: |
            apiVersion: llm-d.ai/v1alpha1
            kind: EndpointPickerConfig
            plugins: [{type: precise-prefix-cache-producer, parameters: {tokenProcessorConfig: {blockSize: 64}}}]
            schedulingProfiles: [{name: default, plugins: []}]
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --config-file=/etc/epp/config.yaml]
        volumes: [{name: config, configMap: {name: epp}}]
        ---
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {pool: demo}}
        spec:
          containers:
            - {name: vllm, image: 'vllm/vllm-openai:v0.17.1', args: [Qwen/Qwen3-8B, --block-size=128]}
        ```

    References:
        - llm-d/llm-d-router v0.9.0: precise prefix cache producer, README
    """
    version = _version(config, context)
    if version is None or version >= _LEARNS_BLOCKS:
        return
    for plugin in config.of_type("precise-prefix-cache-scorer", "precise-prefix-cache-producer"):
        place = plugin.at("parameters", "tokenProcessorConfig", "blockSize")
        seed = plugin.at("parameters", "tokenProcessorConfig", "hashSeed")
        for engine in _engines(config, context) if place or seed else ():
            theirs, hashed = engine.number("block-size"), engine.variable("PYTHONHASHSEED")
            if place.number() and theirs and theirs != place.number():
                message = f"blockSize is {place.number()}, the engines have --block-size {theirs}"
                yield Problem(
                    place, f"{message}: no lookup matches up to picker v0.8", f"Set blockSize: {theirs}."
                )
            if seed and hashed is not None and hashed != seed.text():
                message = f"hashSeed is {seed.text()!r}, the engines have PYTHONHASHSEED {hashed}"
                yield Problem(
                    seed, f"{message}: no lookup matches up to picker v0.8", f'Set hashSeed: "{hashed}".'
                )


@rule("LLMD051", "precise-without-events", Severity.WARNING, scope=PickerConfig)
def precise_without_events(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """The picker waits for KV events that its engines do not publish, or nobody uses what it learns.

    Why:
        A precise prefix index lives on the engines' --kv-events-config. Without events, at the port and with the
        topic that the picker subscribes to, it stays empty, and without a prefix-cache-scorer that names the
        producer nothing is scored by it.

    Bad:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: precise-prefix-cache-producer}, {type: prefix-cache-scorer}]
        schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer}]}]
        ```
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: epp}
        data:
          config.yaml: |
            apiVersion: llm-d.ai/v1alpha1
            kind: EndpointPickerConfig
            plugins:
              - {type: precise-prefix-cache-producer, parameters: {kvEventsConfig: {topicFilter: kv@, podDiscoveryConfig: {socketPort: 5556}}}}
              - {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}
            schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer}]}]
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --config-file=/etc/epp/config.yaml]
        volumes: [{name: config, configMap: {name: epp}}]
        ---
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {pool: demo}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args:
                - Qwen/Qwen3-8B
                - '--kv-events-config={"enable_kv_cache_events":true,"endpoint":"tcp://*:5557","topic":"kv@$(POD_IP):8000@Qwen/Qwen3-8B"}'
        ```
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: epp}
        data:
          config.yaml: |
            apiVersion: llm-d.ai/v1alpha1
            kind: EndpointPickerConfig
            plugins:
              - {type: precise-prefix-cache-producer, parameters: {kvEventsConfig: {topicFilter: kv@, podDiscoveryConfig: {socketPort: 5557}}}}
              - {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}
            schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer}]}]
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --config-file=/etc/epp/config.yaml]
        volumes: [{name: config, configMap: {name: epp}}]
        ---
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {pool: demo}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args:
                - Qwen/Qwen3-8B
                - '--kv-events-config={"enable_kv_cache_events":true,"endpoint":"tcp://*:5557","topic":"events"}'
        ```

    Good:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins:
          - {type: precise-prefix-cache-producer}
          - {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}
        schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer}]}]
        ```
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: epp}
        data:
          config.yaml: |
            apiVersion: llm-d.ai/v1alpha1
            kind: EndpointPickerConfig
            plugins:
              - {type: precise-prefix-cache-producer, parameters: {kvEventsConfig: {topicFilter: kv@, podDiscoveryConfig: {socketPort: 5557}}}}
              - {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}
            schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer}]}]
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --config-file=/etc/epp/config.yaml]
        volumes: [{name: config, configMap: {name: epp}}]
        ---
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {pool: demo}}
        spec:
          containers:
            - name: vllm
              image: vllm/vllm-openai:v0.33.0
              args:
                - Qwen/Qwen3-8B
                - '--kv-events-config={"enable_kv_cache_events":true,"endpoint":"tcp://*:5557","topic":"kv@$(POD_IP):8000@Qwen/Qwen3-8B"}'
        ```

    References:
        - https://github.com/llm-d/llm-d, guides/precise-prefix-cache-routing
    """
    producers = config.of_type("precise-prefix-cache-producer")
    users = str([plugin.at("parameters").value for plugin in config.node.items("plugins")])
    for producer in producers:
        name = producer.text("name") or producer.text("type")
        if config.of_type("prefix-cache-scorer") and f"'prefixMatchInfoProducerName': '{name}'" not in users:
            message = f"no plugin reads {name}: prefix-cache-scorer uses the approximate index by default"
            fix = f"Set prefixMatchInfoProducerName: {name} on prefix-cache-scorer."
            yield Problem(producer, message, fix)
    for plugin in (*producers, *config.of_type("precise-prefix-cache-scorer")):
        silent = [engine for engine in _engines(config, context) if _silent(engine)]
        if silent:
            message = f"{silent[0].pod.name} publishes no KV events, so the precise index of it stays empty"
            fix = "Set --kv-events-config with enable_kv_cache_events and publisher zmq on the engines."
            yield Problem(plugin, message, fix)
        else:
            yield from _unheard(plugin.at("parameters", "kvEventsConfig"), plugin, _engines(config, context))


def _unheard(events: Node, plugin: Node, engines: tuple[Engine, ...]) -> Iterator[Problem]:
    """Events that engines publish where the picker, which dials each of them, does not listen."""
    port = events.number("podDiscoveryConfig", "socketPort") or _EVENTS_PORT
    wanted = events.text("topicFilter") or "kv@"
    for engine in engines:
        given = engine.arguments.object("kv-events-config")
        if given is None or events.at("zmqEndpoint") or events.at("discoverPods").value is False:
            continue
        bound = _BOUND.fullmatch(str(given.get("endpoint", f"tcp://*:{_EVENTS_PORT}")))
        topic = str(given.get("topic", ""))
        if bound and int(bound[1]) != port:
            message = f"the picker hears events on port {port}, {engine.pod.name} publishes on {bound[1]}"
            yield Problem(plugin, message, f"Set podDiscoveryConfig.socketPort to {bound[1]}.")
            return
        if not topic.startswith(wanted) and not unfinished(topic):
            message = f"the picker asks for topics {wanted}…, {engine.pod.name} publishes as {topic!r}"
            yield Problem(plugin, message, "Set topic to kv@ADDRESS:PORT@MODEL on the engines.")
            return


def _silent(engine: Engine) -> bool:
    """Whether an engine is sure not to publish KV events."""
    if "kv-events-config" not in engine.arguments:
        return not engine.arguments.open
    given = engine.arguments.object("kv-events-config")
    return given is not None and given.get("enable_kv_cache_events") is not True


@rule("LLMD052", "stage-order", Severity.ERROR, scope=PickerConfig)
def stage_order(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """A stage order that the picker refuses.

    Why:
        stageOrder is decode-first or prefill-first, from v0.10 on. prefill-first takes no prefill decider and
        always disaggregates.

    Bad:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins:
          - {type: always-disagg-pd-decider}
          - type: disagg-profile-handler
            parameters: {stageOrder: prefill-first, deciders: {prefill: always-disagg-pd-decider}}
        schedulingProfiles: [{name: prefill, plugins: []}, {name: decode, plugins: []}]
        ```

    Good:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: disagg-profile-handler, parameters: {stageOrder: prefill-first}}]
        schedulingProfiles: [{name: prefill, plugins: []}, {name: decode, plugins: []}]
        ```

    References:
        - observed with llm-d-router v0.10.0
    """
    for handler in config.of_type("disagg-profile-handler"):
        order = handler.at("parameters", "stageOrder")
        version = _version(config, context)
        if order and order.text() not in ("decode-first", "prefill-first"):
            message = f"stageOrder is {order.text()!r}, {_REFUSED}"
            yield Problem(order, message, "Write decode-first or prefill-first.")
        elif order and version and _STRICT <= version < (0, 10, 0):
            message = f"picker {windows.spelled(version)} has no stageOrder, {_REFUSED}"
            yield Problem(order, message, "Remove it, or use picker v0.10.0.")
        elif order.text() == "prefill-first" and handler.at("parameters", "deciders", "prefill"):
            message = f"prefill-first takes no prefill decider, {_REFUSED}"
            yield Problem(handler.at("parameters", "deciders", "prefill"), message, "Remove the decider.")


@rule("LLMD053", "picker-ignores-roles", Severity.ERROR, scope=PickerConfig)
def picker_ignores_roles(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """The pool has prefill engines, and its picker does not disaggregate at all.

    Why:
        Without disagg-profile-handler the picker knows no roles: prefill engines get whole requests, and no
        KV cache is transferred.

    Bad:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: epp}
        data:
          config.yaml: |
            apiVersion: llm-d.ai/v1alpha1
            kind: EndpointPickerConfig
            plugins: [{type: queue-scorer}]
            schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --config-file=/etc/epp/config.yaml]
        volumes: [{name: config, configMap: {name: epp}}]
        ---
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {pool: demo, llm-d.ai/role: prefill}}
        spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}
        ---
        metadata: {labels: {pool: demo, llm-d.ai/role: decode}}
        spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}
        ```

    Good:
        ```yaml
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: epp}
        data:
          config.yaml: |
            apiVersion: llm-d.ai/v1alpha1
            kind: EndpointPickerConfig
            plugins: [{type: queue-scorer}]
            schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]
        ---
        containers:
          - name: epp
            image: ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0
            args: [--pool-name=demo, --config-file=/etc/epp/config.yaml]
        volumes: [{name: config, configMap: {name: epp}}]
        ---
        kind: InferencePool
        apiVersion: inference.networking.k8s.io/v1
        metadata: {name: demo}
        spec: {selector: {matchLabels: {pool: demo}}, targetPorts: [{number: 8000}]}
        ---
        metadata: {labels: {pool: demo, llm-d.ai/role: decode}}
        spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}
        ```

    References:
        - llm-d/llm-d-router v0.10.0: deploy/config/pd-epp-config.yaml
    """
    kinds = _kinds(config, context)
    roles = {engine.pod.labels.get("llm-d.ai/role") for engine in _engines(config, context)}
    unknown = any(name not in kinds for name in config.plugins())
    headers = ("disagg-headers-handler", "prefill-header-handler", "header-profile-handler")
    if {"prefill", "decode"} <= roles and not unknown and not config.of_type(*_DISAGGREGATING, *headers):
        message = "the pool has prefill and decode engines, and no disagg-profile-handler pairs them"
        place = config.node.at("plugins")
        fix = "Add disagg-profile-handler with a prefill decider, and a profile for each role."
        yield Problem(place if place else config.node, message, fix)


@rule("LLMD054", "block-size-raised", Severity.NOTE, scope=PickerConfig)
def block_size_raised(config: PickerConfig, context: Context) -> Iterator[Problem]:
    """The approximate prefix index is told a block size that it does not use.

    Why:
        approx-prefix-cache-producer takes 64 tokens for anything below, with and without autoTune.

    Bad:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: approx-prefix-cache-producer, parameters: {blockSizeTokens: 16, autoTune: false}}]
        schedulingProfiles: [{name: default, plugins: []}]
        ```

    Good:
        ```yaml
        kind: EndpointPickerConfig
        apiVersion: llm-d.ai/v1alpha1
        plugins: [{type: approx-prefix-cache-producer, parameters: {blockSizeTokens: 64, autoTune: false}}]
        schedulingProfiles: [{name: default, plugins: []}]
        ```

    References:
        - observed with llm-d-router v0.10.0
    """
    least = 64
    for plugin in config.of_type("approx-prefix-cache-producer"):
        place = plugin.at("parameters", "blockSizeTokens")
        if (given := place.number()) is not None and 0 < given < least:
            yield Problem(
                place, f"blockSizeTokens is {given}, and {least} is used", f"Write {least} or more."
            )
