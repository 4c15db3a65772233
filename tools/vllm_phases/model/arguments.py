"""A command line as its program's parser reads it."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from vllm_phases.sources import yaml_reader
from vllm_phases.sources.positions import line_starts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vllm_phases.catalogue import EngineRelease, Flag, Resolution
    from vllm_phases.finding import Location
    from vllm_phases.sources.document import Node
    from vllm_phases.sources.shell import Word
    from vllm_phases.sources.yaml_reader import Places

_OPTION = re.compile(r"--\w|-[A-Za-z]")
_HUMAN = re.compile(r"(\d+(?:\.\d+)?)([kmgtKMGT])")
_DECIMAL, _BINARY = (
    {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12},
    {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40},
)


@dataclass(frozen=True)
class Argument:
    """An option with the words that are its values.

    written   as it stands, without a value: "--tensor-parallel", "-tp", "--kv-transfer-config.kv_role"
    name      of its flag, "tensor-parallel-size"; as it is written, without dashes, where that is unknown
    keys      of a dotted option, ("kv_role",)
    following every word up to the next option; values are those that the parser takes for this one
    attached  whether the value stands in the same word, after "="
    negated   whether it is the form that switches off: --no-x, or --disable-x of --enable-x
    """

    word: Word
    written: str
    name: str
    resolution: Resolution | None
    keys: tuple[str, ...]
    values: tuple[Word, ...]
    following: tuple[Word, ...]
    attached: bool
    negated: bool

    @property
    def flag(self) -> Flag | None:
        """The flag that it stands for, where the release has one."""
        return self.resolution.flag if self.resolution else None

    @property
    def value(self) -> str | None:
        """The text of its first value, if there is one and all of it is known."""
        return self.values[0].text if self.values and self.values[0].known else None

    def key(self, *path: str | int) -> Key:
        """A key of its JSON, by the way to it."""
        return Key(self, path)


@dataclass(frozen=True)
class Key:
    """A key in the JSON of an option, or an item of a list there."""

    argument: Argument
    path: tuple[str | int, ...]

    @property
    def node(self) -> Node | None:
        """The value of a document that holds the option."""
        return self.argument.word.node

    @property
    def location(self) -> Location | None:
        """Where the key stands, or else the option."""
        return self._exact or self.argument.word.location

    @property
    def _exact(self) -> Location | None:
        """The place of the key, or of the last key above it that is there; None where it cannot be known."""
        option = self.argument
        if option.keys or not option.values:
            return None
        value, word = option.values[0], option.word if option.attached else option.values[0]
        if value.node is not None and isinstance(value.node.value, dict):  # in the file of --config
            return value.node.at(*self.path).location
        spot = _spot(value.text, self.path)
        return None if spot is None else word.location_of(len(word.text) - len(value.text) + spot)


@dataclass(frozen=True)
class Arguments:
    """The options and positional words of a command line, in order.

    open  whether more may come that cannot be seen, such as "$EXTRA_ARGS" or a configuration file
    """

    options: tuple[Argument, ...]
    positionals: tuple[Word, ...]
    open: bool

    def all(self, name: str) -> tuple[Argument, ...]:
        """Every option of a flag."""
        return self._by_name.get(name, ())

    def last(self, name: str) -> Argument | None:
        """The option that counts: the last without keys, or else the last."""
        return self._last.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @functools.cached_property
    def _last(self) -> dict[str, Argument]:
        found: dict[str, Argument] = {}
        for option in self.options:
            whole = option.name in found and not found[option.name].keys
            if not (option.keys and whole):
                found[option.name] = option
        return found

    @functools.cached_property
    def _by_name(self) -> dict[str, tuple[Argument, ...]]:
        found: dict[str, tuple[Argument, ...]] = {}
        for option in self.options:
            found[option.name] = (*found.get(option.name, ()), option)
        return found

    def text(self, name: str) -> str | None:
        """The value of a flag; None where it is not given or not known."""
        found = self.last(name)
        return found.value if found else None

    def number(self, name: str) -> int | None:
        """The whole number of a flag, also written as 4k or 4K; None as for text, or where it is none."""
        return whole_number(self.text(name))

    def truth(self, name: str) -> bool | None:
        """Whether a switch is on; None where it is not given."""
        found = self.last(name)
        if found is None:
            return None
        if found.attached and found.value is not None:
            return found.value.lower() not in ("false", "0", "no") and not found.negated
        return not found.negated

    def object(self, name: str) -> dict[str, Any] | None:
        """The JSON object of a flag, with what its dotted options add; None where it cannot be known."""
        merged: dict[str, Any] = {}
        for option in self.all(name):
            content = json_object(option.value) if option.value is not None or not option.values else None
            if option.keys:
                _place(merged, option.keys, _json(option.values[0].text) if option.values else None)
            elif content is None and (content := _unresolved(option)) is None:
                return None
            else:
                merged = {**content, **merged}
        return merged if name in self else None


def parse(words: Sequence[Word], release: EngineRelease | None) -> Arguments:
    """Read words as the API server of a vLLM release does, or as a usual program where release is None.

    A usual program takes every word after an option, up to the next one, for its values.
    """
    starts = [index for index, word in enumerate(words) if _OPTION.match(word.text)]
    options: list[Argument] = []
    positionals = list(words[: starts[0]] if starts else words)
    opens = [word for word in positionals if word.opaque]
    for start, end in pairwise([*starts, len(words)]):
        option = _argument(words[start], tuple(words[start + 1 : end]), release)
        rest = option.following[0 if option.attached else len(option.values) :]
        options.append(option)
        positionals.extend(rest)
        opens.extend(word for word in rest if word.opaque)
    configured = release is not None and any(option.name == "config" for option in options)
    return Arguments(tuple(options), tuple(positionals), bool(opens) or configured)


def _spot(text: str, path: tuple[str | int, ...]) -> int | None:
    """The offset of a key in a JSON text, which is YAML as well."""
    places: Places = {}
    try:
        yaml_reader.documents(text, places)
    except yaml_reader.Unreadable:
        return None
    found = yaml_reader.nearest(places, path)
    return line_starts(text)[found.line] + found.column if found else None


def whole_number(text: str | None) -> int | None:
    """The number that vLLM reads in a text: 4096, 4k (4000), 4K (4096); None for any other text."""
    if text is None:
        return None
    if match := _HUMAN.fullmatch(text.strip()):
        return int(float(match[1]) * {**_DECIMAL, **_BINARY}[match[2]])
    try:
        return int(text)
    except ValueError:
        return None


def json_object(text: str | None) -> dict[str, Any] | None:
    """The JSON object in a text; None where there is none."""
    found = _json(text) if text is not None else None
    return found if isinstance(found, dict) else None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _unresolved(option: Argument) -> dict[str, Any] | None:
    """The object of a text in which some values are known at run time only, and stand as written."""
    return json_object(option.values[0].text) if option.values else None


def _place(tree: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    for key in keys[:-1]:
        below = tree.setdefault(key, {})
        if not isinstance(below, dict):
            return
        tree = below
    tree[keys[-1]] = value


def _argument(word: Word, following: tuple[Word, ...], release: EngineRelease | None) -> Argument:
    written, attached, value = word.text.partition("=")
    resolution = release.resolve(written) if release else None
    flag = resolution.flag if resolution else None
    spelling = resolution.matches[0] if resolution and flag else written
    name, *keys = (flag.name if flag else written.lstrip("-").replace("_", "-"), *written.split(".")[1:])
    if flag is None:
        name = name.partition(".")[0]
    values = (_attached(word, value),) if attached else tuple(_taken(following, flag, bool(keys)))
    opposite = name.startswith(("enable-", "disable-")) and spelling == f"--{_opposite(name)}"
    negated = opposite or (spelling.startswith("--no-") and not name.startswith("no-"))
    return Argument(word, written, name, resolution, tuple(keys), values, following, bool(attached), negated)


def _opposite(name: str) -> str:
    """The other of a pair such as --enable-x and --disable-x."""
    word, _, rest = name.partition("-")
    return f"{'disable' if word == 'enable' else 'enable'}-{rest}"


def _attached(word: Word, value: str) -> Word:
    """The value in the word of an option."""
    return replace(word, text=value, column=word.column + len(word.text) - len(value), opaque=False)


def _taken(following: Sequence[Word], flag: Flag | None, keyed: bool) -> Iterator[Word]:
    """The words that the parser takes for the values of an option without "="."""
    if flag is None:
        yield from following
    elif keyed or (flag.type is not None and flag.nargs in (None, "?")):
        yield from following[:1]
    elif flag.type is not None:
        yield from following
