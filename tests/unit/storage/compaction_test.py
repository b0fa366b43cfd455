"""Compaction of one log: what must stay, what must go, and when."""

import pytest

from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode
from runnel.storage.cleaning_plan import cleanable
from runnel.wire.batch import DELETE_HORIZON, BatchHeader
from tests.support.compacting import LIMITS, Seen, clean, committed, headers, latest
from tests.support.stores import read_all
from tests.support.writing import T0, World

CONFIG = LogConfig(
    segment_bytes=1 << 20, index_interval_bytes=100, cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=1_000, min_cleanable_dirty_ratio=0.0,
)  # fmt: skip


def test_the_last_value_of_each_key_stays_at_its_offset() -> None:
    world = World(CONFIG)
    world.put(("a", "1"), ("b", "1"), ("a", "2"))
    world.put(("c", "1"))
    world.put(("b", "2"), ("d", "1"))
    world.clean()
    assert world.seen() == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2"), (5, "d", "1")]
    assert world.log.log_end_offset == 6
    assert world.log.first_dirty_offset == 6
    assert [(h.base_offset, h.last_offset) for h in headers(world.log)] == [(0, 2), (3, 3), (4, 5)]


def test_what_is_clean_is_gone_over_with_new_keys() -> None:
    world = World(CONFIG)
    world.put(("a", "1"), ("b", "1"))
    world.clean()
    world.put(("a", "2"))
    world.put(("c", "1"))
    world.clean()
    assert world.seen() == [(1, "b", "1"), (2, "a", "2"), (3, "c", "1")]


def test_small_segments_become_one() -> None:
    world = World(CONFIG)
    for n in range(5):
        world.put(("a", str(n)), ("b", str(n)))
        world.roll()
    assert world.log.segment_count == 6
    world.clean(rolls=False)
    assert world.log.segment_count == 2
    assert world.seen() == [(8, "a", "4"), (9, "b", "4")]


def test_a_full_segment_stays_alone() -> None:
    world = World(CONFIG)
    for n in range(3):
        world.put((f"key{n}", "x" * 700_000))
        world.roll()
    world.clean(rolls=False)
    assert world.log.segment_count == 4


def test_a_tombstone_stays_until_its_horizon() -> None:
    world = World(CONFIG)
    world.put(("a", "1"))
    world.put(("a", None), ("b", "1"))
    world.put(("end", ""))
    world.clean()
    assert world.seen()[0] == (1, "a", None)
    horizon = next(h for h in headers(world.log) if h.attributes & DELETE_HORIZON)
    assert horizon.base_timestamp == T0 + 1_000
    assert [s.timestamp for s in committed(world.log)] == [T0, T0 + 1, T0], (
        "times are what they were"
    )
    world.clock.advance(999)
    world.put(("end", ""))
    world.clean()
    assert (1, "a", None) in world.seen()
    assert horizon.base_timestamp == T0 + 1_000, "set once"
    world.clock.advance(1)
    world.put(("end", ""))
    world.clean()
    assert world.seen() == [(2, "b", "1"), (5, "end", "")]


@pytest.mark.parametrize("codec", list(Compression))
def test_a_batch_is_rewritten_under_its_own_codec(codec: Compression) -> None:
    world = World(CONFIG)
    world.put(("a", "1" * 500), ("b", "2" * 500), ("c", None), codec=codec)
    world.put(("a", "3"))
    world.clean()
    first = headers(world.log)[0]
    assert first.compression == codec
    assert first.record_count == 2
    assert (first.base_offset, first.last_offset) == (0, 2)
    assert world.seen() == [(1, "b", "2" * 500), (2, "c", None), (3, "a", "3")]


def test_an_untouched_batch_is_copied_byte_for_byte() -> None:
    world = World(CONFIG)
    world.put(("a", "1"), ("b", "2"), codec=Compression.GZIP)
    before = read_all(world.log)
    world.clean()
    assert read_all(world.log) == before


def test_the_last_batch_of_an_active_producer_is_kept_empty_and_knows_a_retry() -> None:
    world = World(CONFIG)
    world.put(("a", "1"), producer_id=7, sequence=0)
    retried = world.put(("a", "2"), ("a", "3"), producer_id=7, sequence=1)
    world.put(("a", "4"))
    world.put(("z", ""))
    world.clean()
    assert world.seen() == [(3, "a", "4"), (4, "z", "")]
    empty = headers(world.log)[0]
    assert (empty.record_count, empty.base_offset, empty.last_offset) == (0, 1, 2)
    assert (empty.producer_id, empty.base_sequence) == (7, 1)
    world.log.snapshots.clear()
    for name in world.disk.list(world.log.folder):
        if name.endswith(".snapshot"):
            world.disk.remove(f"{world.log.folder}/{name}")
    world.crash()
    found = world.log.producers.check(retried)
    assert found is not None and (found.base_offset, found.last_offset) == (1, 2)
    del world.log.producers.producers[7]  # it has expired
    world.put(("y", ""))
    world.clean()
    assert all(h.producer_id != 7 for h in headers(world.log))


