"""What the settings of compaction do, see `effects.py`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from runnel.metrics import Slot
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.storage.log import Log
from runnel.wire.batch import DELETE_HORIZON
from tests.support.asking import create, produce
from tests.support.compacting import headers
from tests.support.configuring import BROKER as BROKER_TYPE
from tests.support.configuring import set_configs
from tests.support.desk import Desk
from tests.support.stores import flush

Change = Callable[[str], Awaitable[None]]
Experiment = Callable[[Desk, Change], Awaitable[None]]

SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.io.buffer.load.factor": "0.01",
}
KEYS = 2_000


def log_of(desk: Desk, topic: str = "t") -> Log:
    return desk.broker.partitions.get(topic, 0).log


async def compacted(desk: Desk, topic: str = "t", **configs: str) -> None:
    await create(desk, topic, 1, cleanup_policy="compact", **configs)


async def put(desk: Desk, key: str, value: str | None, topic: str = "t") -> None:
    """One record in a segment that is closed and flushed."""
    content = None if value is None else value.encode()
    raw = bytes(encode([Record(key.encode(), content, desk.clock.wall_ms())]))
    assert (await produce(desk, raw, topic=topic)).error_code == 0
    close_segment(desk, topic)


def close_segment(desk: Desk, topic: str = "t") -> None:
    log = log_of(desk, topic)
    log.roll(desk.clock.wall_ms(), log.log_end_offset)
    flush(log)


async def is_cleaned(desk: Desk, within_s: float = 1.0, topic: str = "t") -> bool:
    await asyncio.sleep(within_s)
    log = log_of(desk, topic)
    return log.first_dirty_offset == log.log_end_offset


async def put_many(desk: Desk) -> int:
    """Of many keys in one batch. How many rounds it took to clean them."""
    runs = desk.broker.metrics.slots[Slot.CLEANER_RUNS]
    when = desk.clock.wall_ms()
    raw = bytes(encode([Record(b"%d" % n, b"v", when) for n in range(KEYS)]))
    assert (await produce(desk, raw)).error_code == 0
    close_segment(desk)
    assert await is_cleaned(desk, 5.0)
    return desk.broker.metrics.slots[Slot.CLEANER_RUNS] - runs


async def delete_retention_ms(desk: Desk, change: Change) -> None:
    await compacted(desk, min_cleanable_dirty_ratio="0")

    async def kept_ms() -> int:
        await put(desk, "k", None)
        now_ms = desk.clock.wall_ms()
        assert await is_cleaned(desk)
        marked = [h for h in headers(log_of(desk)) if h.attributes & DELETE_HORIZON]
        return marked[-1].base_timestamp - now_ms

    assert 86_400_000 <= await kept_ms() <= 86_401_000
    await change("5000")
    assert 5000 <= await kept_ms() <= 6000


async def min_cleanable_dirty_ratio(desk: Desk, change: Change) -> None:
    await compacted(desk)
    await put(desk, "k", "v" * 1000)
    assert await is_cleaned(desk)
    await put(desk, "l", "v")
    assert not await is_cleaned(desk)
    await change("0.01")
    assert await is_cleaned(desk)


async def min_compaction_lag_ms(desk: Desk, change: Change) -> None:
    await compacted(desk, min_cleanable_dirty_ratio="0")
    await put(desk, "k", "v")
    assert await is_cleaned(desk)
    await change("5000")
    await put(desk, "k", "w")
    assert not await is_cleaned(desk, 4.0)
    assert await is_cleaned(desk, 2.0)


async def max_compaction_lag_ms(desk: Desk, change: Change) -> None:
    await compacted(desk, min_cleanable_dirty_ratio="1")
    raw = bytes(encode([Record(b"k", b"v", desk.clock.wall_ms())]))
    assert (await produce(desk, raw)).error_code == 0
    assert not await is_cleaned(desk, 5.0)
    assert log_of(desk).segment_count == 1
    await change("2000")
    await asyncio.sleep(1)
    assert log_of(desk).segment_count == 2
    flush(log_of(desk))
    assert await is_cleaned(desk)


async def backoff_ms(desk: Desk, change: Change) -> None:
    await compacted(desk, min_cleanable_dirty_ratio="0")
    await put(desk, "k", "v")
    assert await is_cleaned(desk)
    await change("60000")
    await asyncio.sleep(1)
    await put(desk, "k", "w")
    assert not await is_cleaned(desk, 30.0)
    assert await is_cleaned(desk, 30.0)


async def fewer_keys(desk: Desk, change: Change, value: str) -> None:
    await compacted(desk, min_cleanable_dirty_ratio="0")
    assert await put_many(desk) == 1
    await change(value)
    assert await put_many(desk) > 2


async def dedupe_buffer_size(desk: Desk, change: Change) -> None:
    await fewer_keys(desk, change, str((1 << 20) + 1))


async def load_factor(desk: Desk, change: Change) -> None:
    await fewer_keys(desk, change, "0.0001")


async def io_buffer_size(desk: Desk, change: Change) -> None:
    await compacted(desk, min_cleanable_dirty_ratio="0")
    disk: Any = desk.broker._ports.disk

    async def writes() -> int:
        for n in range(50):
            raw = bytes(encode([Record(b"%d" % n, bytes(100), desk.clock.wall_ms())]))
            assert (await produce(desk, raw)).error_code == 0
        before = disk.counts["write"]
        close_segment(desk)
        assert await is_cleaned(desk)
        count: int = disk.counts["write"] - before
        return count

    few = await writes()
    await change("200")
    assert await writes() > few + 20


async def io_max_bytes_per_second(desk: Desk, change: Change) -> None:
    await compacted(desk, min_cleanable_dirty_ratio="0")
    await put(desk, "k", "v" * 10_000)
    assert await is_cleaned(desk)
    await change("5000")
    await put(desk, "k", "w" * 10_000)
    assert not await is_cleaned(desk, 3.0)
    assert await is_cleaned(desk, 10.0)


async def threads(desk: Desk, change: Change) -> None:
    cleaner = desk.broker._cleaner
    slow: dict[str, str | None] = {"log.cleaner.io.max.bytes.per.second": "1000"}
    assert (await set_configs(desk, BROKER_TYPE, "1", slow))[0] == 0
    for topic in ("t", "u", "w"):
        await compacted(desk, topic, min_cleanable_dirty_ratio="0")
        await put(desk, "k", "v" * 20_000, topic)
    await asyncio.sleep(1)
    assert len(cleaner._cleaning) == 1
    await change("2")
    await asyncio.sleep(1)
    assert len(cleaner._cleaning) == 2


TOPIC_EXPERIMENTS: dict[str, Experiment] = {
    "delete.retention.ms": delete_retention_ms,
    "max.compaction.lag.ms": max_compaction_lag_ms,
    "min.cleanable.dirty.ratio": min_cleanable_dirty_ratio,
    "min.compaction.lag.ms": min_compaction_lag_ms,
}
BROKER_EXPERIMENTS: dict[str, Experiment] = {
    "log.cleaner.backoff.ms": backoff_ms,
    "log.cleaner.dedupe.buffer.size": dedupe_buffer_size,
    "log.cleaner.io.buffer.load.factor": load_factor,
    "log.cleaner.io.buffer.size": io_buffer_size,
    "log.cleaner.io.max.bytes.per.second": io_max_bytes_per_second,
    "log.cleaner.threads": threads,
}
