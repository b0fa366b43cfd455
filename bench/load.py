"""The wire-speaking load: pre-encoded requests over pipelined connections, for any broker.

    python -m bench.load --bootstrap 127.0.0.1:9092 unbatched --connections 4
    python -m bench.load --bootstrap 127.0.0.1:9092 produce
    python -m bench.load --bootstrap 127.0.0.1:9092 fetch

Each load makes its own topic and deletes it. Rates count requests, or the bytes of record batches
in millions per second.
"""

import argparse
import os
import time
from collections.abc import Sequence
from typing import NamedTuple

from bench.frames import (
    Batch,
    drop_topic,
    fetch_frame,
    make_batch,
    make_topic,
    produce_frame,
    produce_reply_shape,
)
from bench.machine import Usage
from bench.model import Cost
from bench.pipeline import Chunk, FetchReplies, Pipeline, ProduceReplies, drive
from tests.support.wire_client import Topic, WireClient

SMALL_RECORD_BYTES = 100
LARGE_RECORD_BYTES = 1024
LARGE_BATCH_RECORDS = 1000  # 1.03 MB, just under Kafka's default limit of a batch
PARTITIONS = 4
UNBATCHED_IN_FLIGHT = 256
UNBATCHED_PER_SEND = 32  # so that the generator is not busy with system calls
BATCHES_IN_FLIGHT = 5  # as clients have by default
FETCHES_IN_FLIGHT = 2
FETCH_MAX_BYTES = 1024 * 1024


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


def unique_name(purpose: str) -> str:
    return f"bench-{purpose}-{os.getpid()}-{time.time_ns():x}"


def unbatched(
    address: tuple[str, int],
    *,
    connections: int,
    requests: int,
    acks: int = 1,
    pid: int | None = None,
) -> Result:
    """One 100-byte record per request."""
    batch = make_batch(SMALL_RECORD_BYTES, 1)
    with WireClient(address) as client:
        topic = make_topic(client, unique_name("unbatched"), PARTITIONS)
        sends = max(1, requests // UNBATCHED_PER_SEND // connections)
        runs = [
            Chunk(
                memoryview(produce_frame(client, topic, index, batch, acks) * UNBATCHED_PER_SEND),
                UNBATCHED_PER_SEND,
            )
            for index in range(PARTITIONS)
        ]
        shape = produce_reply_shape(client, topic)
        pipelines = [
            Pipeline(
                address,
                [runs[number % PARTITIONS]] * sends,
                ProduceReplies(shape),
                UNBATCHED_IN_FLIGHT,
            )
            for number in range(connections)
        ]
        result = _measure(pipelines, len(batch.data), pid)
        drop_topic(client, topic)
    return result


def fill(
    address: tuple[str, int],
    client: WireClient,
    topic: Topic,
    batch: Batch,
    *,
    connections: int,
    batches: int,
    acks: int = 1,
    pid: int | None = None,
) -> Result:
    """Produce `batches` batches, spread evenly over the partitions; one batch per request."""
    frames = [
        Chunk(memoryview(produce_frame(client, topic, index, batch, acks)), 1)
        for index in range(PARTITIONS)
    ]
    shape = produce_reply_shape(client, topic)
    pipelines = []
    for number in range(connections):
        chunks = [frames[at % PARTITIONS] for at in range(number, batches, connections)]
        pipelines.append(Pipeline(address, chunks, ProduceReplies(shape), BATCHES_IN_FLIGHT))
    return _measure(pipelines, len(batch.data), pid)


def produce(
    address: tuple[str, int],
    *,
    connections: int,
    megabytes: int,
    acks: int = 1,
    pid: int | None = None,
) -> Result:
    """Records of 1 KiB in batches of 1 MB."""
    batch = make_batch(LARGE_RECORD_BYTES, LARGE_BATCH_RECORDS)
    with WireClient(address) as client:
        topic = make_topic(client, unique_name("produce"), PARTITIONS)
        batches = megabytes * 1_000_000 // len(batch.data)
        result = fill(
            address,
            client,
            topic,
            batch,
            connections=connections,
            batches=batches,
            acks=acks,
            pid=pid,
        )
        drop_topic(client, topic)
    return result


def fetch(
    address: tuple[str, int], *, connections: int, megabytes: int, pid: int | None = None
) -> Result:
    """Read what was just written, from the page cache: one batch of each partition per request."""
    batch = make_batch(LARGE_RECORD_BYTES, LARGE_BATCH_RECORDS)
    with WireClient(address) as client:
        topic = make_topic(client, unique_name("fetch"), PARTITIONS)
        per_partition = max(connections, megabytes * 1_000_000 // len(batch.data) // PARTITIONS)
        fill(address, client, topic, batch, connections=1, batches=per_partition * PARTITIONS)
        requests = []
        for number in range(per_partition):
            offsets = dict.fromkeys(range(PARTITIONS), number * batch.record_count)
            frame = fetch_frame(client, topic, offsets, partition_max_bytes=FETCH_MAX_BYTES)
            requests.append(Chunk(memoryview(frame), 1))
        pipelines = [
            Pipeline(
                address,
                requests[number::connections],
                FetchReplies(len(batch.data) * PARTITIONS),
                FETCHES_IN_FLIGHT,
            )
            for number in range(connections)
        ]
        result = _measure(pipelines, len(batch.data) * PARTITIONS, pid)
        drop_topic(client, topic)
    return result


def _measure(pipelines: Sequence[Pipeline], bytes_per_request: int, pid: int | None) -> Result:
    usage, own_cpu_s = Usage(pid), time.process_time()
    seconds = drive(pipelines)
    own_cpu_s = time.process_time() - own_cpu_s
    cost = usage.cost()
    requests = sum(pipeline.done_count for pipeline in pipelines)
    return Result(seconds, requests, requests * bytes_per_request, own_cpu_s / seconds, cost)


def parse_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument("--bootstrap", type=parse_address, required=True, metavar="HOST:PORT")
    parser.add_argument("load", choices=("unbatched", "produce", "fetch"))
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--requests", type=int, default=100_000, help="of the unbatched load")
    parser.add_argument("--megabytes", type=int, default=1000, help="of the other loads")
    parser.add_argument("--acks", type=int, choices=(-1, 1), default=1)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    for _ in range(options.rounds):
        address, connections = options.bootstrap, options.connections
        match options.load:
            case "unbatched":
                result = unbatched(
                    address, connections=connections, requests=options.requests, acks=options.acks
                )
            case "produce":
                result = produce(
                    address,
                    connections=connections,
                    megabytes=options.megabytes,
                    acks=options.acks,
                )
            case _:
                result = fetch(address, connections=connections, megabytes=options.megabytes)
        print(
            f"{options.load}, {connections} connections:"
            f" {result.requests_per_second:,.0f} requests/s,"
            f" {result.megabytes_per_second:,.0f} MB/s in {result.seconds:.2f} s,"
            f" generator {result.busy:.0%} busy"
        )


if __name__ == "__main__":
    main()
