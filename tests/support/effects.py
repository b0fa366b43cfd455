"""What each setting does: an experiment per name that shows a broker before and after the change.

An experiment makes its topic, sees how the broker behaves, calls `change` with a new value, and
sees the other behaviour. It does not know where the value is set: on the topic, or on the broker
that the topic inherits from.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from runnel.broker.partition import Partition
from runnel.broker.upkeep import TRASH_INTERVAL_MS
from runnel.errors import ErrorCode
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode
from runnel.wire.batch import compression_of
from runnel.wire.crc import crc32c
from tests.support import cleaner_effects
from tests.support.asking import batch, create, fetch_request, produce
from tests.support.desk import Desk

Change = Callable[[str], Awaitable[None]]
Experiment = Callable[[Desk, Change], Awaitable[None]]

CHECK_MS = 100
SETTINGS = {
    "log.retention.check.interval.ms": str(CHECK_MS),
    "runnel.flush.interval.ms": "100000",
    **cleaner_effects.SETTINGS,
}
KIB = 1024


def partition_of(desk: Desk) -> Partition:
    return desk.broker.partitions.get("t", 0)


def now(desk: Desk, **options: Any) -> bytes:  # noqa: ANN401  # what `encode` takes
    return batch(b"value", at_ms=desk.clock.wall_ms(), **options)


def block(desk: Desk, size: int = 100 * KIB, after_ms: int = 0) -> bytes:
    return batch(bytes(size), at_ms=desk.clock.wall_ms() + after_ms)


async def code_of(desk: Desk, records: bytes) -> int:
    return (await produce(desk, records)).error_code


async def upkeep() -> None:
    await asyncio.sleep(3 * CHECK_MS / 1000)


async def cleanup_policy(desk: Desk, change: Change) -> None:
    await create(desk)
    keyless = bytes(encode([Record(None, b"v", desk.clock.wall_ms())]))
    assert await code_of(desk, keyless) == 0
    await change("compact")
    assert await code_of(desk, keyless) == ErrorCode.INVALID_RECORD


async def compression_type(desk: Desk, change: Change) -> None:
    await create(desk)

    async def stored() -> Compression:
        result = await produce(desk, now(desk))
        response = await desk.ask(fetch_request(result.base_offset), 12)
        return Compression(compression_of(response.responses[0].partitions[0].records))

    assert await stored() is Compression.NONE
    for codec in Compression:
        await change("uncompressed" if codec is Compression.NONE else codec.name.lower())
        assert await stored() is codec


def compression_level(codec: str, weak: int, strong: int) -> Experiment:
    async def experiment(desk: Desk, change: Change) -> None:
        await create(desk, compression_type=codec)
        words = [random.Random(n).randbytes(3).hex() for n in range(300)]
        text = " ".join(random.Random(0).choices(words, k=20_000)).encode()
        records = batch(text, at_ms=desk.clock.wall_ms())
        sizes: list[int] = []
        for level in (weak, strong):
            await change(str(level))
            before = partition_of(desk).log.size_bytes
            assert await code_of(desk, records) == 0
            sizes.append(partition_of(desk).log.size_bytes - before)
        assert sizes[1] < sizes[0]

    return experiment


async def file_delete_delay_ms(desk: Desk, change: Change) -> None:
    await create(desk, segment_bytes=str(1 << 20), retention_bytes="1")

    async def deleted() -> list[str]:
        for _ in range(3):
            assert await code_of(desk, block(desk, 700 * KIB)) == 0
        await upkeep()
        await asyncio.sleep(2 * TRASH_INTERVAL_MS / 1000)
        names = desk.broker._ports.disk.list("/data/t-0")
        return [name for name in names if name.endswith(".log.deleted")]

    before = await deleted()
    assert before, "kept for a minute"
    await change("0")
    assert await deleted() == before, "gone with the next look at what was deleted"


async def flush_messages(desk: Desk, change: Change) -> None:
    await create(desk, runnel_durability="os")
    log = partition_of(desk).log
    for _ in range(5):
        await produce(desk, now(desk))
    await asyncio.sleep(1)
    assert (log.flushed_offset, log.log_end_offset) == (0, 5)
    await change("3")
    await produce(desk, now(desk))
    await asyncio.sleep(0.01)
    assert log.flushed_offset == 6
    for _ in range(2):
        await produce(desk, now(desk))
    await asyncio.sleep(1)
    assert log.flushed_offset == 6
    await produce(desk, now(desk))
    await asyncio.sleep(0.01)
    assert log.flushed_offset == 9


async def flush_ms(desk: Desk, change: Change) -> None:
    await create(desk, runnel_durability="os")
    log = partition_of(desk).log
    await produce(desk, now(desk))
    await asyncio.sleep(1)
    assert log.flushed_offset == 0
    await change("200")
    await produce(desk, now(desk))
    await asyncio.sleep(0.1)
    assert log.flushed_offset == 0
    await asyncio.sleep(0.2)
    assert log.flushed_offset == 2


async def index_interval_bytes(desk: Desk, change: Change) -> None:
    await create(desk)
    index = partition_of(desk).log.segments[-1].index
    for _ in range(5):
        await produce(desk, now(desk))
    assert len(index) == 0
    await change("10")
    for _ in range(5):
        await produce(desk, now(desk))
    assert len(index) >= 4


async def max_message_bytes(desk: Desk, change: Change) -> None:
    await create(desk)
    assert await code_of(desk, block(desk)) == 0
    await change("1000")
    assert await code_of(desk, block(desk)) == ErrorCode.MESSAGE_TOO_LARGE
    assert await code_of(desk, now(desk)) == 0


async def timestamp_after_max_ms(desk: Desk, change: Change) -> None:
    await create(desk)
    assert await code_of(desk, block(desk, 1, after_ms=5000)) == 0
    await change("1000")
    assert await code_of(desk, block(desk, 1, after_ms=5000)) == ErrorCode.INVALID_TIMESTAMP


async def timestamp_before_max_ms(desk: Desk, change: Change) -> None:
    await create(desk)
    assert await code_of(desk, block(desk, 1, after_ms=-5000)) == 0
    await change("1000")
    assert await code_of(desk, block(desk, 1, after_ms=-5000)) == ErrorCode.INVALID_TIMESTAMP


async def timestamp_type(desk: Desk, change: Change) -> None:
    await create(desk)
    assert (await produce(desk, now(desk))).log_append_time_ms == -1
    await change("LogAppendTime")
    assert (await produce(desk, now(desk))).log_append_time_ms == desk.clock.wall_ms()


async def min_insync_replicas(desk: Desk, change: Change) -> None:
    """What leaders go by is the partition's record; one replica alone is never too few."""
    await create(desk)
    membership = desk.broker._membership
    assert [p.min_isr for p in membership.image.topics["t"].partitions] == [1]
    await change("2")
    assert [p.min_isr for p in membership.image.topics["t"].partitions] == [2]
    await create(desk, "u", 2)
    assert {p.min_isr for p in membership.image.topics["u"].partitions} <= {1, 2}
    assert await code_of(desk, now(desk)) == 0


