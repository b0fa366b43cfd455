"""Whether the figures can be trusted: is the load the bottleneck, is Kafka shown as it is.

The generator must reach against a bare sink at least 1.5 times what it measured of the better
broker. Kafka must do in the table what it does for its own perf tools when it has the machine for
itself, asked right after that line in each round: within 20 % where the tools are the load, and no
slower where librdkafka and the generator are. Those get more out of it (ADR 46), which is no
injustice to Kafka.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from bench.goals import Median
from bench.model import Cell, Figures
from bench.perf_cells import CONSUMED, PRODUCED

SINK = "bare sink"  # the name of that target
SINK_MEASURES = (
    "produce 1 KiB, 1 connection",
    "produce 1 KiB, 4 connections",
    "unbatched produce, 1 connection",
)
SINK_LEAST = 1.5
PERF_LEAST, PERF_MOST = 0.8, 1.2  # within 20 %
PRODUCE_MEASURE = "produce 1 KiB, librdkafka, acks=1"
FETCH_MEASURE = "fetch, 1 consumer, warm"


class Trust(NamedTuple):
    """A ratio and the bounds it must be within."""

    name: str
    ratio: float
    least: float
    most: float | None = None

    @property
    def met(self) -> bool:
        return self.ratio >= self.least and (self.most is None or self.ratio <= self.most)

    def __str__(self) -> str:
        bounds = f">= {self.least}" if self.most is None else f"{self.least} to {self.most}"
        verdict = "met" if self.met else "NOT MET"
        return f"{self.name}: {self.ratio:.2f}x ({bounds}): {verdict}"


def against_sink(
    sink: Mapping[str, Median], brokers: Iterable[Mapping[str, Median]]
) -> list[Trust]:
    """One line per measure that the sink and a broker have."""
    known = list(brokers)
    lines = []
    for measure in SINK_MEASURES:
        rates = [figures[measure].value for figures in known if measure in figures]
        if rates and measure in sink:
            name = f"generator against a bare sink over the better broker, {measure}"
            lines.append(Trust(name, sink[measure].value / max(rates), SINK_LEAST))
    return lines


def neighbour_of_perf_tools(cells: Sequence[Cell]) -> Cell | None:
    """The cell of these that the tools are asked right after; none has figures to compare: None."""
    for name in (PRODUCED, PRODUCE_MEASURE, FETCH_MEASURE):
        for cell in cells:
            if any(measure.name == name for measure in cell.measures):
                return cell
    return None


def against_perf_tools(runs: Sequence[Figures], figures: Mapping[str, Median]) -> list[Trust]:
    """`runs` are of Kafka's own tools on the Kafka whose figures these are, one of each round."""
    if not runs:
        return []
    tool = {name: median(run[name].value for run in runs) for name in (PRODUCED, CONSUMED)}
    bounds = (
        (PRODUCED, PRODUCED, PERF_MOST),
        (CONSUMED, CONSUMED, PERF_MOST),
        (PRODUCE_MEASURE, PRODUCED, None),
        (FETCH_MEASURE, CONSUMED, None),
    )
    return [
        _perf_line(measure, figures[measure].value, tool[of], most)
        for measure, of, most in bounds
        if measure in figures
    ]


def _perf_line(measure: str, ours: float, tool: float, most: float | None) -> Trust:
    name = f"Kafka in the table over Kafka with its own perf tool ({tool:,.0f} MB/s), {measure}"
    return Trust(name, ours / tool, PERF_LEAST, most)
