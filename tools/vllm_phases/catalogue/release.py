"""What one engine release knows: its flags, environment variables, connectors and kv-transfer fields."""

from __future__ import annotations

import difflib
import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vllm_phases.catalogue import store
from vllm_phases.finding import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:\.?(?:a|b|rc|post|dev)\d+)?(?:[-+].+)?")


class UnknownVersion(UsageError):  # noqa: N818  # what is wrong with the input
    """The engine version is no release number, or older than the catalogue."""


@dataclass(frozen=True)
class Flag:
    """An option of `vllm serve`.

    name     without dashes, as its destination is spelt: "tensor-parallel-size"
    options  every spelling in the release's help: "--tensor-parallel-size", "-tp"
    hidden   further spellings that the parser takes
    default  null also where the engine decides; {} for a configuration object with defaults of its own
    type     of the value: "int", "float", "str", "bool", "json", "json or str", "human int" (4k, 4K) or
             "human int or auto", with "optional " in front where None is a value; null: the flag takes none
    nargs    how many values, as argparse writes it; null: one, or none where type is null
    action   "store", "store_true", "boolean" (one option for yes and one for no), "append" or "help"
    """

    name: str
    options: tuple[str, ...]
    hidden: tuple[str, ...]
    dest: str
    default: Any
    type: str | None
    choices: tuple[Any, ...] | None
    nargs: str | int | None
    action: str


@dataclass(frozen=True)
class KvField:
    """A field of `--kv-transfer-config`; computed: the engine works the default out when it starts."""

    type: str
    default: Any
    computed: bool


@dataclass(frozen=True)
class Config:
    """The class that the JSON of a flag becomes.

    name    of the class, "KVEventsConfig"
    closed  whether it refuses keys that it does not have; else it passes over them
    fields  the type of each key, as Python writes it: "int", "str | None", "Literal['null', 'zmq']"
    """

    name: str
    closed: bool
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Resolution:
    """What the engine's parser makes of an option.

    option   the option without its value, with dashes: "--tensor-parallel"
    matches  the spellings it stands for: one when it is known, several when ambiguous, none when unknown
    flag     the flag it stands for, where that is one
    """

    option: str
    matches: tuple[str, ...]
    flag: Flag | None

    @property
    def abbreviated(self) -> bool:
        """Whether the parser only completes the option: a later release may make it ambiguous."""
        return (
            self.flag is not None
            and self.matches[0] != self.option
            and self.matches[0].startswith(self.option)
        )

    @property
    def ambiguous(self) -> bool:
        """Whether the parser refuses the option because it could be several."""
        return len(self.matches) > 1


@dataclass(frozen=True)
class EngineRelease:
    """One release; `requested` is the version that was asked for, which may lie beside the catalogue's.

    flags    by every option string that the parser takes, so that several keys lead to one flag
    configs  by the name of the flag; only of flags whose JSON becomes an object of a class
    """

    version: str
    requested: str
    flags: Mapping[str, Flag]
    connectors: frozenset[str]
    kv_transfer_fields: Mapping[str, KvField]
    env: frozenset[str]
    configs: Mapping[str, Config] = field(default_factory=dict)

    @property
    def newer_than_catalogue(self) -> bool:
        """Whether the version asked for came after the newest of the catalogue, so facts may be stale."""
        return _numbers(self.requested) > store.sort_key(versions()[-1])

    def resolve(self, option: str) -> Resolution:
        """Read an option as the engine's parser does (vllm/utils/argparse_utils.py over argparse).

        "--a_b" is "--a-b", "--a=1" and "--a.b" are "--a", "-O3" is the optimization level, and a unique
        beginning is completed.
        """
        name = _name(option)
        matches = (name,) if name in self.flags else self._completions(name, option)
        return Resolution(name, matches, self.flags[matches[0]] if len(matches) == 1 else None)

    def nearest(self, option: str) -> str | None:
        """The known option that an unknown one most resembles, or None."""
        visible = {spelling for flag in self.flags.values() for spelling in flag.options}
        return next(iter(difflib.get_close_matches(_name(option), sorted(visible), n=1)), None)

    def _completions(self, name: str, option: str) -> tuple[str, ...]:
        if name.startswith("--"):
            return tuple(spelling for spelling in self.flags if spelling.startswith(name))
        if name == "-O":  # replaced before the parser sees it
            return tuple({"--optimization-level"} & self.flags.keys())
        letter = option[:2]  # a one-letter option with its value, as in -n2
        return tuple(spelling for spelling in self.flags if spelling == letter or spelling.startswith(option))


def versions() -> tuple[str, ...]:
    """The releases of the catalogue, oldest first."""
    return store.releases()


@functools.cache
def load(version: str) -> EngineRelease:
    """The release, or the nearest of the catalogue below it; UnknownVersion when there is none.

    A leading v and what follows the numbers (rc1, .post1, +cu130, -rocm) are not looked at.
    """
    known = versions()
    below = [release for release in known if store.sort_key(release) <= _numbers(version)]
    if not below:
        raise UnknownVersion(
            f"engine version {version} is older than the catalogue, "
            f"which holds vLLM {known[0]} to {known[-1]}: set a version in that range"
        )
    return _read(below[-1], version)


def _numbers(version: str) -> tuple[int, ...]:
    match = _VERSION.fullmatch(version)
    if not match:
        raise UnknownVersion(
            f"engine version {version!r} is not a release number: set one such as {versions()[-1]} "
            f"(the catalogue holds vLLM {versions()[0]} to {versions()[-1]})"
        )
    return tuple(int(part or 0) for part in match.groups())


def _read(version: str, requested: str) -> EngineRelease:
    flags = [_flag(name, record) for name, record in store.at("flags", version).items()]
    fields = store.at("kv_transfer", version)
    return EngineRelease(
        version=version,
        requested=requested,
        flags={option: flag for flag in flags for option in (*flag.options, *flag.hidden)},
        connectors=frozenset(store.at("connectors", version)),
        kv_transfer_fields={name: _field(record) for name, record in fields.items()},
        env=frozenset(store.at("env", version)),
        configs=_configs(store.at("configs", version)),
    )


def _configs(records: store.Records) -> dict[str, Config]:
    fields: dict[str, dict[str, str]] = {}
    for name, record in records.items():
        flag, dot, key = name.partition(".")
        if dot:
            fields.setdefault(flag, {})[key] = record["type"]
    return {
        name: Config(record["class"], record["closed"], fields.get(name, {}))
        for name, record in records.items()
        if "." not in name
    }


def _flag(name: str, record: store.Record) -> Flag:
    choices = record.get("choices")
    return Flag(
        name=name,
        options=tuple(record.get("options", [f"--{name}"])),
        hidden=tuple(record.get("hidden", [])),
        dest=record.get("dest", name.replace("-", "_")),
        default=record.get("default"),
        type=record.get("type"),
        choices=None if choices is None else tuple(choices),
        nargs=record.get("nargs"),
        action=record.get("action", "store"),
    )


def _field(record: store.Record) -> KvField:
    return KvField(record["type"], record.get("default"), record.get("computed", False))


def _name(option: str) -> str:
    """The option alone, with dashes: what precedes the first = and the first dot."""
    if option.startswith("-O"):
        return "-O"
    name = option.partition("=")[0].partition(".")[0]
    return name.replace("_", "-") if name.startswith("--") else name
