"""What was durable before a crash is there after it: nothing is cut before the recovery point."""

import random
from errno import EIO

import pytest

from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.checkpoints import RECOVERY_POINTS
from runnel.storage.files import write_all
from runnel.storage.log import Log
from runnel.storage.store import LogStore, Opened
from runnel.types import TopicPartition
from tests.simulated.disk import SimDisk
from tests.support.batches import make_batch, make_marker
from tests.support.stores import FOLDER, ManualClock, flush, open_log, read_all

CONFIG = LogConfig()
COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))
LOG_PATH = f"{FOLDER}/topic-0/{0:020d}.log"
OFFSETS = (0, 7, 8, 40, 99)  # as Kafka's cleaner leaves them
CLEANED = b"".join(make_batch(offset)[1] for offset in OFFSETS)
ONE = len(CLEANED) // len(OFFSETS)


def _crashed(disk: SimDisk, clock: ManualClock, content: bytes, recovery_point: int) -> None:
    store, log = open_log(disk, clock, CONFIG)
    log.flush()
    store.write_checkpoints({})
    write_all(disk.open(LOG_PATH), 0, content)
    text = b"0\n1\ntopic 0 %d\n" % recovery_point
    file = disk.open(f"{FOLDER}/{RECOVERY_POINTS}")
    file.truncate(0)
    write_all(file, 0, text)
    disk.kill()


def _opened(
    disk: SimDisk, clock: ManualClock, config: LogConfig | None
) -> tuple[LogStore, Opened, Log | None]:
    store = LogStore(
        disk, [FOLDER], clock, random.Random(1), CONFIG, cluster_id="cluster", node_id=1
    )
    opened = store.open(config_of=lambda _topic: config)
    return store, opened, store.get("topic", 0)


@pytest.mark.parametrize("recovery_point", [0, 8, 41, 100])
@pytest.mark.parametrize("config", [None, COMPACTED])
def test_gaps_of_a_topic_that_is_or_may_be_compacted_are_kept(
    config: LogConfig | None, recovery_point: int
) -> None:
    disk, clock = SimDisk(0), ManualClock()
    _crashed(disk, clock, CLEANED, recovery_point)
    _, opened, log = _opened(disk, clock, config)
    assert opened.notices == []
    assert log is not None
    assert log.log_end_offset == 100
    assert read_all(log) == CLEANED


def test_a_gap_of_a_topic_that_is_not_compacted_is_a_hole_past_the_recovery_point_only() -> None:
    for recovery_point, kept in ((0, 1), (7, 3), (8, 3), (41, 4), (99, 5), (100, 5)):
        disk, clock = SimDisk(0), ManualClock()
        _crashed(disk, clock, CLEANED, recovery_point)
        _, _, log = _opened(disk, clock, CONFIG)
        assert log is not None
        assert read_all(log) == CLEANED[: kept * ONE], recovery_point


def test_a_damaged_batch_that_was_durable_is_told_of_and_kept() -> None:
    disk, clock = SimDisk(0), ManualClock()
    content = bytearray(CLEANED)
    content[2 * ONE - 1] ^= 1
    _crashed(disk, clock, bytes(content), 41)
    _, opened, log = _opened(disk, clock, COMPACTED)
    assert log is not None
    assert read_all(log) == content
    assert [notice.text for notice in opened.notices] == [
        "batch 7 is damaged, and was durable: kept"
    ]


def test_bytes_that_are_no_batches_before_the_recovery_point_keep_the_log_out() -> None:
    disk, clock = SimDisk(0), ManualClock()
    content = CLEANED[:ONE] + bytes(ONE) + CLEANED[2 * ONE :]
    _crashed(disk, clock, content, 41)
    store, _, log = _opened(disk, clock, COMPACTED)
    assert log is None
    assert (
        f"position {ONE}, before its recovery point 41" in store.failed[TopicPartition("topic", 0)]
    )
    assert disk.read_whole(LOG_PATH) == content
    disk.remove(f"{FOLDER}/{RECOVERY_POINTS}")  # what the operator is told of
    _, _, log = _opened(disk, clock, COMPACTED)
    assert log is not None
    assert read_all(log) == CLEANED[:ONE]


def test_a_torn_tail_past_the_recovery_point_is_still_cut() -> None:
    disk, clock = SimDisk(0), ManualClock()
    _crashed(disk, clock, CLEANED[:-1], 41)
    _, opened, log = _opened(disk, clock, COMPACTED)
    assert log is not None
    assert read_all(log) == CLEANED[: 4 * ONE]
    assert any("cut" in notice.text for notice in opened.notices)


def test_a_file_that_lost_its_durable_end_is_told_of() -> None:
    disk, clock = SimDisk(0), ManualClock()
    _crashed(disk, clock, CLEANED[: 2 * ONE], 100)
    _, opened, log = _opened(disk, clock, COMPACTED)
    assert log is not None
    assert log.log_end_offset == 8
    assert [notice.text for notice in opened.notices] == ["ends at 8, before 100 was durable"]


def test_a_power_loss_during_a_truncation_leaves_no_hole() -> None:
    config = LogConfig(segment_bytes=300)
    for seed in range(60):
        disk, clock = SimDisk(seed), ManualClock()
        store, log = open_log(disk, clock, config)
        for _ in range(20):
            log.append(*make_batch(log.log_end_offset, 2, value=bytes(100)), 0)
        flush(log)
        store.write_checkpoints({})
        ends = [segment.next_offset for segment in log.segments]
        assert len(ends) > 8
        disk.fail("truncate" if seed % 2 else "sync_dir", EIO, path="topic-0")
        with pytest.raises(RunnelError):
            log.truncate_to(ends[1] + 2)
        disk.lose_power()
        _, again = open_log(disk, clock, config)
        read_all(again)
        for segment, later in zip(again.segments, again.segments[1:], strict=False):
            *_, (_, last) = segment.headers()
            assert last.next_offset == later.base_offset, seed


def test_aborted_transactions_that_cannot_be_read_take_the_log_offline() -> None:
    disk, clock = SimDisk(0), ManualClock()
    _, log = open_log(disk, clock, LogConfig(segment_bytes=200))
    for turn in range(3):
        batch = make_batch(
            log.log_end_offset, producer_id=5, producer_epoch=1, sequence=turn, transactional=True
        )
        log.append(*batch, 0)
        log.append(
            *make_marker(log.log_end_offset, commit=False, producer_id=5, producer_epoch=1), 0
        )
    flush(log)
    log.segments[0].release()
    disk.fail("open", EIO, path=".txnindex")
    with pytest.raises(RunnelError) as caught:
        log.aborted_in(0, 6)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.offline is not None