async def preallocate(desk: Desk, change: Change) -> None:
    await create(desk, segment_bytes=str(1 << 20))
    disk: Any = desk.broker._ports.disk
    await produce(desk, block(desk, 600 * KIB))
    await change("true")
    assert disk.counts["reserve"] == 0
    await produce(desk, block(desk, 600 * KIB))
    assert disk.counts["reserve"] == 1 << 20


async def retention_bytes(desk: Desk, change: Change) -> None:
    await create(desk, segment_bytes=str(1 << 20))
    for _ in range(3):
        await produce(desk, block(desk, 700 * KIB))
    await upkeep()
    assert partition_of(desk).log.log_start_offset == 0
    await change(str(800 * KIB))
    await upkeep()
    assert partition_of(desk).log.log_start_offset == 1


async def retention_ms(desk: Desk, change: Change) -> None:
    await create(desk)
    await produce(desk, now(desk))
    await asyncio.sleep(5)
    assert partition_of(desk).log.log_start_offset == 0
    await change("2000")
    await upkeep()
    assert partition_of(desk).log.log_start_offset == 1


async def segment_bytes(desk: Desk, change: Change) -> None:
    await create(desk)
    for _ in range(2):
        await produce(desk, block(desk, 700 * KIB))
    assert partition_of(desk).log.segment_count == 1
    await change(str(1 << 20))
    await produce(desk, block(desk, 700 * KIB))
    assert partition_of(desk).log.segment_count == 2


