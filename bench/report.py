"""One table for people, JSON lines for machines.

The table has a line for each goal, then one for each measure that has no goal. Figures are medians
over the rounds. The file has every round: its first line says what the run depends on, each other
line has a `kind` (figure, processes, verdict, trust, failure, time).
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.goals import By, Goal, Median, Verdict, ratio
from bench.trust import Trust

CPU_UNITS = {
    "requests/s": "us/request",
    "transactions/s": "us/transaction",
    "MB/s": "s/GB",
}
RESULTS = Path(__file__).resolve().parent / "results"
LEFT_COLUMNS = 2  # text; all others are figures
COLOURS = {"NO": "bold red", "yes": "green", "aim": "bold green"}


class Row(NamedTuple):
    """One figure of one round; CPU, switches and memory are the broker's, where it is known.

    `cpu` is in microseconds per request, or in seconds per GB, as the unit of the figure says.
    """

    target: str
    round: int
    measure: str
    unit: str
    value: float
    cpu: float | None = None
    generator_busy: float | None = None
    user_s: float | None = None
    system_s: float | None = None
    switches: int | None = None
    rss_mb: float | None = None
    stolen: float | None = None  # share of the wanted processor time that the host took


class Failure(NamedTuple):
    """A cell that gave no figures."""

    target: str
    cell: str
    round: int
    why: str

    def __str__(self) -> str:
        return f"FAILED in round {self.round}, {self.target}: {self.cell}: {self.why}"


class Time(NamedTuple):
    """What one cell of one target took of a run: waiting for quiet, then its own work."""

    target: str
    cell: str
    round: int
    settled_s: float
    took_s: float


class Outcome(NamedTuple):
    """All that a run found. The first target is what the second is compared with."""

    targets: Sequence[str]
    rows: Sequence[Row]
    processes: Sequence[Mapping[str, object]]
    verdicts: Sequence[Verdict]
    trust: Sequence[Trust]
    failures: Sequence[Failure]
    times: Sequence[Time] = ()


def medians(rows: Sequence[Row], target: str) -> dict[str, Median]:
    by_measure: dict[str, list[Row]] = {}
    for row in rows:
        if row.target == target:
            by_measure.setdefault(row.measure, []).append(row)
    return {
        measure: Median(median([row.value for row in mine]), _median([row.cpu for row in mine]))
        for measure, mine in by_measure.items()
    }


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def write(facts: Mapping[str, object], outcome: Outcome, folder: Path = RESULTS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    path = folder / f"{stamp}-{facts['commit']}.jsonl"
    lines: list[Mapping[str, object]] = [
        {"kind": "run", **facts, "targets": list(outcome.targets)},
        *({"kind": "figure", **row._asdict()} for row in outcome.rows),
        *({"kind": "processes", **row} for row in outcome.processes),
        *({"kind": "verdict", **_verdict(verdict)} for verdict in outcome.verdicts),
        *({"kind": "trust", **trust._asdict(), "met": trust.met} for trust in outcome.trust),
        *({"kind": "failure", **failure._asdict()} for failure in outcome.failures),
        *({"kind": "time", **spent._asdict()} for spent in outcome.times),
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def _verdict(verdict: Verdict) -> dict[str, object]:
    goal = verdict.goal
    return {
        "label": label(goal),
        **goal._asdict(),
        "by": goal.by.name.lower(),
        "compared": verdict.compared,
        "met": verdict.met,
        "aim_met": verdict.aim_met,
    }


def label(goal: Goal) -> str:
    match goal.by:
        case By.CPU:
            return f"{goal.measure}: broker CPU"
        case By.ITSELF:
            return f"{goal.measure}: own ratio"
        case _:
            return goal.measure


def table(outcome: Outcome) -> list[list[str]]:
    """Cells as text, the head first."""
    reference, subject, *others = outcome.targets
    figures = {target: medians(outcome.rows, target) for target in outcome.targets}
    units = {row.measure: row.unit for row in outcome.rows}
    head = ["measure", "unit", reference, subject, "ratio", "must", "aim", "met"]
    lines = [[*head, *(text for other in others for text in (other, "ratio"))]]
    for verdict in outcome.verdicts:
        lines.append(_goal_line(verdict, outcome.targets, figures, units))
    judged = {verdict.goal.measure for verdict in outcome.verdicts if verdict.goal.by is not By.CPU}
    for measure, unit in units.items():
        if measure not in judged and any(measure in figures[name] for name in outcome.targets):
            lines.append(_plain_line(measure, unit, outcome.targets, figures))
    return lines


def _goal_line(
    verdict: Verdict,
    targets: Sequence[str],
    figures: Mapping[str, Mapping[str, Median]],
    units: Mapping[str, str],
) -> list[str]:
    goal, is_cpu = verdict.goal, verdict.goal.by is By.CPU
    unit = units[goal.measure]
    values = [_value(figures[target].get(goal.measure), is_cpu) for target in targets]
    sign, suffix = (">=" if goal.at_least else "<="), "" if goal.by is By.AMOUNT else "x"
    return [
        label(goal),
        CPU_UNITS.get(unit, unit) if is_cpu else unit,
        number(values[0]),
        number(values[1]),
        f"{verdict.compared:.3g}{suffix}",
        f"{sign} {goal.must:.3g}{suffix}",
        "" if goal.aim is None else f"{goal.aim:.3g}{suffix}",
        "NO" if not verdict.met else "aim" if goal.aim and verdict.aim_met else "yes",
        *_other_columns(values),
    ]


def _plain_line(
    measure: str,
    unit: str,
    targets: Sequence[str],
    figures: Mapping[str, Mapping[str, Median]],
) -> list[str]:
    values = [_value(figures[target].get(measure), False) for target in targets]
    shown = [number(values[0]), number(values[1]), times(ratio(values[1], values[0])), "", "", ""]
    return [measure, unit, *shown, *_other_columns(values)]


def _other_columns(values: Sequence[float | None]) -> Iterator[str]:
    for value in values[2:]:
        yield number(value)
        yield times(ratio(value, values[0]))


def _value(figure: Median | None, is_cpu: bool) -> float | None:
    if figure is None:
        return None
    return figure.cpu if is_cpu else figure.value


def details(rows: Sequence[Row]) -> list[list[str]]:
    """The spread of every figure, and what it cost the broker; medians over the rounds."""
    head = ["measure", "target", "median", "min..max", "CPU", "user s", "system s"]
    lines = [[*head, "switches", "RSS MB", "load busy %"]]
    for measure, target in dict.fromkeys((row.measure, row.target) for row in rows):
        mine = [row for row in rows if (row.measure, row.target) == (measure, target)]
        values = [row.value for row in mine]
        costs = (
            [row.cpu for row in mine],
            [row.user_s for row in mine],
            [row.system_s for row in mine],
            [row.switches for row in mine],
            [row.rss_mb for row in mine],
            [row.generator_busy and row.generator_busy * 100 for row in mine],
        )
        spread = f"{number(min(values))}..{number(max(values))}"
        medians_of_costs = [number(_median(column)) for column in costs]
        lines.append([measure, target, number(median(values)), spread, *medians_of_costs])
    return lines


def longest(times: Sequence[Time], count: int) -> str:
    """Where the time of a run went: all of it, waiting for quiet, and the longest cells."""
    by_cell: dict[str, float] = {}
    for spent in times:
        by_cell[spent.cell] = by_cell.get(spent.cell, 0.0) + spent.took_s
    first = sorted(by_cell, key=lambda cell: -by_cell[cell])[:count]
    waited_s = sum(spent.settled_s for spent in times)
    minutes = (f"{cell} {by_cell[cell] / 60:.1f}" for cell in first)
    whole = (waited_s + sum(by_cell.values())) / 60
    return (
        f"minutes: {whole:.0f} in all, {waited_s / 60:.0f} of them waiting until brokers were"
        f" quiet; longest: {', '.join(minutes)}"
    )


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def times(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}x"


def show(lines: Sequence[Sequence[str]]) -> None:
    """With colours and rules on a terminal that is wide enough, else aligned text."""
    text = aligned(lines)
    console = Console()
    if not sys.stdout.isatty() or console.width < max(map(len, text.splitlines())):
        print(text)
        return
    head, *body = lines
    drawn = Table(*head)
    for at, column in enumerate(drawn.columns):
        column.justify = "left" if at < LEFT_COLUMNS else "right"
    for line in body:
        drawn.add_row(*(Text(text, COLOURS.get(text, "")) for text in line))
    console.print(drawn)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    out = []
    for line in lines:
        texts = (
            text.ljust(width) if at < LEFT_COLUMNS else text.rjust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        out.append("  ".join(texts).rstrip())
    out.insert(1, "-" * max(map(len, out)))
    return "\n".join(out)
