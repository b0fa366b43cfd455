"""Goal: finding an offset waits for the disk only where it may, and at the tail it never has to."""

import pytest

from runnel.config.topic import LogConfig
from runnel.storage.segment import TAIL_BATCHES, ColdError
from tests.simulated.disk import SimDisk
from tests.support.batches import make_batch
from tests.support.stores import ManualClock, flush, open_log, open_store

BATCHES = 4 * TAIL_BATCHES
CONFIG = LogConfig(index_interval_bytes=400)


def test_only_a_lookup_behind_the_tail_can_be_cold() -> None:
    disk = SimDisk(0)
    _, log = open_log(disk, ManualClock(), CONFIG)
    for offset in range(BATCHES):
        log.append(*make_batch(offset, value=bytes(100)), 0)
    disk.cold_probability = 1.0
    tail = log.slice(BATCHES - 5, 1000, BATCHES, at_least_one=True, wait=False)
    assert tail is not None
    with pytest.raises(ColdError) as raised:
        log.slice(10, 1000, BATCHES, at_least_one=True, wait=False)
    found = log.slice(10, 1000, BATCHES, at_least_one=True)
    assert found is not None
    cold = raised.value.cold
    assert cold.position <= found.position < cold.position + cold.size, "what it warms is of use"


def test_the_index_of_an_older_segment_may_be_what_is_cold() -> None:
    disk, clock = SimDisk(0), ManualClock()
    store, log = open_log(disk, clock, CONFIG)
    for offset in range(BATCHES):
        log.append(*make_batch(offset, value=bytes(100)), 0)
        if offset == BATCHES // 2:
            log.roll(0, log.log_end_offset)
    flush(log)
    store.close_clean(1, {})
    store, _ = open_store(disk, clock, CONFIG)
    reopened = store.get("topic", 0)
    assert reopened is not None
    disk.cold_probability = 1.0
    with pytest.raises(ColdError) as raised:
        reopened.slice(10, 1000, BATCHES, at_least_one=True, wait=False)
    assert raised.value.cold.file.path.endswith(".index")
    assert reopened.slice(10, 1000, BATCHES, at_least_one=True) is not None
