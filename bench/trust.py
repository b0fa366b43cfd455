"""Whether the figures can be trusted: is the load the bottleneck, is Kafka shown as it is.

The generator must reach against a bare sink at least 1.5 times what it measured of the better
broker. Kafka must do here what it does for its own perf tools in the same run: producing and
consuming with librdkafka as fast as with the tools, and the generator, which does nothing with what
it fetches, no slower than they.
"""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import NamedTuple

from bench import clients, kafka
from bench.goals import Median
from bench.model import Scale, Target
from runnel.bench.topics import passing_topic
from runnel.client.raw import WireClient

SINK = "bare sink"  # the name of that target
SINK_MEASURES = (
    "produce 1 KiB, 1 connection",
    "produce 1 KiB, 4 connections",
    "unbatched produce, 1 connection",
)
SINK_LEAST = 1.5
PERF_LEAST, PERF_MOST = 0.8, 1.2  # within 20 %
PERF_ROUNDS = 3
RECORD_BYTES = 1024
PARTITIONS = 4
PRODUCE_MEASURE = "produce 1 KiB, librdkafka, acks=1"
FETCH_MEASURE = "fetch, 1 consumer, warm"
CONSUMED = "consume 1 KiB, librdkafka"


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


def against_perf_tools(target: Target, figures: Mapping[str, Median], scale: Scale) -> list[Trust]:
    """Runs Kafka's producer and consumer perf tools on the Kafka that was measured."""
    if PRODUCE_MEASURE not in figures and FETCH_MEASURE not in figures:
        return []
    records = scale.megabytes * 1_000_000 // RECORD_BYTES
    produced, consumed, ours_consumed = [], [], []
    for _ in range(PERF_ROUNDS):
        with (
            WireClient(target.address) as client,
            passing_topic(client, "perf-tool", PARTITIONS) as topic,
        ):
            produced.append(
                kafka.producer_perf(
                    target.address, topic.name, records=records, record_bytes=RECORD_BYTES
                )
            )
            consumed.append(kafka.consumer_perf(target.address, topic.name, records=records))
            ours_consumed.append(
                clients.consume(
                    target.address, topic.name, messages=records, record_bytes=RECORD_BYTES
                )
            )
    lines = [_perf_line(CONSUMED, median(ours_consumed), median(consumed), PERF_MOST)]
    if ours := figures.get(PRODUCE_MEASURE):
        lines.append(_perf_line(PRODUCE_MEASURE, ours.value, median(produced), PERF_MOST))
    if ours := figures.get(FETCH_MEASURE):
        lines.append(_perf_line(FETCH_MEASURE, ours.value, median(consumed)))
    return lines


def _perf_line(measure: str, ours: float, tool: float, most: float | None = None) -> Trust:
    name = f"Kafka here over Kafka with its own perf tool ({tool:,.0f} MB/s), {measure}"
    return Trust(name, ours / tool, PERF_LEAST, most)
