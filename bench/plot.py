"""The goals of a recorded run as a picture: a bar for each ratio, with marks at must and aim.

    python -m bench.plot bench/results/RUN.jsonl docs/img/bench.svg

All bars read the same way: to the right is better, 1 is Kafka, or what is allowed where a line says
so, and the scale is logarithmic. Written as SVG by hand; the colours
suit light and dark pages.
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

ROW_HEIGHT, BAR_HEIGHT = 26, 14
LABEL_WIDTH, PLOT_WIDTH, FIGURE_WIDTH = 470, 480, 120
HEAD_HEIGHT, FOOT_HEIGHT = 64, 56
TICKS = (0.25, 0.5, 1, 2, 4, 8, 16, 32)
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #57606a }
.title { font-size: 16px; font-weight: 600 }
.small { font-size: 11px }
.grid { stroke: #8c959f; stroke-opacity: .3 }
.one { stroke: #8c959f; stroke-width: 1.5 }
.aim { fill: #1a7f37 } .met { fill: #4a9fd8 } .missed { fill: #cf222e }
.mark { stroke: #57606a; stroke-width: 2 } .aimed { stroke-dasharray: 3 2 }
@media (prefers-color-scheme: dark) { text { fill: #adbac7 } .mark { stroke: #adbac7 } }
"""


class Bar(NamedTuple):
    """`better` times as good as what 1 stands for; likewise the marks."""

    label: str
    better: float
    must: float
    aim: float | None
    figure: str
    verdict: str  # the class of its colour


def bars(lines: Sequence[Mapping[str, object]]) -> list[Bar]:
    return [_bar(line) for line in lines if line["kind"] == "verdict"]


def _bar(line: Mapping[str, object]) -> Bar:
    compared, must = _number(line["compared"]), _number(line["must"])
    aim = None if line["aim"] is None else _number(line["aim"])
    is_beside_kafka = line["by"] in ("value", "cpu")
    one = 1.0 if is_beside_kafka else must

    def better(value: float) -> float:
        return value / one if line["at_least"] else one / value

    suffix = "" if line["by"] == "amount" else "x"
    note = "" if is_beside_kafka else f" (1 = {must:g}{suffix})"
    return Bar(
        str(line["label"]) + note,
        better(compared),
        better(must),
        None if aim is None else better(aim),
        f"{compared:.3g}{suffix}",
        "missed" if not line["met"] else "aim" if line["aim_met"] else "met",
    )


def _number(value: object) -> float:
    assert isinstance(value, int | float), value
    return max(float(value), 1e-9)


class Axis:
    """From a value to a place; values outside are drawn at the edge."""

    def __init__(self, drawn: Sequence[Bar]) -> None:
        values = [value for bar in drawn for value in (bar.better, bar.must, bar.aim or 1.0, 1.0)]
        self.low = max(TICKS[0], min(values)) / 1.2
        self.high = min(TICKS[-1], max(values)) * 1.2

    def x(self, value: float) -> float:
        within = min(max(value, self.low), self.high)
        share = math.log(within / self.low) / math.log(self.high / self.low)
        return LABEL_WIDTH + share * PLOT_WIDTH


def svg(lines: Sequence[Mapping[str, object]]) -> str:
    """Raises ValueError for a run without goals."""
    drawn = bars(lines)
    if not drawn:
        raise ValueError("no goal was judged in that run")
    axis, bottom = Axis(drawn), HEAD_HEIGHT + len(drawn) * ROW_HEIGHT
    width, height = LABEL_WIDTH + PLOT_WIDTH + FIGURE_WIDTH, bottom + FOOT_HEIGHT
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" role="img">',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="12" y="24">{escape(_title(lines[0]))}</text>',
        '<text class="small" x="12" y="44">times as good, to the right is better;'
        " | must, dashed aim; green: aim met, blue: must met, red: missed</text>",
    ]
    for tick in TICKS:
        if axis.low <= tick <= axis.high:
            kind, x = "one" if tick == 1 else "grid", axis.x(tick)
            out.append(_line(kind, x, HEAD_HEIGHT - 8, bottom))
            out.append(f'<text class="small" x="{x - 6:.1f}" y="{bottom + 16}">{tick:g}x</text>')
    for index, bar in enumerate(drawn):
        out += _drawn(bar, axis, HEAD_HEIGHT + index * ROW_HEIGHT)
    out.append(f'<text class="small" x="12" y="{height - 12}">{escape(_source(lines[0]))}</text>')
    return "\n".join([*out, "</svg>", ""])


def _drawn(bar: Bar, axis: Axis, top: int) -> list[str]:
    left, right = sorted((axis.x(1.0), axis.x(bar.better)))
    middle, figure_x = top + ROW_HEIGHT / 2 + 4, LABEL_WIDTH + PLOT_WIDTH + 12
    out = [
        f'<text x="{LABEL_WIDTH - 12}" y="{middle}" text-anchor="end">{escape(bar.label)}</text>',
        f'<rect class="{bar.verdict}" x="{left:.1f}" y="{top + (ROW_HEIGHT - BAR_HEIGHT) / 2}"'
        f' width="{max(right - left, 1.5):.1f}" height="{BAR_HEIGHT}"/>',
        f'<text x="{figure_x}" y="{middle}">{bar.figure}</text>',
        _line("mark", axis.x(bar.must), top + 2, top + ROW_HEIGHT - 2),
    ]
    if bar.aim is not None:
        out.append(_line("mark aimed", axis.x(bar.aim), top + 2, top + ROW_HEIGHT - 2))
    return out


def _line(kind: str, x: float, top: float, bottom: float) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>'


def _title(run: Mapping[str, object]) -> str:
    targets = run["targets"]
    assert isinstance(targets, list)
    return f"{targets[1]} beside {targets[0]}"


def _source(run: Mapping[str, object]) -> str:
    facts = run["machine"]
    assert isinstance(facts, dict)
    return (
        f"medians of {run['rounds']} rounds, commit {run['commit']}, {run['utc']};"
        f" {facts['cores']} cores, {facts['processor']}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.plot", description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("picture", type=Path)
    options = parser.parse_args()
    draw(options.results, options.picture)
    return 0


def draw(results: Path, picture: Path) -> Path:
    """Returns the picture's path."""
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(svg(lines))
    return picture


if __name__ == "__main__":
    sys.exit(main())
