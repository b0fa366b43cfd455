"""One table for people, JSON lines for machines."""

import json
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.cells import CELLS
from bench.model import Measure, Target

CPU_UNITS = {"requests/s": " us/request", "MB/s": " s/GB"}
RESULTS = Path(__file__).resolve().parent / "results"


class Row(NamedTuple):
    """One figure of one round. `cpu` and `rss_mb` are of the broker, where its process is known.

    `cpu` is in microseconds per request, or in seconds per GB, as the unit of the figure says.
    """

    target: str
    round: int
    measure: str
    unit: str
    value: float
    cpu: float | None
    generator_busy: float | None
    rss_mb: float | None


def write(facts: dict[str, object], rows: Sequence[Row], folder: Path = RESULTS) -> Path:
    """The first line holds what the run depends on, every other line one figure."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    path = folder / f"{stamp}-{facts['commit']}.jsonl"
    lines = [json.dumps(facts), *(json.dumps(row._asdict()) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def table(targets: Sequence[Target], rows: Sequence[Row]) -> str:
    """Medians over the rounds; per target the figure, what it cost the broker, and its memory."""
    head = ["measure", "unit"]
    for target in targets:
        head += [target.name, "min..max", "broker CPU", "RSS MB", "load busy"]
    lines = [head]
    for measure in (measure for cell in CELLS for measure in cell.measures):
        cells = [_columns(measure, target, rows) for target in targets]
        if any(any(cell) for cell in cells):
            lines.append([measure.name, measure.unit, *chain.from_iterable(cells)])
    peak: list[str] = []
    for target in targets:
        used = [row.rss_mb for row in rows if row.target == target.name and row.rss_mb]
        peak += [_number(max(used)) if used else "", "", "", "", ""]
    lines.append(["resident memory, highest after a load", "MB", *peak])
    return _aligned(lines)


def _columns(measure: Measure, target: Target, rows: Sequence[Row]) -> list[str]:
    mine = [row for row in rows if row.target == target.name and row.measure == measure.name]
    if not mine:
        return [""] * 5
    values = [row.value for row in mine]
    return [
        _number(median(values)),
        f"{_number(min(values))}..{_number(max(values))}",
        _median([row.cpu for row in mine], CPU_UNITS.get(measure.unit, "")),
        _median([row.rss_mb for row in mine]),
        _median([row.generator_busy and row.generator_busy * 100 for row in mine], " %"),
    ]


def _median(values: Sequence[float | None], unit: str = "") -> str:
    known = [value for value in values if value is not None]
    return f"{_number(median(known))}{unit}" if known else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    out = []
    for line in lines:
        first, *rest = (
            text.ljust(width) if at in (0, 1) else text.rjust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        out.append("  ".join([first, *rest]).rstrip())
    out.insert(1, "-" * max(map(len, out)))
    return "\n".join(out)
