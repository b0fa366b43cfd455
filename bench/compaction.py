"""Compaction of one large log: how fast it is, and what a producer beside it notices.

The log is filled while its topic may not be compacted yet; then it may, and the cleaner is told to
look often. The log is done when the cleaner's checkpoint in the data folder says so, which is the
same file for Kafka and Runnel; so this needs the broker's folder.
"""

import os
import random
import struct
import threading
import time
from pathlib import Path
from typing import NamedTuple

from bench.cold import paced_produce
from runnel.bench.frames import Batch, produce_frame, produce_reply_shape, values
from runnel.bench.latency import Latency
from runnel.bench.pipeline import LoadError
from runnel.bench.topics import passing_topic
from runnel.client.raw import Address, Topic, WireClient
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.wire.crc import crc32c
from runnel.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

RECORD_BYTES, BATCH_RECORDS = 1024, 64
VERSIONS_PER_KEY = 5  # so a fifth of the log is left
IN_FLIGHT = 4
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
LOOK_S = 0.02
TIMEOUT_S = 600.0
BACKOFF = "log.cleaner.backoff.ms"
RATIO = "min.cleanable.dirty.ratio"
CONFIGS = {"cleanup.policy": "compact", RATIO: "1.0", "segment.bytes": str(256 << 20)}
_PLACE = b"key-%012d"


class Compacted(NamedTuple):
    """`before` and `meanwhile`: sync produce of 1 KiB records to another topic, 500 a second."""

    before: Latency
    meanwhile: Latency
    megabytes_per_second: float
    left_share: float  # of the log's bytes


def compact(address: Address, data_dir: Path, *, samples: int, megabytes: int) -> Compacted:
    with (
        WireClient(address) as client,
        passing_topic(client, "compacted", 1, CONFIGS) as topic,
    ):
        _fill(client, topic, megabytes)
        folder = data_dir / f"{topic.name}-0"
        size_bytes, until = _closed(folder)
        _write_out(folder)
        before = paced_produce(address, samples)
        watch = _Watch(data_dir, topic, until)
        _alter(client, BROKER, "", BACKOFF, "100")
        try:
            started = time.perf_counter()
            _alter(client, TOPIC, topic.name, RATIO, "0.01")
            watch.start()
            meanwhile = paced_produce(address, samples)
            watch.join()
        finally:
            _alter(client, BROKER, "", BACKOFF, None)
        if not watch.ended:
            raise LoadError(f"{topic.name} was not compacted within {TIMEOUT_S:.0f} s")
        left_bytes, _ = _closed(folder)
    seconds = watch.ended - started
    return Compacted(before, meanwhile, size_bytes / 1e6 / seconds, left_bytes / size_bytes)


def _fill(client: WireClient, topic: Topic, megabytes: int) -> None:
    """Keys in random order, each written a few times; the frame is made once, and keys put in."""
    now_ms = time.time_ns() // 1_000_000
    contents = values(RECORD_BYTES, BATCH_RECORDS)
    records = [Record(_PLACE % n, value, now_ms) for n, value in enumerate(contents)]
    data = bytes(encode(records))
    frame = bytearray(produce_frame(client, topic, [0], Batch(data, BATCH_RECORDS), 1))
    shape = produce_reply_shape(client, topic)
    places = [frame.index(_PLACE % n) for n in range(BATCH_RECORDS)]
    start = frame.index(data[21:])
    count = megabytes * 1_000_000 // len(data)
    keys = max(1, count * BATCH_RECORDS // VERSIONS_PER_KEY)
    chance = random.Random(1)
    outstanding = 0
    for _ in range(count):
        for place in places:
            frame[place : place + 16] = _PLACE % chance.randrange(keys)
        with memoryview(frame) as view:
            crc = crc32c(view[start : start + len(data) - 21])
        struct.pack_into(">I", frame, start - 4, crc)
        client.sock.sendall(frame)
        outstanding += 1
        while outstanding >= IN_FLIGHT:
            _check(client, shape.zeros)
            outstanding -= 1
    for _ in range(outstanding):
        _check(client, shape.zeros)


def _check(client: WireClient, zeros: tuple[int, ...] | list[int]) -> None:
    reply = client.receive_frame()
    if any(reply[at - 4] for at in zeros):
        raise LoadError(f"a produce request failed: {reply!r}")


def _write_out(folder: Path) -> None:
    """What was filled is still on its way to the disk, and in the way of everybody else."""
    for path in folder.glob("*.log"):
        with path.open("rb") as file:
            os.fdatasync(file.fileno())


def _closed(folder: Path) -> tuple[int, int]:
    """Bytes of the closed segments, and the offset after them."""
    logs = sorted(folder.glob("*.log"))
    return sum(path.stat().st_size for path in logs[:-1]), int(logs[-1].stem)


def _alter(client: WireClient, kind: int, name: str, key: str, value: str | None) -> None:
    config = AlterableConfig(
        name=key, config_operation=DELETE if value is None else SET, value=value
    )
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    (answer,) = client.call(IncrementalAlterConfigsRequest(resources=[resource])).responses
    if answer.error_code:
        raise LoadError(f"{key}: {answer.error_code} {answer.error_message}")


class _Watch(threading.Thread):
    """Looks for the end of the compaction while the main thread measures."""

    def __init__(self, data_dir: Path, topic: Topic, until: int) -> None:
        super().__init__(daemon=True)
        self._path = data_dir / "cleaner-offset-checkpoint"
        self._wanted = f"{topic.name} 0 {until}"
        self.ended = 0.0

    def run(self) -> None:
        deadline = time.perf_counter() + TIMEOUT_S
        while time.perf_counter() < deadline:
            if self._path.exists() and self._wanted in self._path.read_text().splitlines():
                self.ended = time.perf_counter()
                return
            time.sleep(LOOK_S)