def test_the_last_batch_of_the_round_is_kept_empty() -> None:
    world = World(CONFIG)
    world.put(("a", "1"))
    world.put(("a", None))
    world.clean()
    world.clock.advance(1_000)
    world.put(("b", None))
    world.clean()
    world.clock.advance(1_000)
    world.put(("b", None))
    world.clean()
    last = headers(world.log)[-1]
    assert last.next_offset == world.log.log_end_offset


def test_aborted_data_goes_and_its_marker_in_time() -> None:
    world = World(CONFIG)
    world.put(("a", "1"))
    world.put(("a", "lost"), producer_id=3, sequence=0, transactional=True)
    world.end(3, commit=False)
    world.put(("b", "1"))
    world.clean()
    assert world.seen() == [(0, "a", "1"), (3, "b", "1")], "an aborted value replaces nothing"
    kept = [h for h in headers(world.log) if h.producer_id == 3]
    assert [h.record_count for h in kept] == [0, 1], "the producer is known still"
    assert len(world.log.aborted_in(0, 10)) == 1
    world.log.producers.producers.clear()
    world.put(("c", "1"))
    world.clean()
    kept = [h for h in headers(world.log) if h.producer_id == 3]
    assert [h.is_control for h in kept] == [True]
    world.put(("c", "2"))
    world.clean()
    marker = next(h for h in headers(world.log) if h.is_control)
    assert marker.attributes & DELETE_HORIZON
    world.clock.advance(1_000)
    world.put(("c", "3"))
    world.clean()
    assert not any(h.is_control for h in headers(world.log))
    assert world.log.aborted_in(0, 10) == []


def test_a_commit_marker_stays_while_its_data_does() -> None:
    world = World(CONFIG)
    world.put(("a", "1"), producer_id=3, sequence=0, transactional=True)
    world.end(3, commit=True)
    world.put(("b", "1"))
    for _ in range(3):
        world.clean()
        world.clock.advance(2_000)
        world.put(("b", "1"))
    assert any(h.is_control for h in headers(world.log))
    assert world.seen()[0] == (0, "a", "1")


def test_nothing_past_an_open_transaction_is_cleaned() -> None:
    world = World(CONFIG)
    world.put(("a", "1"))
    world.put(("a", "2"))
    world.roll()
    world.put(("b", "1"), producer_id=3, sequence=0, transactional=True)
    world.roll()
    world.put(("a", "3"))
    world.put(("a", "4"))
    world.clean()
    assert world.log.first_dirty_offset == 2
    offsets = [h.base_offset for h in headers(world.log)]
    assert offsets == [1, 2, 3, 4]


def test_nothing_younger_than_the_lag_is_cleaned() -> None:
    config = LogConfig(
        cleanup_policy=frozenset({"compact"}), min_compaction_lag_ms=500,
        min_cleanable_dirty_ratio=0.0,
    )  # fmt: skip
    world = World(config)
    world.put(("a", "1"))
    world.put(("a", "2"))
    world.clean()
    assert len(headers(world.log)) == 2
    world.clock.advance(500)
    world.clean()
    assert len(headers(world.log)) == 1


def test_a_log_is_due_by_its_dirty_ratio_or_its_age() -> None:
    config = LogConfig(
        cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.4,
        max_compaction_lag_ms=5_000,
    )  # fmt: skip
    world = World(config)
    world.put(("a", "x" * 1000))
    world.put(("b", "x" * 1000))
    world.clean()
    world.put(("c", "x" * 1000))
    world.roll()
    found = cleanable(world.log, world.log.log_end_offset, world.clock.wall_ms())
    assert round(found.dirty_ratio, 1) == 0.3
    assert not found.is_due
    world.clock.advance(5_001)
    assert cleanable(world.log, world.log.log_end_offset, world.clock.wall_ms()).is_due


