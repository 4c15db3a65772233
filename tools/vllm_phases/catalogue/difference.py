"""What an engine gains, loses and changes from one release to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.catalogue.release import EngineRelease, Flag, KvField

Aspects = dict[str, Any]
"""What can change of an entry: its default, and for flags its choices and spellings too."""


@dataclass(frozen=True)
class Change:
    """An entry of one release or both; of both, before and after hold only the aspects that differ."""

    name: str
    before: Aspects | None
    after: Aspects | None

    @property
    def sign(self) -> str:
        """+ for an entry that appears, - for one that vanishes, ~ for one that changes."""
        return "+" if self.before is None else "-" if self.after is None else "~"


def difference(old: EngineRelease, new: EngineRelease) -> dict[str, list[Change]]:
    """The changes by kind (connectors, kv_transfer, flags, env), each sorted by name."""
    return {
        "connectors": list(_changes(_names(old.connectors), _names(new.connectors))),
        "kv_transfer": list(_changes(_fields(old.kv_transfer_fields), _fields(new.kv_transfer_fields))),
        "flags": list(_changes(_flags(old.flags), _flags(new.flags))),
        "env": list(_changes(_names(old.env), _names(new.env))),
    }


def _changes(old: Mapping[str, Aspects], new: Mapping[str, Aspects]) -> Iterator[Change]:
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            yield Change(name, before, after)
        elif before != after:
            differing = [aspect for aspect in before if before[aspect] != after[aspect]]
            yield Change(
                name,
                {aspect: before[aspect] for aspect in differing},
                {aspect: after[aspect] for aspect in differing},
            )


def _names(names: frozenset[str]) -> dict[str, Aspects]:
    return {name: {} for name in names}


def _fields(fields: Mapping[str, KvField]) -> dict[str, Aspects]:
    return {
        name: {"default": "(computed)" if field.computed else field.default} for name, field in fields.items()
    }


def _flags(flags: Mapping[str, Flag]) -> dict[str, Aspects]:
    return {
        f"--{flag.name}": {
            "default": flag.default,
            "choices": list(flag.choices or ()),
            "spellings": sorted({*flag.options, *flag.hidden}),
        }
        for flag in flags.values()
    }
