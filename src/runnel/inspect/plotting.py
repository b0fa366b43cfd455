"""Bars as SVG, written by hand; the colours suit light and dark pages."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

ROW_HEIGHT, BAR_HEIGHT = 22, 13
LABEL_WIDTH, PLOT_WIDTH, FIGURE_WIDTH = 260, 420, 140
HEAD_HEIGHT, PANEL_HEAD_HEIGHT = 44, 40
BARS_MAX = 40
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #57606a }
.title { font-size: 16px; font-weight: 600 } .panel { font-weight: 600 }
rect { fill: #4a9fd8 }
@media (prefers-color-scheme: dark) { text { fill: #adbac7 } }
"""


class Bar(NamedTuple):
    label: str
    value: float
    figure: str


class Panel(NamedTuple):
    title: str
    bars: Sequence[Bar]


def svg(title: str, panels: Sequence[Panel]) -> str:
    width = LABEL_WIDTH + PLOT_WIDTH + FIGURE_WIDTH
    out: list[str] = []
    top = HEAD_HEIGHT
    for panel in panels:
        shown = panel.bars[:BARS_MAX]
        left_out = len(panel.bars) - len(shown)
        heading = panel.title + (f" (without {left_out} smaller)" if left_out else "")
        out.append(f'<text class="panel" x="12" y="{top + 24}">{escape(heading)}</text>')
        top += PANEL_HEAD_HEIGHT
        largest = max((bar.value for bar in shown), default=0) or 1
        for bar in shown:
            out += _drawn(bar, top, bar.value / largest)
            top += ROW_HEIGHT
    height = top + 16
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" role="img">',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="12" y="26">{escape(title)}</text>',
    ]
    return "\n".join([*head, *out, "</svg>", ""])


def _drawn(bar: Bar, top: int, share: float) -> list[str]:
    middle, left = top + ROW_HEIGHT / 2 + 4, LABEL_WIDTH
    width = max(share * PLOT_WIDTH, 1.0)
    return [
        f'<text x="{left - 10}" y="{middle}" text-anchor="end">{escape(bar.label)}</text>',
        f'<rect x="{left}" y="{top + (ROW_HEIGHT - BAR_HEIGHT) / 2}" width="{width:.1f}"'
        f' height="{BAR_HEIGHT}"/>',
        f'<text x="{left + width + 8:.1f}" y="{middle}">{escape(bar.figure)}</text>',
    ]
