"""The data files of the catalogue: what every release has, each entry once with the releases that have it.

A file of generated data (configs.json, flags.json, env.json, connectors.json, …) is

    {"about": "…", "entries": {NAME: [{"in": SPANS, **RECORD}, …], …}}

SPANS names the releases whose entry is that record: "0.11.0-0.19.1" from the first to the last of these,
"0.20.0-" up to the newest of the catalogue, several with ", " between. A record that holds nothing is written
as its spans alone. releases.json lists the releases, oldest first. Names are sorted, one record stands on one
line, and equal records are never written twice, so that the difference between two commits is the difference
between two catalogues.
"""

from __future__ import annotations

import functools
import json
from itertools import groupby
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Records = dict[str, Record]
"""Record by name, as one release has them."""

DATA = Path(__file__).parent / "data"
KINDS = ("configs", "connectors", "env", "flags", "kv_transfer")

_ABOUT = "Made by `vllm-phases catalogue add` from vLLM's releases; do not edit. Format: catalogue/store.py."


def releases() -> tuple[str, ...]:
    """The releases of the catalogue, oldest first."""
    return tuple(_read(DATA / "releases.json")["releases"])


def at(kind: str, version: str) -> Records:
    """What a release of the catalogue has of a kind."""
    position = {release: index for index, release in enumerate(releases())}
    here = position[version]
    found: Records = {}
    for name, variants in _read(DATA / f"{kind}.json")["entries"].items():
        for variant in [{"in": variants}] if isinstance(variants, str) else variants:
            if _covers(variant["in"], here, position):
                found[name] = {key: value for key, value in variant.items() if key != "in"}
    return found


def add(version: str, kinds: dict[str, Records]) -> None:
    """Write a release into every data file, in place of what was known of it."""
    known = {kind: {release: at(kind, release) for release in releases()} for kind in KINDS}
    ordered = sorted({*releases(), version}, key=sort_key)
    for kind in KINDS:
        by_release = {**known[kind], version: kinds[kind]}
        entries = _entries([by_release[release] for release in ordered], ordered)
        _write(DATA / f"{kind}.json", "entries", "{\n" + ",\n".join(entries) + "\n}")
    _write(DATA / "releases.json", "releases", json.dumps(ordered, indent=0))
    _read.cache_clear()


@functools.cache
def facts(name: str) -> dict[str, dict[str, Any]]:
    """The entries of a hand-written file ("features", "images" or "metrics"); its head explains the keys."""
    import yaml

    text = (DATA / f"{name}.yaml").read_text(encoding="utf-8")
    entries: dict[str, dict[str, Any]] = yaml.load(text, yaml.CSafeLoader)
    return entries


def sort_key(version: str) -> tuple[int, ...]:
    """The order of releases, which are numbers with dots."""
    return tuple(int(part) for part in version.split("."))


@functools.cache
def _read(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def _write(file: Path, key: str, body: str) -> None:
    file.write_text(f'{{\n"about": {json.dumps(_ABOUT)},\n"{key}": {body}\n}}\n', encoding="utf-8")


def _covers(spans: str, here: int, position: dict[str, int]) -> bool:
    for span in spans.split(", "):
        first, dash, last = span.partition("-")
        end = position[last] if last else len(position) if dash else position[first]
        if position[first] <= here <= end:
            return True
    return False


def _entries(by_release: list[Records], ordered: list[str]) -> list[str]:
    """The lines of a file: for each name its distinct records with their spans."""
    lines = []
    for name in sorted({name for records in by_release for name in records}):
        holders: dict[str, list[int]] = {}
        for index, records in enumerate(by_release):
            if name in records:
                holders.setdefault(json.dumps(records[name], sort_keys=True), []).append(index)
        lines.append(f"{json.dumps(name)}: {_variants(holders, ordered)}")
    return lines


def _variants(holders: dict[str, list[int]], ordered: list[str]) -> str:
    if list(holders) == ["{}"]:
        return json.dumps(_spans(holders["{}"], ordered))
    rows = [{"in": _spans(indices, ordered), **json.loads(record)} for record, indices in holders.items()]
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]"


def _spans(indices: list[int], ordered: list[str]) -> str:
    """Runs of neighbours among the releases: [0, 1, 2, 5] is "first-third, sixth"."""
    runs = [
        [index for _, index in run] for _, run in groupby(enumerate(indices), lambda pair: pair[1] - pair[0])
    ]
    return ", ".join(_span(run[0], run[-1], ordered) for run in runs)


def _span(first: int, last: int, ordered: list[str]) -> str:
    if last == len(ordered) - 1:
        return f"{ordered[first]}-"
    return ordered[first] if first == last else f"{ordered[first]}-{ordered[last]}"
