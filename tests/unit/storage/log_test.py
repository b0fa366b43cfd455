"""Appending, reading, rolling and failing, one rule at a time; log_machine_test mixes them."""

from errno import EIO, ENOSPC

import pytest

from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.log import Log
from runnel.storage.timestamps import TimestampOffset
from runnel.wire.batch import BatchHeader
from tests.simulated.disk import Operation, SimDisk
from tests.support.batches import make_batch, make_marker
from tests.support.stores import FOLDER, ManualClock, flush, open_log, read_all

CONFIG = LogConfig(index_interval_bytes=300)


def _log(config: LogConfig = CONFIG, disk: SimDisk | None = None) -> Log:
    return open_log(disk or SimDisk(0), ManualClock(), config)[1]


def _fill(log: Log, count: int, *, value: bytes = b"v" * 100) -> list[bytes]:
    raws = []
    for _ in range(count):
        header, raw = make_batch(
            log.log_end_offset, 2, timestamp=1_000 + log.log_end_offset, value=value
        )
        log.append(header, raw, 0)
        raws.append(raw)
    return raws


def _slice(log: Log, offset: int, max_bytes: int, before: int, *, one: bool = True) -> bytes | None:
    found = log.slice(offset, max_bytes, before, at_least_one=one)
    return None if found is None else found.read()


@pytest.mark.parametrize("evicted", [False, True])
def test_slices_hold_whole_batches_from_the_one_asked_for(evicted: bool) -> None:
    """Every offset, every bound and many sizes; `evicted` goes by index and file alone."""
    log = _log(LogConfig(index_interval_bytes=300, segment_bytes=2_000))
    raws = _fill(log, 24)
    assert log.segment_count > 2
    if evicted:
        flush(log)
        log.roll(0, log.log_end_offset)
        for segment in log.segments:
            segment.release()
    size = len(raws[0])
    for offset in range(log.log_end_offset):
        for before in range(log.log_end_offset + 1):
            for max_bytes in (0, size - 1, size, size + 1, 3 * size, 10**6):
                found = _slice(log, offset, max_bytes, before)
                first, end = offset // 2, before // 2
                if first >= end or offset >= before:
                    assert found is None
                    continue
                assert found is not None
                count = len(found) // size
                assert found == b"".join(raws[first : first + count])
                assert 1 <= count <= end - first
                assert len(found) <= max(max_bytes, size)


def test_a_first_batch_over_the_limit_is_given_only_on_request() -> None:
    log = _log()
    raws = _fill(log, 3)
    assert _slice(log, 0, 10, 6) == raws[0]
    assert _slice(log, 0, 10, 6, one=False) is None
    assert _slice(log, 4, len(raws[2]), 6, one=False) == raws[2]


def test_offsets_outside_the_log() -> None:
    log = _log()
    _fill(log, 3)
    assert _slice(log, 6, 100, 6) is None
    log.delete_records(3)
    for offset in (-1, 2, 7):
        with pytest.raises(RunnelError) as caught:
            _slice(log, offset, 100, 6)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_slice_outlives_retention_and_eviction() -> None:
    log = _log(LogConfig(segment_bytes=1_000))
    raws = _fill(log, 12)
    found = log.slice(0, 10**6, 24, at_least_one=True)
    assert found is not None
    log.delete_records(24)
    log.retain(0, 24)
    assert found.read() == b"".join(raws[: found.size // len(raws[0])])


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(segment_bytes=600),
        LogConfig(segment_ms=10),
        LogConfig(segment_index_bytes=96, index_interval_bytes=150),
    ],
)
def test_rolling(config: LogConfig) -> None:
    log = _log(config)
    raws = _fill(log, 30)
    assert 3 < log.segment_count < 30
    assert read_all(log) == b"".join(raws)
    for segment in log.segments:
        assert segment.size <= config.segment_bytes
        assert len(segment.index) * 8 <= config.segment_index_bytes
        assert len(segment.time_index) * 12 <= config.segment_index_bytes
        first = next(h for _, h in segment.headers())
        assert segment.max_timestamp - first.max_timestamp <= config.segment_ms


def test_a_segment_never_spans_more_offsets_than_four_bytes_hold() -> None:
    """R36, KAFKA-6264."""
    log = _log()
    log.truncate_fully_and_start_at(2**31)
    header, raw = make_batch(2**31, 1)
    log.append(header, raw, 0)
    for base_offset in (2**32 - 2, 2**32 - 1, 2**32):
        header, raw = make_batch(base_offset, 1)
        log.append(header, raw, 0)
    assert [s.base_offset for s in log.segments] == [2**31, 2**32]


