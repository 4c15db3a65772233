"""A packing as a picture: every card a column that its pods fill from the bottom, every node a panel."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from vllm_phases.report.pack import letter, names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vllm_phases.packing.advice import Stuck
    from vllm_phases.packing.picture import Panel, Picture, Share, Tile

_MOST_PANELS = 60
_WIDTH, _MARGIN, _GAP = 1000, 32, 20
_COLUMN, _HEIGHT, _SPACE = 46, 132, 8
_PAD, _HEAD, _FOOT = 14, 46, 44
_LINE, _LETTERS = 22, 135
# Colours that differ for those who see red and green alike (Okabe and Ito).
_COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8d6cab", "#7a7a00")
_STYLE = """
text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2933}
.back{fill:#fff}.panel{fill:#f6f8fa;stroke:#d9e0e7}.card{fill:#e4e9ee}.edge{fill:none;stroke:#b3bec9}
.t{font-size:20px;font-weight:600}.n{font-size:14px;font-weight:600}.s{font-size:12px}.d{fill:#5f6f7f}
.m{text-anchor:middle}.l{fill:#fff;font-size:15px;font-weight:600;text-anchor:middle}.p{fill:#b42318}
.off{fill:url(#off)}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.back{fill:#0d1117}.panel{fill:#161b22;stroke:#30363d}
.card{fill:#262d36}.edge{stroke:#4a5460}.d{fill:#9aa7b4}.l{fill:#fff}.p{fill:#ff8a80}}
""".replace("\n", "")
_HATCH = (
    '<defs><pattern id="off" width="8" height="8" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="3" height="8" fill="#9aa7b4"/></pattern></defs>'
)


def report(picture: Picture, stuck: Sequence[Stuck]) -> str:
    """The picture as one SVG file, for light and dark pages."""
    top = _MARGIN + 18.0
    nodes = sum(len(panel.names) for panel in picture.panels)
    title = f"{picture.placed} of {picture.came} pods placed on {nodes} {'node' if nodes == 1 else 'nodes'}"
    parts = [_text(_MARGIN, top, title, "t")]
    top = _legend(parts, picture, top + 14)
    top = _panels(parts, picture.panels[:_MOST_PANELS], top + 10)
    if more := sum(len(panel.names) for panel in picture.panels[_MOST_PANELS:]):
        parts.append(_text(_MARGIN, top + 16, f"… and {more} more nodes", "s d"))
        top += _LINE
    for line, kind in _pending(stuck):
        top += _LINE if kind != "n p" else _LINE + 8
        parts.append(_text(_MARGIN, top, line, kind))
    return _file(round(top + _MARGIN), parts)


def _file(height: int, parts: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" role="img" aria-label="Pods on GPUs"><style>{_STYLE}</style>{_HATCH}'
        f'<rect class="back" width="{_WIDTH}" height="{height}"/>'
    )
    return "\n".join((head, *parts, "</svg>", ""))


def _legend(parts: list[str], picture: Picture, top: float) -> float:
    """A line for each workload; the height where the next part may start."""
    for place, row in enumerate(picture.rows):
        top += _LINE
        color = _COLORS[place % len(_COLORS)]
        parts.append(
            f'<rect x="{_MARGIN}" y="{top - 15}" width="20" height="20" rx="4" fill="{color}"/>'
            f'<text class="l" x="{_MARGIN + 10}" y="{top}">{letter(place)}</text>'
        )
        words = f"{row.workload.id}   {row.placed} of {row.came} placed   {row.size} each"
        parts.append(_text(_MARGIN + 30, top, words, "s"))
    return top + _LINE / 2


def _panels(parts: list[str], panels: Sequence[Panel], top: float) -> float:
    """Panels side by side as far as there is room, then on the next line."""
    left, lowest = float(_MARGIN), top
    for panel in panels:
        width, height = _size(panel)
        if left > _MARGIN and left + width > _WIDTH - _MARGIN:
            left, top = float(_MARGIN), lowest + _GAP
        parts.extend(_panel(panel, left, top, width, height))
        left += width + _GAP
        lowest = max(lowest, top + height)
    return lowest


def _columns(panel: Panel) -> int:
    """Cards in a row."""
    most = int((_WIDTH - 2 * _MARGIN - 2 * _PAD + _SPACE) / (_COLUMN + _SPACE))
    return max(1, min(len(panel.tiles), most))


def _size(panel: Panel) -> tuple[float, float]:
    columns = _columns(panel)
    rows = -(-len(panel.tiles) // columns)
    words = max(len(names(panel)) * 8.2, min(len(panel.title), 60) * 6.6)
    width = max(columns * (_COLUMN + _SPACE) - _SPACE, words) + 2 * _PAD
    return min(width, _WIDTH - 2 * _MARGIN), _HEAD + rows * (_HEIGHT + _FOOT) + 4


def _panel(panel: Panel, left: float, top: float, width: float, height: float) -> Iterator[str]:
    yield (
        f'<rect class="panel" x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}" rx="8"/>'
    )
    yield _text(left + _PAD, top + 20, names(panel), "n")
    yield _text(left + _PAD, top + 37, panel.title, "s d")
    columns = _columns(panel)
    for place, tile in enumerate(panel.tiles):
        x = left + _PAD + place % columns * (_COLUMN + _SPACE)
        y = top + _HEAD + 4 + place // columns * (_HEIGHT + _FOOT)
        yield from _card(tile, x, y)


def _card(tile: Tile, left: float, top: float) -> Iterator[str]:
    """A column; the shares stand on each other, and a card that is closed is hatched where it is free."""
    box = f'x="{left:.0f}" y="{top:.0f}" width="{_COLUMN}" height="{_HEIGHT}" rx="4"'
    yield f'<rect class="card" {box}/>'
    if tile.note and tile.taken < tile.memory:
        yield f'<rect class="off" {box} opacity=".45"/>'
    bottom = top + _HEIGHT
    for share in tile.shares:
        height = max(3.0, min(share.part, 1.0) * _HEIGHT - 2)
        bottom -= height + 2
        yield from _share(share, left, bottom, height)
    yield f'<rect class="edge" {box}/>'
    middle = left + _COLUMN / 2
    yield _text(middle, top + _HEIGHT + 15, tile.label.rpartition(" ")[2], "s m")
    yield _text(middle, top + _HEIGHT + 29, _short(tile), "s d m")


def _share(share: Share, left: float, bottom: float, height: float) -> Iterator[str]:
    """A pod's part of a card, with its workload's letter where there is room for it."""
    color = _COLORS[share.workload % len(_COLORS)]
    yield (
        f'<rect x="{left + 1:.0f}" y="{bottom + 1:.1f}" width="{_COLUMN - 2}" height="{height:.1f}" '
        f'rx="3" fill="{color}"><title>{share.memory} MiB</title></rect>'
    )
    if height > 16:
        place = f'x="{left + _COLUMN / 2:.0f}" y="{bottom + height / 2 + 6:.1f}"'
        yield f'<text class="l" {place}>{letter(share.workload)}</text>'


def _short(tile: Tile) -> str:
    """What stands below a card: how much of it is taken, or why it takes nobody."""
    if tile.note in ("cordoned", "unhealthy"):
        return {"cordoned": "closed", "unhealthy": "broken"}[tile.note]
    if not tile.memory:
        return "in use" if tile.shares else "free"
    return f"{tile.taken * 100 // tile.memory} %" if tile.shares else "free"


def _pending(stuck: Sequence[Stuck]) -> Iterator[tuple[str, str]]:
    for one in stuck:
        yield f"Pending: {len(one.pods)} of {one.workload.id}", "n p"
        for count, reason in one.reasons[:4]:
            yield f"{count} {'node' if count == 1 else 'nodes'}: {reason}", "s"
        yield from ((part, "s d") for line in one.advice[:4] for part in textwrap.wrap(line, _LETTERS))


def _text(x: float, y: float, words: str, kind: str) -> str:
    shown = textwrap.shorten(words, _LETTERS, placeholder=" …") if len(words) > _LETTERS else words
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}" xml:space="preserve">{escape(shown)}</text>'
