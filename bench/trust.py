"""Whether the figures can be trusted: is the load the bottleneck, is Kafka shown as it is.

The generator must reach against a bare sink at least 1.5 times what it measured of the better
broker. Kafka must do here what it does for its own perf tools in the same run: the same rate or a
higher one (those tools share two cores with the broker and are often the limit themselves), for
about the same CPU of the broker per GB.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import NamedTuple

from bench import kafka
from bench.goals import Median, ratio
from bench.model import Scale, Target
from runnel.bench.topics import passing_topic
from runnel.bench.usage import Usage
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
    produced, consumed = [], []
    for _ in range(PERF_ROUNDS):
        with (
            WireClient(target.address) as client,
            passing_topic(client, "perf-tool", PARTITIONS) as topic,
        ):
            produce = partial(kafka.producer_perf, record_bytes=RECORD_BYTES)
            produced.append(_with_cpu(produce, target, topic.name, records))
            consumed.append(_with_cpu(kafka.consumer_perf, target, topic.name, records))
    tools = {PRODUCE_MEASURE: _median(produced), FETCH_MEASURE: _median(consumed)}
    return [
        line
        for measure, tool in tools.items()
        if measure in figures
        for line in _perf_lines(measure, figures[measure], tool)
    ]


def _with_cpu(tool: Callable[..., float], target: Target, topic: str, records: int) -> Median:
    usage = Usage(target.pid)
    rate = tool(target.address, topic, records=records)
    cost = usage.cost()
    gigabytes = records * RECORD_BYTES / 1e9
    return Median(rate, None if cost is None else cost.cpu_s / gigabytes)


def _median(rounds: Sequence[Median]) -> Median:
    cpus = [one.cpu for one in rounds if one.cpu is not None]
    return Median(median(one.value for one in rounds), median(cpus) if cpus else None)


def _perf_lines(measure: str, ours: Median, tool: Median) -> Iterator[Trust]:
    name = f"Kafka here over Kafka with its own perf tool ({tool.value:,.0f} MB/s), {measure}"
    yield Trust(name, ours.value / tool.value, PERF_LEAST)
    if (cpu := ratio(ours.cpu, tool.cpu)) is not None:
        yield Trust(f"its CPU per GB likewise, {measure}", cpu, PERF_LEAST, PERF_MOST)