def test_an_idle_segment_rolls_by_age() -> None:
    log = _log(LogConfig(segment_ms=100))
    assert not log.maybe_roll(10**9)
    _fill(log, 1)
    assert not log.maybe_roll(1_100)
    assert log.maybe_roll(1_102)
    assert log.segment_count == 2


def _first_at_or_after(log: Log, timestamp: int) -> TimestampOffset | None:
    searched = (
        candidate.first_at_or_after(timestamp, log.log_start_offset)
        for candidate in log.batches_at_or_after(timestamp)
    )
    return next((found for found in searched if found is not None), None)


def test_records_by_timestamp() -> None:
    log = _log(LogConfig(index_interval_bytes=100, segment_bytes=1_000))
    _fill(log, 20)
    assert log.segment_count > 3
    for timestamp in range(990, 1_040):
        expected = TimestampOffset(max(timestamp, 1_000), max(timestamp - 1_000, 0), 0)
        assert _first_at_or_after(log, timestamp) == expected
    assert _first_at_or_after(log, 1_040) is None
    latest = log.latest_batch()
    assert latest is not None
    assert latest.latest() == TimestampOffset(1_039, 39, 0)
    log.delete_records(33)
    assert _first_at_or_after(log, 0) == TimestampOffset(1_033, 33, 0)
    assert _log().latest_batch() is None


def test_timestamps_that_go_back() -> None:
    log = _log(LogConfig(index_interval_bytes=100))
    times = [50, 90, 20, 90, 30, 70, 95, 10]
    for time in times:
        header, raw = make_batch(log.log_end_offset, 1, timestamp=time, value=bytes(80))
        log.append(header, raw, 0)
    for timestamp in range(100):
        first = next((o for o, t in enumerate(times) if t >= timestamp), None)
        found = _first_at_or_after(log, timestamp)
        assert (found and found.offset) == first
    latest = log.latest_batch()
    assert latest is not None
    assert latest.latest().offset == 6


def test_a_follower_takes_batches_as_they_are() -> None:
    """R11: offsets as given, epochs learnt, repeats passed over, a partial one left."""
    leader, follower = _log(), _log()
    for epoch in (0, 0, 4):
        header, raw = make_batch(leader.log_end_offset, 3, epoch=epoch)
        leader.append(header, raw, 0)
    data = memoryview(read_all(leader))
    assert follower.append_as_follower(data[:-1], 0) == 2
    assert follower.append_as_follower(data, 0) == 1
    assert read_all(follower) == data
    assert follower.epochs.entries == leader.epochs.entries
    damaged = bytearray(make_batch(9, 1)[1])
    damaged[-1] ^= 1
    with pytest.raises(RunnelError) as caught:
        follower.append_as_follower(memoryview(damaged), 0)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(RunnelError) as caught:
        follower.append_as_follower(memoryview(make_batch(8, 4)[1]), 0)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert follower.log_end_offset == 9


def test_aborted_transactions_of_a_range() -> None:
    log = _log(LogConfig(segment_bytes=300))
    for n in range(8):
        header, raw = make_batch(
            log.log_end_offset, 1, producer_id=n % 2, producer_epoch=0, sequence=n // 2,
            transactional=True,
        )  # fmt: skip
        log.append(header, raw, 0)
        if n % 2:
            for pid in (0, 1):
                marker = make_marker(
                    log.log_end_offset, commit=pid == 1, producer_id=pid, producer_epoch=0
                )
                log.append(*marker, 0)
    assert log.segment_count > 3
    assert [a.first_offset for a in log.aborted_in(0, 16)] == [0, 4, 8, 12]
    assert [a.first_offset for a in log.aborted_in(5, 9)] == [4, 8]
    assert log.aborted_in(3, 4) == []


FAULTS: list[tuple[Operation, int, str]] = [
    ("write", ENOSPC, ".log"),
    ("write", EIO, ".log"),
    ("open", EIO, ".log"),  # at the roll
    ("write", ENOSPC, ".snapshot"),  # at the roll
]