def test_the_age_limit_rolls_the_active_segment() -> None:
    config = LogConfig(cleanup_policy=frozenset({"compact"}), max_compaction_lag_ms=5_000)
    world = World(config)
    world.put(("a", "1"))
    world.clock.advance(5_000)
    assert not world.log.maybe_roll(world.clock.wall_ms())
    world.clock.advance(1)
    assert world.log.maybe_roll(world.clock.wall_ms())


def test_a_map_with_too_little_room_takes_several_rounds() -> None:
    world = World(CONFIG)
    for n in range(40):
        world.put((f"k{n % 20}", str(n)), (f"l{n % 20}", str(n)))
    world.roll()
    expected = latest(world.log)
    limits = LIMITS._replace(map_bytes=24 * 8)
    rounds = 0
    while world.log.first_dirty_offset < 80:
        clean(world.disk, world.log, T0, limits=limits)
        rounds += 1
    assert 3 < rounds < 80
    assert latest(world.log) == expected
    assert len(list(committed(world.log))) == 40


def test_the_end_of_a_segment_may_be_missing_after_a_crash() -> None:
    world = World(CONFIG)
    world.put(("a", "1"))
    world.put(("b", "1"))
    world.roll()
    world.put(("b", "2"), ("c", "1" * (1 << 20)))
    world.clean()
    assert world.log.segment_count == 3
    world.crash()
    assert world.seen() == [(0, "a", "1"), (2, "b", "2"), (3, "c", "1" * (1 << 20))]


def test_a_checkpoint_outside_of_the_log_starts_anew() -> None:
    world = World(CONFIG)
    world.put(("a", "1"), ("a", "2"))
    world.log.first_dirty_offset = 99
    world.clean()
    assert world.seen() == [(1, "a", "2")]


def test_the_checkpoint_is_kafkas_and_survives() -> None:
    world = World(CONFIG)
    world.put(("a", "1"), ("a", "2"))
    world.clean()
    world.store.write_checkpoints({})
    assert world.disk.read_whole("data/cleaner-offset-checkpoint") == b"0\n1\ntopic 0 2\n"
    world.crash()
    assert world.log.first_dirty_offset == 2


def test_a_damaged_batch_is_refused_and_nothing_changes() -> None:
    world = World(CONFIG)
    world.put(("a", "1" * 100))
    world.put(("a", "2" * 100))
    world.roll()
    file = world.log.segments[0].file
    file.write_at(120, b"!")
    before = read_all(world.log)
    with pytest.raises(RunnelError) as caught:
        clean(world.disk, world.log, T0)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert "position 0" in str(caught.value)
    assert read_all(world.log) == before


def test_a_reader_keeps_what_it_has() -> None:
    world = World(CONFIG)
    world.put(("a", "1"), ("b", "1"))
    world.put(("a", "2"), ("b", "2"))
    world.roll()
    held = world.log.slice(0, 1 << 20, 4, at_least_one=True)
    candidates = world.log.batches_at_or_after(T0)
    next(candidates)
    assert held is not None
    before = held.read()
    old = world.log.segments[0]
    old.release()
    world.clean(rolls=False)
    assert held.read() == before
    assert next(candidates).batch in before, "found where the file is now"
    assert old.file.path.endswith(".deleted")


def test_times_are_found_in_what_is_left() -> None:
    world = World(CONFIG)
    for n in range(50):
        world.put((f"k{n % 10}", "x" * 50))
        world.clock.advance(10)
    world.clean()
    log = world.log
    for timestamp in range(T0, T0 + 500, 5):
        expected = [s for s in committed(log) if s.timestamp >= timestamp]
        candidate = next(log.batches_at_or_after(timestamp), None)
        found = candidate and candidate.first_at_or_after(timestamp, 0)
        assert (found and found.offset) == (expected[0].offset if expected else None)
    newest = log.latest_batch()
    assert newest is not None and newest.latest().offset == 49


def test_the_new_indexes_are_what_a_rebuild_gives() -> None:
    world = World(CONFIG)
    for n in range(60):
        world.put((f"k{n % 25}", "x" * 40))
        world.clock.advance(10)
    world.clean()
    segment = world.log.segments[0]
    written = segment.index.entries(), segment.time_index.entries()
    assert len(written[0]) > 5
    segment.rebuild_indexes()
    assert (segment.index.entries(), segment.time_index.entries()) == written


def test_keyless_records_of_older_days_go() -> None:
    world = World(CONFIG)
    raw = encode([Record(None, b"v", T0)], base_offset=0, partition_leader_epoch=0)
    world.log.append(BatchHeader.read(raw), raw, T0)
    world.put(("a", "1"))
    world.clean()
    assert list(committed(world.log)) == [Seen(1, b"a", b"1", T0)]
