"""The few lines of a recorded run that README and the first page of the site show.

    python -m bench.summary bench/results/RUN.jsonl

writes the table into both documents, between the comments that name the run, and the picture beside
them (docs/img/beside-kafka.svg). A test fails if they say anything else than the run they name, so
that nobody types a figure. The lines are chosen for what a newcomer asks, with those where Kafka is
ahead.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (ROOT / "README.md", ROOT / "docs/index.md")
PICTURE = ROOT / "docs/img/beside-kafka.svg"
REFERENCE, SUBJECT = "kafka", "runnel os"
PLACE = re.compile(r"<!-- figures of (?P<run>\S+) -->\n.*?<!-- end of figures -->", re.DOTALL)
# (measure, what readers call it, more is better)
LINES = (
    ("start to first answer", "start to the first answer", False),
    ("resident memory after the load", "memory after the load", False),
    ("produce 1 KiB, librdkafka, acks=1", "produce 1 KiB, librdkafka, acks=1", True),
    ("produce 1 KiB, librdkafka, acks=all", "produce 1 KiB, librdkafka, acks=all", True),
    ("unbatched produce, 1 connection", "one record per request, 1 connection", True),
    ("unbatched produce, 16 connections", "one record per request, 16 connections", True),
    ("fetch, 1 consumer, warm", "fetch, 1 consumer", True),
    ("fetch, 16 consumers, warm", "fetch, 16 consumers", True),
    ("sync produce p50", "produce and wait, p50", False),
    ("sync produce p99", "produce and wait, p99", False),
    ("end to end p99", "producer to consumer, p99", False),
    ("reopen 1,000 partitions, kill -9", "1,000 partitions open again after kill -9", False),
    ("idle CPU", "100 waiting consumers, share of a core", False),
    ("cold data read meanwhile", "cold data read beside a producer", True),
)
GROUPS = ((True, "longer is better"), (False, "shorter is better"))
ROW_HEIGHT, LABEL_WIDTH, PLOT_WIDTH, FIGURE_WIDTH = 30, 290, 330, 200
HEAD_HEIGHT, HEADING_HEIGHT, FOOT_HEIGHT = 44, 26, 30
STYLE = """
text { font: 14px system-ui, sans-serif; fill: #57606a }
.title { font-size: 16px; font-weight: 600 } .small { font-size: 12px }
.heading { font-size: 12px; font-style: italic }
.kafka { fill: #8c959f } .runnel { fill: #1a7f37 }
@media (prefers-color-scheme: dark) { text { fill: #adbac7 } .runnel { fill: #3fb950 } }
"""


class Line(NamedTuple):
    label: str
    unit: str
    kafka: float
    runnel: float
    is_more_better: bool

    @property
    def times_better(self) -> float:
        ratio = self.runnel / self.kafka
        return ratio if self.is_more_better else 1 / ratio


def summary(recorded: Sequence[Mapping[str, object]]) -> list[Line]:
    """Raises ValueError for a run that lacks one of the lines, as quick runs do."""
    found: dict[str, dict[str, list[float]]] = {}
    units: dict[str, str] = {}
    for row in recorded:
        if row["kind"] == "figure":
            measure, value = str(row["measure"]), row["value"]
            assert isinstance(value, int | float)
            units[measure] = str(row["unit"])
            found.setdefault(measure, {}).setdefault(str(row["target"]), []).append(value)
    lines = []
    for measure, label, is_more_better in LINES:
        if not found.get(measure, {}).keys() >= {REFERENCE, SUBJECT}:
            raise ValueError(f"the run has no {measure!r} of both brokers")
        kafka, runnel = (median(found[measure][target]) for target in (REFERENCE, SUBJECT))
        lines.append(Line(label, units[measure], kafka, runnel, is_more_better))
    return lines


def table(lines: Sequence[Line]) -> str:
    rows = [
        f"| {line.label} | {_figure(line.kafka, line.unit)} | {_figure(line.runnel, line.unit)}"
        f" | {_times(line)} |"
        for line in lines
    ]
    return "\n".join(["| | Kafka | Runnel | |", "|---|--:|--:|---|", *rows])


def _figure(value: float, unit: str) -> str:
    if unit == "us" and value >= 1000:
        value, unit = value / 1000, "ms"
    if unit == "ms" and value >= 1000:
        value, unit = value / 1000, "s"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def _times(line: Line) -> str:
    times = line.times_better
    words = ("less", "more") if line.unit in ("MB", "%") else ("faster", "slower")
    shown, word = (times, words[0]) if times >= 1 else (1 / times, words[1])
    return f"{shown:.2g}x {word}" if shown < 10 else f"{shown:.0f}x {word}"


def picture(lines: Sequence[Line], source: str) -> str:
    """A bar for each broker and line, as long as its share of the longer one."""
    rows = len(lines) * ROW_HEIGHT + len(GROUPS) * HEADING_HEIGHT
    width, height = LABEL_WIDTH + PLOT_WIDTH + FIGURE_WIDTH, HEAD_HEIGHT + rows + FOOT_HEIGHT
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" role="img">',
        f"<title>Runnel beside Apache Kafka</title><style>{STYLE}</style>",
        '<text class="title" x="12" y="24">Runnel (green) beside Apache Kafka (grey),'
        " the same load on the same machine</text>",
    ]
    top = HEAD_HEIGHT
    for is_more_better, heading in GROUPS:
        out.append(f'<text class="heading" x="{LABEL_WIDTH}" y="{top + 17}">{heading}</text>')
        top += HEADING_HEIGHT
        for line in lines:
            if line.is_more_better == is_more_better:
                out += _bars(line, top)
                top += ROW_HEIGHT
    out.append(f'<text class="small" x="12" y="{height - 10}">{escape(source)}</text>')
    return "\n".join([*out, "</svg>", ""])


def _bars(line: Line, top: int) -> list[str]:
    longest = max(line.kafka, line.runnel)
    out = [
        f'<text class="small" x="{LABEL_WIDTH - 10}" y="{top + 16}" text-anchor="end">'
        f"{escape(line.label)}</text>",
        f'<text class="small" x="{LABEL_WIDTH + PLOT_WIDTH + 10}" y="{top + 16}">'
        f"{_figure(line.runnel, line.unit)}, {_times(line)}</text>",
    ]
    for kind, value, y in (("kafka", line.kafka, top + 2), ("runnel", line.runnel, top + 12)):
        length = max(value / longest * PLOT_WIDTH, 2)
        out.append(
            f'<rect class="{kind}" x="{LABEL_WIDTH}" y="{y}" width="{length:.1f}" height="9"/>'
        )
    return out


def fill(document: str, run: Path, lines: Sequence[Line]) -> str:
    """The document with this run's table in place of the one it has."""
    name = run.resolve().relative_to(ROOT)
    text, count = PLACE.subn(
        f"<!-- figures of {name} -->\n{table(lines)}\n<!-- end of figures -->", document
    )
    assert count == 1, "the document has no place for figures, or two"
    return text


def read(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in run.read_text().splitlines()]


def source_of(run: Path, recorded: Sequence[Mapping[str, object]]) -> str:
    machine = recorded[0]["machine"]
    assert isinstance(machine, dict)
    return (
        f"Kafka {recorded[0]['kafka']}; {machine['processor']}, {machine['cores']} cores;"
        f" {run.name}, medians of {recorded[0]['rounds']} rounds"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("run", type=Path)
    run = parser.parse_args().run
    recorded = read(run)
    try:
        lines = summary(recorded)
    except ValueError as error:
        print(f"bench.summary: {error}", file=sys.stderr)
        return 2
    for document in DOCUMENTS:
        document.write_text(fill(document.read_text(), run, lines))
    PICTURE.write_text(picture(lines, source_of(run, recorded)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
