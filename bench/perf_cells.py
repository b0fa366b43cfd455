"""Kafka's own perf tools as the load: what a team that runs on the Java client will see.

The tool is busier than either broker, so these lines say little about the brokers and much about
whether the benchmark shows Kafka as it is (`trust.py`).
"""

from bench import kafka
from bench.model import Cell, Figure, Figures, Measure, Scale, Target
from runnel.bench.load import LARGE_RECORD_BYTES, PARTITIONS
from runnel.bench.topics import passing_topic
from runnel.bench.usage import Usage
from runnel.client.raw import WireClient

PRODUCED = "produce 1 KiB, Kafka's perf tool"
CONSUMED = "consume 1 KiB, Kafka's perf tool"


def ask_perf_tools(target: Target, scale: Scale) -> Figures:
    """A topic is filled by the one and read by the other."""
    records = scale.megabytes * 1_000_000 // LARGE_RECORD_BYTES
    address = target.address
    with WireClient(address) as client, passing_topic(client, "perf-tool", PARTITIONS) as topic:
        producing = Usage(target.pid)
        produced = kafka.producer_perf(
            address, topic.name, records=records, record_bytes=LARGE_RECORD_BYTES
        )
        cost, consuming = producing.cost(), Usage(target.pid)
        consumed = kafka.consumer_perf(address, topic.name, records=records)
    return {
        PRODUCED: Figure(produced, cost=cost),
        CONSUMED: Figure(consumed, cost=consuming.cost()),
    }


PERF_CELLS: tuple[Cell, ...] = (
    Cell((Measure(PRODUCED, "MB/s"), Measure(CONSUMED, "MB/s")), ask_perf_tools),
)
