"""What the simulator found, each as a scenario of its own that no change of a seed can lose."""

import random

import pytest

from runnel.broker.inspection import inspect
from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.log import Log
from runnel.types import NO_TOPIC_ID
from tests.simulated import payload
from tests.simulated.disk import SimDisk
from tests.support.batches import make_batch
from tests.support.stores import FOLDER, TOPIC_ID, ManualClock, flush, open_log, open_store

CONFIG = LogConfig(durability="ack")
SEEDS = range(40)


def _append(log: Log, count: int = 1) -> None:
    for _ in range(count):
        header, raw = make_batch(log.log_end_offset, 1, value=bytes(100))
        log.append(header, raw, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_log_created_just_before_a_kill_survives_a_later_power_loss(seed: int) -> None:
    """Its folder and its id were written but not synced; the next process must see to both."""
    disk, clock = SimDisk(seed), ManualClock()
    disk.make_dir(FOLDER)
    disk.sync_dir("/")
    open_log(disk, clock, CONFIG)
    disk.kill()
    _, log = open_log(disk, clock, CONFIG)
    _append(log, 3)
    flush(log)
    disk.lose_power()
    store, _ = open_store(disk, clock, CONFIG)
    found = store.get("topic", 0)
    assert found is not None, "the folder is gone"
    assert found.topic_id == TOPIC_ID, "the id is gone"
    assert found.log_end_offset == 3


def test_a_log_that_lost_its_id_is_given_it_anew() -> None:
    disk, clock = SimDisk(1), ManualClock()
    store, log = open_log(disk, clock, CONFIG)
    _append(log, 3)
    store.close_clean(1, {})
    disk.kill()
    disk.open(f"{FOLDER}/topic-0/partition.metadata").truncate(11)
    store, _ = open_store(disk, clock, CONFIG)
    found = store.get("topic", 0)
    assert found is not None
    assert (found.topic_id, found.log_end_offset) == (NO_TOPIC_ID, 3)
    store.adopt(found, TOPIC_ID)
    store.close_clean(2, {})
    disk.kill()
    store, _ = open_store(disk, clock, CONFIG)
    again = store.get("topic", 0)
    assert again is not None
    assert (again.topic_id, again.log_end_offset) == (TOPIC_ID, 3)


@pytest.mark.parametrize("max_bytes", [0, -1, -1117])
def test_a_fetch_without_bytes_left_gets_nothing_above_the_high_watermark(max_bytes: int) -> None:
    """The bytes left of a request go below zero once its first batch was larger than allowed."""
    _, log = open_log(SimDisk(1), ManualClock(), CONFIG)
    _append(log, 8)
    assert log.slice(3, max_bytes, 5, at_least_one=False) is None
    found = log.slice(3, max_bytes, 5, at_least_one=True)
    assert found is not None
    assert found.size == len(make_batch(0, 1, value=bytes(100))[1])


@pytest.mark.parametrize("compression_type", ["zstd", "gzip", "uncompressed"])
def test_a_damaged_batch_is_refused_before_it_gets_a_new_crc(compression_type: str) -> None:
    raw = bytearray(payload.batch(("a", "b"), random.Random(1), 1_700_000_000_000))
    raw[-20] ^= 1
    config = LogConfig(compression_type=compression_type)  # type: ignore[arg-type]  # one of its literals
    with pytest.raises(RunnelError) as refused:
        inspect(memoryview(raw), config, 1 << 20)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
