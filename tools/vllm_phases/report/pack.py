"""A packing for a terminal: a bar for every card, and why pods stay Pending."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vllm_phases.packing.advice import Stuck
    from vllm_phases.packing.picture import Panel, Picture, Tile

_BAR = 40
_MOST_PANELS = 40
_COLORS = ("cyan", "magenta", "green", "yellow", "blue", "red", "bright_cyan", "bright_magenta")
_FREE, _FILL = "·", "█"


def report(picture: Picture, stuck: Sequence[Stuck], notes: Sequence[str]) -> str:
    """The whole picture; in colours, which `click.echo` drops where they do not belong."""
    parts = [_headline(picture)]
    parts += ["\n".join(_panel(panel)) for panel in picture.panels[:_MOST_PANELS]]
    if more := picture.panels[_MOST_PANELS:]:
        nodes = sum(len(panel.names) for panel in more)
        parts.append(f"… and {nodes} more nodes; --format json has all of them")
    parts.append("\n".join(_legend(picture)))
    parts += ["\n".join(_stuck(one)) for one in stuck]
    parts += [f"{click.style('note', fg='blue', bold=True)}: {note}" for note in notes]
    return "\n\n".join(parts)


def letter(workload: int) -> str:
    """The letter of a workload: a to z, then A to Z, then again."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return letters[workload % len(letters)]


def names(panel: Panel) -> str:
    """The names of nodes that look the same: the first and the last one, and how many."""
    first, *others = panel.names
    return f"{first} … {others[-1]} ({len(panel.names)} alike)" if others else first


def _headline(picture: Picture) -> str:
    nodes = sum(len(panel.names) for panel in picture.panels)
    tiles = [tile for panel in picture.panels for tile in panel.tiles for _ in panel.names]
    used = sum(bool(tile.shares) for tile in tiles)
    came, placed = picture.came, picture.placed
    where = f"{used} of {len(tiles)} cards, {nodes} {'node' if nodes == 1 else 'nodes'}"
    text = f"{placed} of {came} pods placed on {where}"
    return click.style(text, fg="green" if came == placed else "red", bold=True)


def _panel(panel: Panel) -> Iterator[str]:
    yield f"{click.style(names(panel), bold=True)}  {panel.title}"
    rows = []
    for _, group in groupby(panel.tiles, lambda tile: (tile.memory, tile.slots, tile.shares, tile.note)):
        alike = list(group)
        first, last = alike[0].label, alike[-1].label
        label = first if first == last else f"{first}-{last.rpartition(' ')[2]}"
        rows.append((label, alike[0]))
    width = max((len(label) for label, _ in rows), default=0)
    for label, shown in rows:
        yield f"  {label:>{width}} │{_bar(shown)}│ {_words(shown)}"


def _bar(tile: Tile) -> str:
    """Each share as long as its part of the card, its letter first; what is free as dots."""
    edges, total = [0], 0.0
    for share in tile.shares:
        total += share.part
        edges.append(min(_BAR, max(edges[-1] + 1, round(total * _BAR))))
    text = "".join(
        _piece(share.workload, end - start)
        for share, start, end in zip(tile.shares, edges, edges[1:], strict=False)
    )
    return text + click.style(_FREE * (_BAR - edges[-1]), dim=True)


def _piece(workload: int, width: int) -> str:
    text = (letter(workload) + _FILL * (width - 1))[:width]
    return click.style(text, fg=_COLORS[workload % len(_COLORS)])


def _words(tile: Tile) -> str:
    if not tile.shares:
        return tile.note or "free"
    if not tile.memory:
        return "in use"
    slots = f", {len(tile.shares)} of {tile.slots} slots" if len(tile.shares) > 1 else ""
    return f"{tile.taken} MiB{slots}{', ' * bool(tile.note)}{tile.note}"


def _legend(picture: Picture) -> Iterator[str]:
    width = max((len(row.workload.id) for row in picture.rows), default=0)
    for place, row in enumerate(picture.rows):
        mark = click.style(f"{letter(place)} {_FILL * 2}", fg=_COLORS[place % len(_COLORS)])
        yield f"{mark} {row.workload.id:<{width}}  {row.placed} of {row.came} placed  {row.size}"


def _stuck(one: Stuck) -> Iterator[str]:
    shown = ", ".join(one.pods[:3]) + (f", … {one.pods[-1]}" if len(one.pods) > 3 else "")
    head = click.style("Pending", fg="red", bold=True)
    yield f"{head}: {len(one.pods)} of {one.workload.id} ({shown})"
    yield from (f"  {count} {'node' if count == 1 else 'nodes'}: {reason}" for count, reason in one.reasons)
    yield from (f"  {line}" for line in one.advice)
