"""Data that is on disk and no longer in memory: reading it, and producing while someone does.

Segment files are synced and then dropped from the page cache, so this needs the broker's folder.
"""

import itertools
import os
import time
from pathlib import Path
from typing import NamedTuple

from bench.beside import Link, beside
from runnel.bench.frames import Batch
from runnel.bench.latency import Latency, sync_produce
from runnel.bench.load import LARGE, PARTITIONS, Load, Result, fetch_chunks, fetching, fill, measure
from runnel.bench.pipeline import LoadError, drive
from runnel.bench.topics import passing_topic
from runnel.client.raw import Address, Topic, WireClient

ONE_LARGE_RECORD = Load(LARGE.record_bytes, 1)
INTERVAL_S = 1 / 500


def evict(data_dir: Path, topic: Topic) -> int:
    """Drop the topic's segments from memory; returns how many bytes they have."""
    size_bytes = 0
    for path in data_dir.glob(f"{topic.name}-*/*.log"):
        with path.open("rb") as file:
            os.fdatasync(file.fileno())  # only clean pages can be dropped
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            size_bytes += os.fstat(file.fileno()).st_size
    if not size_bytes:
        raise LoadError(f"no segments of {topic.name} in {data_dir}")
    return size_bytes


def fetch(
    address: Address, data_dir: Path, *, consumers: int, megabytes: int, pid: int | None = None
) -> Result:
    """Every byte once, shared among the consumers."""
    batch = LARGE.batch()
    per_partition = _per_partition(batch, megabytes)
    with (
        WireClient(address) as client,
        passing_topic(client, "cold", PARTITIONS) as topic,
    ):
        fill(client, address, topic, batch, per_partition * PARTITIONS)
        requests = fetch_chunks(client, topic, batch, per_partition)
        pipelines = [
            fetching(address, batch, requests[number::consumers]) for number in range(consumers)
        ]
        evict(data_dir, topic)
        return measure(pipelines, len(batch.data) * PARTITIONS, pid)


class Disturbed(NamedTuple):
    """Sync produce of 1 KiB records, 500 a second: before, and while cold data is read."""

    before: Latency
    meanwhile: Latency
    read_megabytes_per_second: float


def produce_while_reading(
    address: Address, data_dir: Path, *, samples: int, megabytes: int
) -> Disturbed:
    batch = LARGE.batch()
    per_partition = _per_partition(batch, megabytes)
    with (
        WireClient(address) as client,
        passing_topic(client, "cold", PARTITIONS) as topic,
    ):
        fill(client, address, topic, batch, per_partition * PARTITIONS)
        evict(data_dir, topic)
        before = paced_produce(address, samples)
        with beside(read_on, address, data_dir, topic, per_partition) as reader:
            meanwhile = paced_produce(address, samples)
            read_megabytes_per_second = reader.result()
    return Disturbed(before, meanwhile, read_megabytes_per_second)


def paced_produce(address: Address, samples: int) -> Latency:
    """A record of 1 KiB at a time, as slowly as a client that has other things to do."""
    return sync_produce(address, samples=samples, load=ONE_LARGE_RECORD, interval_s=INTERVAL_S)


def read_on(
    link: Link, address: Address, data_dir: Path, topic: Topic, per_partition: int
) -> float:
    """Runs in a process of its own: evict and read all, again and again; returns MB/s."""
    batch = LARGE.batch()
    with WireClient(address) as client:
        requests = fetch_chunks(client, topic, batch, per_partition)
    byte_count, started = 0, time.perf_counter()
    link.say_ready()
    while not link.is_over():
        evict(data_dir, topic)
        chunks = itertools.takewhile(lambda _chunk: not link.is_over(), requests)
        pipeline = fetching(address, batch, chunks)
        drive([pipeline])
        pipeline.close()
        byte_count += pipeline.replies.byte_count
    return byte_count / 1e6 / (time.perf_counter() - started)


def _per_partition(batch: Batch, megabytes: int) -> int:
    return max(1, megabytes * 1_000_000 // len(batch.data) // PARTITIONS)
