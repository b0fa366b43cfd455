"""Producers and consumers at once: one connection each, driven by one process.

The consumer reads what was written before, over and over, so that neither waits for the other.
"""

import time

from runnel.bench.load import (
    LARGE,
    PARTITIONS,
    Result,
    fetch_chunks,
    fetching,
    fill,
    prime,
    producers,
    spread,
)
from runnel.bench.pipeline import drive, until
from runnel.bench.topics import passing_topic
from runnel.bench.usage import Usage
from runnel.client.raw import Address, WireClient


def both(
    address: Address, *, megabytes: int, seconds: float, pid: int | None = None
) -> tuple[Result, Result]:
    """What was produced and what was fetched; the cost is that of both together."""
    batch = LARGE.batch()
    per_partition = max(1, megabytes * 1_000_000 // len(batch.data) // PARTITIONS)
    with (
        WireClient(address) as client,
        passing_topic(client, "read", PARTITIONS) as read,
        passing_topic(client, "written", PARTITIONS) as written,
    ):
        fill(client, address, read, batch, per_partition * PARTITIONS)
        prime(client, written)
        requests = spread(fetch_chunks(client, read, batch, per_partition), 0, 1)
        (producer,) = producers(client, address, written, LARGE, batch, seconds=seconds)
        consumer = fetching(address, batch, until(seconds, requests))
        usage, own_cpu_s = Usage(pid), time.process_time()
        elapsed_s = drive([producer, consumer])
        busy, cost = (time.process_time() - own_cpu_s) / elapsed_s, usage.cost()
        producer.close()
        consumer.close()
    produced, fetched = producer.done_count, consumer.done_count
    return (
        Result(elapsed_s, produced, produced * len(batch.data), busy, cost),
        Result(elapsed_s, fetched, fetched * len(batch.data) * PARTITIONS, busy, cost),
    )
