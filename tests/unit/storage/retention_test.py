"""What goes by age, size and log start, and what stays (R33, R34, S32, S33)."""

from runnel.config.topic import LogConfig
from runnel.storage.log import Log
from tests.simulated.disk import SimDisk
from tests.support.batches import make_batch
from tests.support.stores import ManualClock, open_log, read_all

DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS


def _log(clock: ManualClock, config: LogConfig, segments: int, *, timestamp: int = 0) -> Log:
    """Segments of three records, each a second younger than the one before."""
    _, log = open_log(SimDisk(0), clock, config)
    for n in range(segments):
        if n:
            log.roll(clock.wall_ms(), log.log_end_offset)
        header, raw = make_batch(
            log.log_end_offset,
            3,
            timestamp=(timestamp or clock.wall_ms()) + 1_000 * n,
            value=bytes(200),
        )
        log.append(header, raw, clock.wall_ms())
    return log


def test_segments_go_by_the_age_of_their_youngest_record() -> None:
    clock = ManualClock()
    log = _log(clock, LogConfig(retention_ms=DAY_MS), 4)
    assert log.retain(clock.wall_ms() + DAY_MS + 2, 12) == []
    clock.advance(DAY_MS + 1_500)
    deleted = log.retain(clock.wall_ms(), 12)
    assert [(d.base_offset, d.next_offset, d.reason) for d in deleted] == [
        (0, 3, "age"),
        (3, 6, "age"),
    ]
    assert (log.log_start_offset, log.segment_count) == (6, 2)
    assert log.epochs.entries[0].start_offset == 6


def test_an_old_active_segment_is_rolled_and_goes_too() -> None:
    clock = ManualClock()
    log = _log(clock, LogConfig(retention_ms=DAY_MS), 2)
    clock.advance(2 * DAY_MS)
    assert len(log.retain(clock.wall_ms(), 6)) == 2
    assert (log.log_start_offset, log.log_end_offset, log.segment_count) == (6, 6, 1)
    assert read_all(log) == b""
    assert log.retain(clock.wall_ms() + YEAR_MS, 6) == []


def test_nothing_at_or_above_the_high_watermark_goes() -> None:
    clock = ManualClock()
    log = _log(clock, LogConfig(retention_ms=DAY_MS), 4)
    clock.advance(2 * DAY_MS)
    assert [d.base_offset for d in log.retain(clock.wall_ms(), 5)] == [0]


def test_size_counts_whole_segments_that_leave_enough() -> None:
    clock = ManualClock()
    log = _log(clock, LogConfig(retention_bytes=-1, retention_ms=-1), 4)
    each = log.segments[0].size
    assert log.retain(clock.wall_ms(), 12) == []
    log.config = LogConfig(retention_bytes=2 * each + 1, retention_ms=-1)
    deleted = log.retain(clock.wall_ms(), 12)
    assert [(d.base_offset, d.reason, d.size_bytes) for d in deleted] == [(0, "size", each)]
    log.config = LogConfig(retention_bytes=0, retention_ms=-1)
    assert len(log.retain(clock.wall_ms(), 12)) == 3


def test_a_compacted_topic_keeps_old_segments() -> None:
    clock = ManualClock()
    compacted = LogConfig(cleanup_policy=frozenset({"compact"}), retention_ms=1, retention_bytes=0)
    log = _log(clock, compacted, 3)
    clock.advance(DAY_MS)
    assert log.retain(clock.wall_ms(), 9) == []


def test_deleted_records_take_whole_segments_with_them() -> None:
    clock = ManualClock()
    log = _log(clock, LogConfig(cleanup_policy=frozenset({"compact"})), 3)
    log.delete_records(7)
    assert log.log_start_offset == 7
    assert [(d.base_offset, d.reason) for d in log.retain(clock.wall_ms(), 9)] == [
        (0, "start"),
        (3, "start"),
    ]
    assert (log.log_start_offset, log.segments[0].base_offset) == (7, 6)


def test_a_future_timestamp_keeps_its_segment() -> None:
    """S32: as in Kafka, where a limit on timestamps is what keeps such records out."""
    clock = ManualClock()
    log = _log(clock, LogConfig(retention_ms=DAY_MS), 2, timestamp=clock.wall_ms() + YEAR_MS)
    clock.advance(30 * DAY_MS)
    assert log.retain(clock.wall_ms(), 6) == []


def test_records_without_a_timestamp_age_by_their_file() -> None:
    clock = ManualClock()
    disk = SimDisk(0)
    disk.now_ms = clock.wall_ms()
    _, log = open_log(disk, clock, LogConfig(retention_ms=DAY_MS))
    header, raw = make_batch(0, 1, timestamp=-1)
    log.append(header, raw, clock.wall_ms())
    assert log.retain(clock.wall_ms() + DAY_MS, 1) == []
    clock.advance(DAY_MS + 1)
    assert len(log.retain(clock.wall_ms(), 1)) == 1


def test_a_clock_that_jumps_deletes_nothing() -> None:
    """S33: forward by ten days and by a year, and back; then the time comes honestly."""
    clock = ManualClock()
    log = _log(clock, LogConfig(retention_ms=7 * DAY_MS), 3)
    for jump_ms in (10 * DAY_MS, YEAR_MS, -10 * YEAR_MS):
        clock.wall += jump_ms
        assert log.retain(clock.wall_ms(), 9) == []
        assert log.expire_producers(clock.wall_ms()) == 0
        clock.wall -= jump_ms
    clock.wall += 3_000_000  # a correction within the hour is believed
    clock.advance(7 * DAY_MS)
    assert len(log.retain(clock.wall_ms(), 9)) == 3


def test_size_is_asked_even_while_the_clock_is_not_believed() -> None:
    clock = ManualClock()
    log = _log(clock, LogConfig(retention_ms=DAY_MS, retention_bytes=0), 2)
    clock.wall += YEAR_MS
    assert [d.reason for d in log.retain(clock.wall_ms(), 6)] == ["size", "size"]
