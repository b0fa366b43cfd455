"""The day as a picture: an SVG file written by hand, and a small one for the terminal."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import NamedTuple

WIDTH, PANEL_HEIGHT, LEFT, TOP, GAP = 860, 130, 64, 58, 46
BLOCKS = " ▁▂▃▄▅▆▇█"
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #57606a }
.title { font-size: 16px; font-weight: 600 } .name { font-size: 13px; font-weight: 600 }
.grid { stroke: #8c959f; stroke-opacity: .25 } .found { fill: #cf222e; fill-opacity: .12 }
.note { fill: #cf222e; font-weight: 600 }
@media (prefers-color-scheme: dark) { text { fill: #adbac7 } .note { fill: #ff7b72 } }
"""


class Panel(NamedTuple):
    name: str
    colour: str
    values: Sequence[float]  # one for each slot


class Found(NamedTuple):
    """The slots of which something is to be said."""

    first: int
    end: int
    note: str


def svg(title: str, starts_ms: Sequence[int], panels: Sequence[Panel], found: Found | None) -> str:
    height = TOP + len(panels) * (PANEL_HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + LEFT + 24} {height}"'
        f' role="img" aria-label="{escape(title)}"><style>{STYLE}</style>',
        f'<text class="title" x="{LEFT}" y="24">{escape(title)}</text>',
    ]
    for number, panel in enumerate(panels):
        parts += _panel(panel, TOP + number * (PANEL_HEIGHT + GAP), starts_ms, found)
    return "\n".join([*parts, "</svg>\n"])


def _panel(panel: Panel, top: float, starts_ms: Sequence[int], found: Found | None) -> list[str]:
    most = max(panel.values, default=0) or 1
    step = WIDTH / max(1, len(panel.values))
    bottom = top + PANEL_HEIGHT
    parts = [f'<text class="name" x="{LEFT}" y="{top - 8}">{escape(panel.name)}</text>']
    for share in (0, 0.5, 1):
        y = bottom - share * PANEL_HEIGHT
        parts += [
            f'<line class="grid" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}"/>',
            f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{most * share:,.0f}</text>',
        ]
    for index, start_ms in enumerate(starts_ms):
        at = datetime.fromtimestamp(start_ms / 1000, UTC)
        if at.minute == 0 and at.hour % 3 == 0:
            x = LEFT + index * step
            parts.append(f'<text x="{x:.1f}" y="{bottom + 16}">{at:%H:%M}</text>')
    if found is not None:
        x, width = LEFT + found.first * step, (found.end - found.first) * step
        parts += [
            f'<rect class="found" x="{x:.1f}" y="{top}" width="{width:.1f}"'
            f' height="{PANEL_HEIGHT}"/>',
            f'<text class="note" x="{x:.1f}" y="{top - 8}">{escape(found.note)}</text>',
        ]
    for index, value in enumerate(panel.values):
        tall = PANEL_HEIGHT * value / most
        parts.append(
            f'<rect x="{LEFT + index * step:.2f}" y="{bottom - tall:.2f}"'
            f' width="{max(0.5, step - 0.7):.2f}" height="{tall:.2f}" fill="{panel.colour}"/>'
        )
    return parts


def write_svg(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def blocks(values: Sequence[float], columns: int, rows: int) -> list[str]:
    """A bar chart of text, `columns` wide and `rows` high, the top row first."""
    grouped = [
        sum(values[index * len(values) // columns : (index + 1) * len(values) // columns])
        for index in range(columns)
    ]
    most = max(grouped, default=0) or 1
    heights = [round(value / most * rows * 8) for value in grouped]
    return [
        "".join(BLOCKS[min(8, max(0, height - row * 8))] for height in heights)
        for row in reversed(range(rows))
    ]


def hours(starts_ms: Sequence[int], columns: int) -> str:
    """The line below such a chart: every third hour where it begins."""
    line = [" "] * columns
    for index, start_ms in enumerate(starts_ms):
        at = datetime.fromtimestamp(start_ms / 1000, UTC)
        place = index * columns // len(starts_ms)
        if at.minute == 0 and at.hour % 3 == 0 and place + 5 <= columns:
            line[place : place + 5] = f"{at:%H:%M}"
    return "".join(line)
