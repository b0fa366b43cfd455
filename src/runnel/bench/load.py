"""The wire-speaking load: pre-encoded requests over pipelined connections, for any broker.

Each load makes its own topic and deletes it. Rates count requests, or the bytes of record batches
as they go over the wire, in millions per second.
"""

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from runnel.bench.frames import Batch, fetch_frame, make_batch, produce_frame, produce_reply_shape
from runnel.bench.pipeline import (
    Chunk,
    EqualReplies,
    FetchReplies,
    LoadError,
    Pipeline,
    drive,
    until,
)
from runnel.bench.topics import passing_topic
from runnel.bench.usage import Cost, Usage
from runnel.client.raw import Address, Topic, WireClient
from runnel.native.compression import Compression

SMALL_RECORD_BYTES = 100
LARGE_RECORD_BYTES = 1024
PARTITIONS = 4
BATCHES_IN_FLIGHT = 5  # as clients have by default
FETCHES_IN_FLIGHT = 2
FETCH_MAX_BYTES = 1024 * 1024
CONSUMER_BUFFER_BYTES = 512 * 1024  # the steadiest, and as fast as any for either broker (ADR 60)


class Load(NamedTuple):
    """What producers send: every request is a batch for each of `partitions_per_request`."""

    record_bytes: int
    batch_records: int
    codec: Compression = Compression.NONE
    acks: int = 1
    partitions: int = PARTITIONS
    partitions_per_request: int = 1
    connections: int = 1
    in_flight: int = BATCHES_IN_FLIGHT
    requests_per_send: int = 1
    configs: tuple[tuple[str, str], ...] = ()  # of the topic

    def batch(self) -> Batch:
        return make_batch(self.record_bytes, self.batch_records, self.codec)


# Batches of 1.03 and 0.98 MB: just under the default limit of a batch.
LARGE = Load(LARGE_RECORD_BYTES, 1000)
SMALL = Load(SMALL_RECORD_BYTES, 9000)
# Several requests per send, so that the generator is not busy with system calls.
UNBATCHED = Load(SMALL_RECORD_BYTES, 1, in_flight=256, requests_per_send=32)
FIFTY_PARTITIONS = Load(SMALL_RECORD_BYTES, 1, partitions=50, partitions_per_request=50)


class Result(NamedTuple):
    """`busy` is the share of one core that the generator used: near 1 it was the bottleneck.

    `cost` is what the broker used in that time, where its process is known.
    """

    seconds: float
    request_count: int
    byte_count: int
    busy: float
    cost: Cost | None = None

    @property
    def requests_per_second(self) -> float:
        return self.request_count / self.seconds

    @property
    def megabytes_per_second(self) -> float:
        return self.byte_count / 1e6 / self.seconds


