"""A log on its way to another data folder: a crash at any step loses nothing and leaves one log.

Method: the move is cut short before each of its disk operations in turn, by a kill or a power loss;
then the folders are opened anew, twice, and what is read is what was flushed before the move began.
"""

import random

import pytest

from runnel.config.topic import LogConfig
from runnel.storage.log import Log
from runnel.storage.store import LogStore
from runnel.types import TopicPartition
from tests.simulated.disk import Operation, SimDisk
from tests.support.batches import make_batch
from tests.support.stores import TOPIC_ID, ManualClock, flush, read_all

CONFIG = LogConfig(segment_bytes=1_000, index_interval_bytes=200)
PARTITION = TopicPartition("topic", 0)
DIRS = ("data/a", "data/b")
OPERATIONS_MAX = 400


class _Crash(BaseException):
    """Passes through everything that catches errors, as a crash does."""


class _CrashingDisk(SimDisk):
    """Ends the process before the operation of a given number."""

    left = -1

    def count(self, operation: Operation, path: str) -> None:
        if self.left == 0:
            raise _Crash
        self.left -= 1
        super().count(operation, path)


def _open(disk: SimDisk, clock: ManualClock) -> LogStore:
    store = LogStore(
        disk, list(DIRS), clock, random.Random(7), CONFIG, cluster_id="cluster", node_id=1,
        boot_id="boot",
    )  # fmt: skip
    store.open(config_of=lambda _topic: CONFIG)
    return store


def _filled(store: LogStore, *, start: int = 0) -> Log:
    log = store.create(*PARTITION[:1], TOPIC_ID, 0, CONFIG)
    for sequence in range(0, 24, 2):
        header, raw = make_batch(
            log.log_end_offset, 2, value=bytes(100), epoch=3, producer_id=5, producer_epoch=0,
            sequence=sequence,
        )  # fmt: skip
        log.append(header, raw, 0)
    log.delete_records(start)
    flush(log)
    store.write_checkpoints({PARTITION: log.log_end_offset})
    return log


def _move(store: LogStore, log: Log, directory: str) -> Log:
    future = store.begin_move(log, directory)
    while future.log_end_offset < log.log_end_offset:
        found = log.slice(future.log_end_offset, 500, log.log_end_offset, at_least_one=True)
        assert found is not None
        future.take(found.read())
    future.flush()
    return store.end_move(log, future)


def _is_whole(log: Log | None, content: bytes, start: int) -> bool:
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset, log.topic_id) == (start, 24, TOPIC_ID)
    assert log.producers.producers[5].last_sequence == 23
    assert log.epochs.latest_epoch == 3
    return read_all(log) == content


@pytest.mark.parametrize("start", [0, 9])
def test_a_move_to_its_end(start: int) -> None:
    disk, clock = SimDisk(0), ManualClock()
    store = _open(disk, clock)
    old = _filled(store, start=start)
    content = read_all(old)
    log = _move(store, old, "data/b")
    assert log.folder == "data/b/topic-0"
    assert store.get(*PARTITION) is log
    assert _is_whole(log, content, start)
    assert old.offline is not None
    assert disk.list("data/a")[-1].endswith("-delete")
    store.close_clean(5, {})
    disk.kill()
    again = _open(disk, clock)
    assert _is_whole(again.get(*PARTITION), content, start)
    assert again.unfinished_moves == {}


@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("start", [0, 9])
def test_a_crash_before_every_operation_of_a_move(power: bool, start: int) -> None:
    finished = where = 0
    while not finished:
        for seed in range(2 if power else 1):
            disk, clock = _CrashingDisk(seed), ManualClock()
            store = _open(disk, clock)
            old = _filled(store, start=start)
            content = read_all(old)
            disk.left = where
            try:
                _move(store, old, "data/b")
                finished += 1
            except _Crash:
                pass
            disk.left = -1
            if power:
                disk.lose_power()
            else:
                disk.kill()
            for _ in range(2):
                store = _open(disk, clock)
                assert _is_whole(store.get(*PARTITION), content, start), where
                assert store.failed == {}
                folders = [path for path in DIRS if "topic-0" in disk.list(path)]
                assert len(folders) == 1, (where, folders)
                disk.kill()
        where += 1
        assert where < OPERATIONS_MAX
    assert where > 40, "the move was cut short at many places"


def test_a_copy_that_was_not_finished_is_told_of() -> None:
    disk, clock = SimDisk(0), ManualClock()
    store = _open(disk, clock)
    log = _filled(store)
    store.begin_move(log, "data/b")
    disk.kill()
    store = _open(disk, clock)
    assert store.unfinished_moves == {PARTITION: "data/b"}
    assert not [name for name in disk.list("data/b") if name.endswith("-future")]


def test_a_folder_that_cannot_be_used_takes_only_its_own_logs_offline() -> None:
    disk, clock = SimDisk(0), ManualClock()
    store = _open(disk, clock)
    _filled(store)
    other = store.create("other", TOPIC_ID, 0, CONFIG)
    assert other.folder == "data/b/other-0", "the folder with the fewest logs"
    store.close_clean(5, {})
    disk.kill()
    disk.fail("open", 5, path="data/b/meta.properties")
    store = _open(disk, clock)
    assert list(store.offline_dirs) == ["data/b"]
    assert store.get("topic", 0) is not None
    assert store.get("other", 0) is None
    assert store.create("third", TOPIC_ID, 0, CONFIG).folder == "data/a/third-0"
    disk.kill()
    disk.fail("open", 5, path="data/a/meta.properties")
    disk.fail("open", 5, path="data/b/meta.properties")
    with pytest.raises(OSError, match="injected"):
        _open(disk, clock)
