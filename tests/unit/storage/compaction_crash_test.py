"""S31: a compaction with an open transaction, a tombstone and markers is cut short anywhere.

Method: a log of several segments is compacted on a disk that ends the process, or loses power,
before each of its operations in turn. Opened again, twice, the log reads by key as it did before,
its producers and its aborted transactions are known, and it can be compacted to its end.
"""

import pytest

from runnel.config.topic import LogConfig
from runnel.storage.log import Log
from runnel.storage.producers import ProducerStates
from runnel.types import TopicPartition
from tests.simulated.disk import Operation, SimDisk
from tests.support.compacting import clean, committed, headers, latest
from tests.support.stores import flush
from tests.support.writing import World

CONFIG = LogConfig(
    segment_bytes=900, index_interval_bytes=100, cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=1_000, file_delete_delay_ms=0,
)  # fmt: skip
OPERATIONS_MAX = 400


class _Crash(BaseException):
    """Passes through everything that catches errors, as a crash does."""


class _CrashingDisk(SimDisk):
    left = -1

    def count(self, operation: Operation, path: str) -> None:
        if self.left == 0:
            raise _Crash
        self.left -= 1
        super().count(operation, path)


def _filled(disk: SimDisk) -> World:
    """Cleaned once, so that there is a clean part, with horizons set, and a dirty one."""
    world = World(CONFIG, disk)
    for n in range(12):
        world.put((f"k{n % 4}", str(n)), (f"l{n % 3}", str(n)))
    world.put(("k1", None), ("gone", None))
    world.put(("k2", "lost"), producer_id=3, sequence=0, transactional=True)
    world.put(("k0", "kept"), producer_id=4, sequence=0, transactional=True)
    world.end(3, commit=False)
    world.end(4, commit=True)
    world.put(("k3", "x"), producer_id=5, sequence=0)
    world.put(("k3", "y"))
    world.clean()
    world.clock.advance(1_000)
    for n in range(12):
        world.put((f"k{n % 3}", "new" + str(n)), (f"m{n}", str(n)))
    world.put(("l1", None))
    world.put(("l2", "lost"), producer_id=3, sequence=1, transactional=True)
    world.end(3, commit=False)
    world.roll()
    world.put(("open", "1"), producer_id=6, sequence=0, transactional=True)
    world.roll()
    world.put(("after", "1"), ("k0", "after"))
    flush(world.log)
    world.store.write_checkpoints({TopicPartition("topic", 0): world.log.log_end_offset})
    return world


def _producers(states: ProducerStates) -> dict[int, tuple[int, int, int]]:
    return {
        producer_id: (producer.epoch, producer.last_sequence, producer.txn_first_offset)
        for producer_id, producer in states.producers.items()
    }


def _is_right(log: Log, expected: dict[bytes, tuple[int, bytes, int]]) -> None:
    assert log.log_end_offset == 62
    assert latest(log) == expected
    assert not [seen for seen in committed(log) if seen.value == b"lost"]
    known = _producers(log.producers)
    assert known[5] == (0, 0, -1)
    assert known[3] == (0, 1, -1)
    assert known[6][2] == log.first_unstable_offset == 59


@pytest.mark.parametrize("power", [False, True])
def test_a_crash_before_every_operation_of_a_compaction(power: bool) -> None:
    finished = where = 0
    while not finished:
        for seed in range(3 if power else 1):
            disk = _CrashingDisk(seed)
            world = _filled(disk)
            expected = latest(world.log)
            _is_right(world.log, expected)
            segments_before = world.log.segment_count
            disk.left = where
            try:
                clean(disk, world.log, world.clock.wall_ms())
                world.store.write_checkpoints({})
                for purge in world.store.purge():
                    purge.run()
                finished += 1
            except _Crash:
                pass
            disk.left = -1
            if power:
                disk.lose_power()
            else:
                disk.kill()
            for _ in range(2):
                world.open()
                assert world.store.failed == {}
                _is_right(world.log, expected)
                strays = [
                    name
                    for name in disk.list(world.log.folder)
                    if name.endswith((".cleaned", ".swap", ".deleted"))
                ]
                assert strays == [], where
                disk.kill()
            world.open()
            before = len(headers(world.log))
            clean(disk, world.log, world.clock.wall_ms())
            _is_right(world.log, expected)
            assert len(headers(world.log)) <= before
            assert world.log.segment_count < segments_before
        where += 1
        assert where < OPERATIONS_MAX
    assert where > 60, "it was cut short at many places"


def test_an_error_of_the_disk_while_rewriting_changes_nothing() -> None:
    disk = SimDisk(0)
    world = _filled(disk)
    expected, segments = latest(world.log), world.log.segment_count
    disk.fail("write", 28, path=".cleaned", after=1)
    with pytest.raises(OSError, match="injected"):
        clean(disk, world.log, world.clock.wall_ms())
    assert world.log.offline is None
    assert latest(world.log) == expected
    assert world.log.segment_count <= segments
    clean(disk, world.log, world.clock.wall_ms())
    _is_right(world.log, expected)


def test_an_error_of_a_rename_takes_the_log_offline_and_a_start_mends_it() -> None:
    for after in range(14):
        disk = SimDisk(0)
        world = _filled(disk)
        expected = latest(world.log)
        disk.fail("rename", 5, path="topic-0/", after=after)
        with pytest.raises(Exception, match="injected"):
            clean(disk, world.log, world.clock.wall_ms())
        assert world.log.offline is not None
        disk.heal()
        world.crash()
        _is_right(world.log, expected)