@pytest.mark.parametrize(("operation", "errno", "path"), FAULTS)
def test_a_failing_disk_takes_the_log_offline_and_loses_nothing(
    operation: Operation, errno: int, path: str
) -> None:
    for after in range(4):
        disk, clock = SimDisk(after), ManualClock()
        _, log = open_log(disk, clock, LogConfig(segment_bytes=1_000))
        acknowledged = _fill(log, 1)
        disk.fail(operation, errno, after=after, path=path)
        with pytest.raises(RunnelError) as caught:
            for _ in range(40):
                acknowledged += _fill(log, 1)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "topic-0 is offline" in str(caught.value)
        end = log.log_end_offset
        assert end == 2 * len(acknowledged)
        with pytest.raises(RunnelError, match="offline"):
            _fill(log, 1)
        with pytest.raises(RunnelError, match="offline"):
            read_all(log)
        assert log.begin_flush() is None
        disk.kill()
        _, again = open_log(disk, clock, LogConfig(segment_bytes=1_000))
        assert read_all(again) == b"".join(acknowledged)
        assert again.log_end_offset == end


def test_a_full_disk_says_so() -> None:
    disk = SimDisk(0, capacity_bytes=3_000)
    log = _log(disk=disk)
    with pytest.raises(RunnelError, match="No space left on device"):
        _fill(log, 40)
    assert disk.counts["full"] > 0


def test_a_short_write_is_finished() -> None:
    disk = SimDisk(0)
    disk.short_write_probability = 0.5
    log = _log(disk=disk)
    raws = _fill(log, 40)
    assert read_all(log) == b"".join(raws)
    assert disk.counts["short writes"] > 5


@pytest.mark.parametrize("path", [".log", ".index", "leader-epoch"])
def test_a_failed_sync_is_never_tried_again(path: str) -> None:
    disk = SimDisk(0)
    log = _log(LogConfig(index_interval_bytes=50, segment_bytes=1_000), disk)
    log.flush()
    _fill(log, 8)
    disk.fail("sync", EIO, path=path)
    work = log.begin_flush()
    assert work is not None
    work.run()
    log.end_flush(work)
    assert log.offline is not None
    assert log.flushed_offset == 0
    syncs = disk.counts["sync"]
    assert log.begin_flush() is None
    assert disk.counts["sync"] == syncs


def test_a_flush_that_a_truncation_overtook_promises_nothing() -> None:
    disk, clock = SimDisk(0), ManualClock()
    _, log = open_log(disk, clock, CONFIG)
    _fill(log, 4)
    work = log.begin_flush()
    assert work is not None
    log.truncate_to(4)
    raws = _fill(log, 3, value=b"w" * 90)
    work.run()
    log.end_flush(work)
    assert log.flushed_offset <= 4
    flush(log)
    disk.kill()
    _, again = open_log(disk, clock, CONFIG)
    assert again.log_end_offset == 10
    assert _slice(again, 4, 10**6, 10) == b"".join(raws)


def test_durability_os_syncs_closed_segments_alone() -> None:
    disk = SimDisk(0)
    log = _log(LogConfig(durability="os", segment_bytes=1_000), disk)
    _fill(log, 10)
    work = log.begin_flush()
    assert work is not None
    work.run()
    log.end_flush(work)
    assert 0 < log.flushed_offset == log.segments[-1].base_offset < log.log_end_offset
    assert disk.exists(log.segments[-1].path(".index"))


def test_truncation_keeps_whole_batches_and_cuts_the_epochs() -> None:
    log = _log()
    for epoch in (0, 1, 2):
        header, raw = make_batch(log.log_end_offset, 3, epoch=epoch)
        log.append(header, raw, 0)
    log.epochs.assign(3, 9)
    log.truncate_to(9)  # no bytes, and yet the epoch that starts there goes (KAFKA-10706)
    assert (log.log_end_offset, log.epochs.latest_epoch) == (9, 2)
    log.truncate_to(7)
    assert (log.log_end_offset, log.epochs.entries) == (6, ((0, 0), (1, 3)))
    log.truncate_to(0)
    assert (log.log_end_offset, log.log_start_offset, log.epochs.entries) == (0, 0, ())


def test_a_control_batch_without_a_marker_is_not_written() -> None:
    log = _log()
    header, raw = make_marker(0, commit=True, producer_id=1, producer_epoch=0)
    damaged = raw[:61] + b"\x01" * 5
    with pytest.raises(RunnelError) as caught:
        log.append(BatchHeader.read(damaged), damaged, 0)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert (log.log_end_offset, log.offline, log.segments[-1].size) == (0, None, 0)
    log.append(header, raw, 0)
    assert log.folder == f"{FOLDER}/topic-0"