def produce(
    address: Address,
    load: Load,
    *,
    seconds: float | None = None,
    megabytes: int | None = None,
    pid: int | None = None,
) -> Result:
    """For so long, or so many bytes of batches."""
    batch = load.batch()
    request_bytes = len(batch.data) * load.partitions_per_request
    requests = None if megabytes is None else max(1, megabytes * 1_000_000 // request_bytes)
    with (
        WireClient(address) as client,
        passing_topic(client, "produce", load.partitions, dict(load.configs)) as topic,
    ):
        prime(client, topic)
        pipelines = producers(client, address, topic, load, batch, requests, seconds)
        return measure(pipelines, request_bytes, pid)


def prime(client: WireClient, topic: Topic) -> None:
    """One record for each partition: the first makes a broker write and sync files beside it."""
    batch, shape = UNBATCHED.batch(), produce_reply_shape(client, topic)
    for index in range(topic.partition_count):
        client.sock.sendall(produce_frame(client, topic, [index], batch, UNBATCHED.acks))
        reply = bytes(4) + client.receive_frame()
        if len(reply) != shape.size or any(reply[at] for at in shape.zeros):
            raise LoadError(f"a produce request failed: {reply!r}")


def producers(
    client: WireClient,
    address: Address,
    topic: Topic,
    load: Load,
    batch: Batch,
    requests: int | None = None,
    seconds: float | None = None,
) -> list[Pipeline]:
    """Connected, and ready to send so many requests in all, or for so long."""
    chunks = produce_chunks(client, topic, load, batch)
    shape = produce_reply_shape(client, topic, load.partitions_per_request)
    pipelines = []
    for number in range(load.connections):
        mine: Iterable[Chunk] = spread(chunks, number, load.connections)
        if requests is not None:
            sends = requests // load.requests_per_send
            mine = itertools.islice(mine, len(range(number, sends, load.connections)))
        if seconds is not None:
            mine = until(seconds, mine)
        pipelines.append(Pipeline(address, mine, EqualReplies(shape), load.in_flight))
    return pipelines


def produce_chunks(
    client: WireClient, topic: Topic, load: Load, batch: Batch, per_send: int | None = None
) -> list[Chunk]:
    """One for each group of partitions that a request addresses."""
    width, count = load.partitions_per_request, per_send or load.requests_per_send
    chunks = []
    for at in range(0, load.partitions, width):
        frame = produce_frame(client, topic, range(at, at + width), batch, load.acks)
        chunks.append(Chunk(memoryview(frame * count), count))
    return chunks


def spread(chunks: Sequence[Chunk], number: int, connections: int) -> Iterator[Chunk]:
    """What the connection of this number sends, so that all together fill partitions evenly."""
    for at in itertools.count(number, connections):
        yield chunks[at % len(chunks)]


def fill(client: WireClient, address: Address, topic: Topic, batch: Batch, batches: int) -> None:
    """Batches of `LARGE`, spread evenly over the partitions, by one connection."""
    load = LARGE._replace(partitions=topic.partition_count)
    measure(producers(client, address, topic, load, batch, requests=batches), 0, None)


def fetch(
    address: Address,
    *,
    consumers: int,
    megabytes: int,
    seconds: float,
    pid: int | None = None,
    receive_buffer_bytes: int | None = CONSUMER_BUFFER_BYTES,
) -> Result:
    """Read what was just written, from the page cache, over and over.

    `receive_buffer_bytes`: of each consumer's socket; None leaves it to the kernel.
    """
    batch = LARGE.batch()
    with (
        WireClient(address) as client,
        passing_topic(client, "fetch", PARTITIONS) as topic,
    ):
        per_partition = max(1, megabytes * 1_000_000 // len(batch.data) // PARTITIONS)
        fill(client, address, topic, batch, per_partition * PARTITIONS)
        requests = fetch_chunks(client, topic, batch, per_partition)
        pipelines = [
            fetching(
                address,
                batch,
                until(seconds, spread(requests, number, consumers)),
                receive_buffer_bytes,
            )
            for number in range(consumers)
        ]
        return measure(pipelines, len(batch.data) * PARTITIONS, pid)


def fetch_chunks(client: WireClient, topic: Topic, batch: Batch, per_partition: int) -> list[Chunk]:
    """One batch of each partition per request, from the first to the last."""
    chunks = []
    for number in range(per_partition):
        offsets = dict.fromkeys(range(topic.partition_count), number * batch.record_count)
        frame = fetch_frame(client, topic, offsets, partition_max_bytes=FETCH_MAX_BYTES)
        chunks.append(Chunk(memoryview(frame), 1))
    return chunks


def fetching(
    address: Address,
    batch: Batch,
    chunks: Iterable[Chunk | None],
    receive_buffer_bytes: int | None = CONSUMER_BUFFER_BYTES,
) -> Pipeline:
    replies = FetchReplies(len(batch.data) * PARTITIONS)
    return Pipeline(address, chunks, replies, FETCHES_IN_FLIGHT, receive_buffer_bytes)


def measure(pipelines: Sequence[Pipeline], request_bytes: int, pid: int | None) -> Result:
    """Run them to their end and close them; the memory is that while they were open."""
    usage, own_cpu_s = Usage(pid), time.process_time()
    seconds = drive(pipelines)
    own_cpu_s = time.process_time() - own_cpu_s
    cost = usage.cost()
    for pipeline in pipelines:
        pipeline.close()
    requests = sum(pipeline.done_count for pipeline in pipelines)
    return Result(seconds, requests, requests * request_bytes, own_cpu_s / seconds, cost)
