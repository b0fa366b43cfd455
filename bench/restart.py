"""How soon a broker answers: on an empty folder, and with many partitions to open again.

Time runs from the start of the process to an answer over the wire. The reopened broker has
answered when Metadata shows a leader for every partition and ListOffsets gave the end of each,
and each end must be what was acknowledged before.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.model import Broker, Target
from runnel.bench.load import Load, measure, producers
from runnel.bench.pipeline import LoadError
from runnel.bench.topics import await_topic, make_topic
from runnel.bench.usage import Cost, Usage
from runnel.client.raw import ClosedError, Topic, WireClient
from runnel.wire.messages.metadata import MetadataRequest

ANSWER_TIMEOUT_S = 120.0
POLL_S = 0.001
PARTITIONS_PER_TOPIC = 1000
FILL = Load(1024, 4, partitions_per_request=10)
BATCHES_PER_PARTITION = 3


class Answered(NamedTuple):
    """How long until the answer, and what the broker used for it."""

    seconds: float
    cost: Cost


@contextmanager
def own_broker(target: Target) -> Iterator[Broker]:
    """One of the target's kind on an empty folder, not started; killed at the end of the block."""
    assert target.another is not None, f"{target.name} was not started here"
    with tempfile.TemporaryDirectory(prefix="runnel-bench-") as folder:
        broker = target.another(Path(folder))
        try:
            yield broker
        finally:
            if broker.is_running:
                broker.kill()


def start(broker: Broker) -> Answered:
    """From the start of the process to its first Metadata answer."""
    started = time.perf_counter()
    broker.spawn()
    usage = Usage(broker.pid)
    with connect(broker):
        return answered(started, usage)


def connect(broker: Broker) -> WireClient:
    """Returns when Metadata shows the broker."""
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while time.monotonic() < deadline and broker.is_running:
        try:
            client = WireClient(broker.address, timeout_s=ANSWER_TIMEOUT_S)
            if client.call(MetadataRequest(topics=[]), version=12).brokers:
                return client
        except (ConnectionError, ClosedError):
            pass  # not there yet
        time.sleep(POLL_S)
    raise LoadError(f"the broker does not answer:\n{broker.log}")


class Partitions:
    """Many partitions of a broker, in topics of at most a thousand, each with the same records."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._topics: list[Topic] = []
        self._end_offset = 0

    @property
    def count(self) -> int:
        return sum(topic.partition_count for topic in self._topics)

    def grow(self, count: int) -> None:
        """Make partitions until there are so many, and let all have the same records again."""
        with WireClient(self._broker.address, timeout_s=ANSWER_TIMEOUT_S) as client:
            new: list[Topic] = []
            while self.count + sum(topic.partition_count for topic in new) < count:
                missing = count - self.count - sum(topic.partition_count for topic in new)
                name = f"many-{len(self._topics) + len(new)}"
                new.append(make_topic(client, name, min(missing, PARTITIONS_PER_TOPIC)))
            self._fill(client, new, self._end_offset // FILL.batch_records)
            self._topics += new

    def fill(self) -> None:
        """A few batches more for each."""
        with WireClient(self._broker.address, timeout_s=ANSWER_TIMEOUT_S) as client:
            self._fill(client, self._topics, BATCHES_PER_PARTITION)
        self._end_offset += BATCHES_PER_PARTITION * FILL.batch_records

    def _fill(self, client: WireClient, topics: Sequence[Topic], batches: int) -> None:
        batch = FILL.batch()
        for topic in topics:
            width = min(FILL.partitions_per_request, topic.partition_count)
            load = FILL._replace(partitions=topic.partition_count, partitions_per_request=width)
            requests = batches * topic.partition_count // width
            pipelines = producers(client, self._broker.address, topic, load, batch, requests)
            measure(pipelines, 0, None)

    def reopen(self) -> Answered:
        """Start the broker, which was ended before, and wait for the end of every partition."""
        started = time.perf_counter()
        self._broker.spawn()
        usage = Usage(self._broker.pid)
        with connect(self._broker) as client:
            for topic in self._topics:
                await_topic(client, topic.name, topic.partition_count, self._end_offset)
            return answered(started, usage)


def answered(started: float, usage: Usage) -> Answered:
    cost = usage.cost()
    assert cost is not None
    return Answered(time.perf_counter() - started, cost)
