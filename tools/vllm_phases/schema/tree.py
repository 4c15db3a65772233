"""A chart's values as a tree of keys, with references followed, includes taken over and defaults composed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vllm_phases.schema.sources import BrokenReferenceError, Place, Sources

_UNSET: Any = object()


@dataclass(frozen=True)
class Key:
    """One key of a chart's values.

    `written` is where the key itself stands in the sources, `target` what it refers to there, or itself.
    `included` marks a key that its object takes over from another file. `default` is composed from the keys
    below; `has_default` is false for a key that no default reaches.
    """

    name: str
    written: Place
    target: Place
    included: bool
    children: tuple[Key, ...]
    default: Any
    has_default: bool

    @property
    def schema(self) -> Mapping[str, Any]:
        """What is said of the key, with its reference followed."""
        return self.target.schema

    @property
    def block(self) -> str:
        """The source file that describes the keys below, where that is a whole file of its own, or empty."""
        whole_file = not self.target.pointer and self.target.address != self.written.address
        return self.target.file if whole_file else ""

    @property
    def hidden(self) -> bool:
        """Allowed because Helm puts it there, but not for users to set."""
        return bool(self.schema.get("x-hidden", False))

    @property
    def subchart(self) -> str:
        """The chart whose values stand here, or empty."""
        return str(self.schema.get("x-subchart", ""))

    @property
    def printed(self) -> tuple[Key, ...]:
        """The keys below that the chart's values.yaml shows: a subchart has its own file for the rest."""
        return tuple(key for key in self.children if not key.hidden and not (self.subchart and key.included))


def keys(sources: Sources, place: Place) -> Key:
    """The tree of keys at and below a place, such as the root of a chart or the top of a block.

    Raises BrokenReferenceError where an object contains itself.
    """
    return _Tree(sources).key("", place, _UNSET, ())


@dataclass(frozen=True)
class _Tree:
    sources: Sources

    def key(
        self, name: str, place: Place, default: Any, above: tuple[Any, ...], *, included: bool = False
    ) -> Key:
        """One key and those below; `default` is what an object above gives it, `above` are those objects."""
        target = self.sources.effective(place)
        if target.address in above:
            raise BrokenReferenceError(f"{name} contains itself: {self.sources.where(place)}")
        if default is _UNSET:
            default = target.schema.get("default", _UNSET)
        children = self.children(target, default, above)
        composed = _compose(target.schema, children, default)
        given = composed is not _UNSET
        return Key(name, place, target, included, children, composed if given else None, given)

    def children(self, target: Place, default: Any, above: tuple[Any, ...]) -> tuple[Key, ...]:
        own = target.schema.get("properties", {})
        given = default if isinstance(default, Mapping) else {}
        return tuple(
            self.key(name, place, given.get(name, _UNSET), (*above, target.address), included=name not in own)
            for name, place in self.sources.properties(target).items()
        )


def _compose(schema: Mapping[str, Any], children: tuple[Key, ...], default: Any) -> Any:
    """An object's default is that of its keys; one written beside them wins, key by key or as a null."""
    if not children or (default is not _UNSET and not isinstance(default, Mapping)):
        return default
    shown = (key for key in children if not (schema.get("x-subchart") and key.included))
    return {key.name: key.default for key in shown if key.has_default and not key.hidden}