async def segment_index_bytes(desk: Desk, change: Change) -> None:
    await create(desk)
    await produce(desk, block(desk))
    await produce(desk, block(desk))
    assert partition_of(desk).log.segment_count == 1
    await change("24")  # one entry for an interval of 4 KiB
    await produce(desk, block(desk))
    assert partition_of(desk).log.segment_count == 2


async def segment_ms(desk: Desk, change: Change) -> None:
    await create(desk)
    await produce(desk, now(desk))
    await asyncio.sleep(5)
    assert partition_of(desk).log.segment_count == 1
    await change("1000")
    await upkeep()
    assert partition_of(desk).log.segment_count == 2


async def segment_jitter_ms(desk: Desk, change: Change) -> None:
    await create(desk, segment_ms="10000")

    async def segments_of_ten_seconds() -> int:
        before = partition_of(desk).log.segment_count
        for _ in range(40):
            await produce(desk, now(desk))
            await asyncio.sleep(0.25)
        return partition_of(desk).log.segment_count - before

    assert await segments_of_ten_seconds() <= 1
    await change("10000")
    await segments_of_ten_seconds()  # the segment that was begun keeps its time
    assert await segments_of_ten_seconds() + await segments_of_ten_seconds() > 2


async def durability(desk: Desk, change: Change) -> None:
    await create(desk)
    log = partition_of(desk).log
    await produce(desk, now(desk))
    assert log.flushed_offset == 0
    await change("ack")
    await produce(desk, now(desk))
    assert log.flushed_offset == 2, "the reply waited for the disk"


async def validation(desk: Desk, change: Change) -> None:
    await create(desk)
    spoilt = bytearray(now(desk))
    spoilt[-6:] = b"\xff" * 6
    damaged = with_right_crc(spoilt)
    assert await code_of(desk, damaged) == 0
    await change("records")
    assert await code_of(desk, damaged) in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)


def with_right_crc(records: bytearray) -> bytes:
    records[17:21] = crc32c(bytes(records[21:])).to_bytes(4, "big")
    return bytes(records)


async def producer_id_expiration_ms(desk: Desk, change: Change) -> None:
    await create(desk)
    await produce(desk, now(desk, producer_id=5, producer_epoch=0, base_sequence=0))
    await asyncio.sleep(5)
    assert 5 in partition_of(desk).log.producers.producers
    await change("1000")
    await upkeep()
    assert 5 not in partition_of(desk).log.producers.producers


# By the topic's name; a broker's setting that topics inherit has the same effect.
EXPERIMENTS: dict[str, Experiment] = {
    "cleanup.policy": cleanup_policy,
    "compression.gzip.level": compression_level("gzip", 1, 9),
    "compression.lz4.level": compression_level("lz4", 1, 12),
    "compression.type": compression_type,
    "compression.zstd.level": compression_level("zstd", 1, 19),
    "file.delete.delay.ms": file_delete_delay_ms,
    "flush.messages": flush_messages,
    "flush.ms": flush_ms,
    "index.interval.bytes": index_interval_bytes,
    "max.message.bytes": max_message_bytes,
    "message.timestamp.after.max.ms": timestamp_after_max_ms,
    "message.timestamp.before.max.ms": timestamp_before_max_ms,
    "message.timestamp.type": timestamp_type,
    "min.insync.replicas": min_insync_replicas,
    "preallocate": preallocate,
    "retention.bytes": retention_bytes,
    "retention.ms": retention_ms,
    "runnel.durability": durability,
    "runnel.validation": validation,
    "segment.bytes": segment_bytes,
    "segment.index.bytes": segment_index_bytes,
    "segment.jitter.ms": segment_jitter_ms,
    "segment.ms": segment_ms,
    **cleaner_effects.TOPIC_EXPERIMENTS,
}
