"""A flush that meets a want of descriptors, or whose log is deleted while it runs."""

from collections.abc import Callable
from errno import EIO, EMFILE, ENFILE

import pytest

from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.flush import Flush
from runnel.storage.log import Log
from tests.simulated.disk import SimDisk, SimFile
from tests.support.batches import make_batch, make_marker
from tests.support.stores import (
    FOLDER,
    TOPIC_ID,
    ManualClock,
    flush,
    open_log,
    open_store,
    read_all,
)

CONFIG = LogConfig(segment_bytes=2_000, index_interval_bytes=100)


def _fill(log: Log, count: int, epoch: int = 0, size: int = 100) -> None:
    for _ in range(count):
        log.append(*make_batch(log.log_end_offset, value=bytes(size), epoch=epoch), 0)


class StoppingDisk(SimDisk):
    """Stops a flush just before or just after one of the opens that it does."""

    def __init__(self, stop_at: int, *, before: bool) -> None:
        super().__init__(0)
        self.countdown = -1
        self.stop_at = stop_at
        self.before = before
        self.stops_at_rename = False
        self.meanwhile: Callable[[], None] = lambda: None

    def open(self, path: str, *, create: bool = False) -> SimFile:
        if self.countdown == 0 and self.before:
            self._stop()
        file = super().open(path, create=create)
        if self.countdown == 0:
            self._stop()
        self.countdown -= 1
        return file

    def rename(self, source: str, target: str) -> None:
        if self.stops_at_rename:
            self.stops_at_rename = False
            self.meanwhile()
        super().rename(source, target)

    def _stop(self) -> None:
        self.countdown = -1
        self.meanwhile()


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("stop_at", range(8))
def test_a_flush_never_writes_into_the_folder_of_a_namesake(stop_at: int, before: bool) -> None:
    disk, clock = StoppingDisk(stop_at, before=before), ManualClock()
    store, old = open_log(disk, clock, CONFIG)
    old.epochs.assign(7, 0)
    _fill(old, 12, epoch=7)
    made: list[Log] = []
    written: dict[str, bytes] = {}

    def files() -> list[str]:
        return [f"{FOLDER}/topic-0/{name}" for name in disk.list(f"{FOLDER}/topic-0")]

    def replace() -> None:
        store.delete("topic", 0)
        made.append(store.create("topic", bytes(16), 0, CONFIG))
        made[0].epochs.assign(0, 0)
        _fill(made[0], 14, size=70)  # of a size at which the old entries would look right
        made[0].flush()
        written.update({name: disk.read_whole(name) for name in files()})

    disk.meanwhile = replace
    work = old.begin_flush()
    assert work is not None
    disk.countdown = stop_at
    work.run()
    old.end_flush(work)
    if not made:
        replace()
    assert work.error is None
    for name in files():  # an empty one may have come into being: the next start removes it
        assert disk.read_whole(name) == written.get(name, b"")
    (new,) = made
    content, epochs = read_all(new), new.epochs.entries
    entries = [segment.index.entries() for segment in new.segments]
    store.close_clean(1, {})
    store, opened = open_store(disk, clock, CONFIG)
    again = store.get("topic", 0)
    assert again is not None
    assert (opened.clean, again.epochs.entries) == (True, epochs)
    assert read_all(again) == content
    assert [segment.index.entries() for segment in again.segments] == entries


def test_a_flush_never_puts_a_half_written_file_of_a_namesake_in_place() -> None:
    disk, clock = StoppingDisk(-1, before=True), ManualClock()
    store, old = open_log(disk, clock, CONFIG)
    _fill(old, 1, epoch=7)
    path = f"{FOLDER}/topic-0/leader-epoch-checkpoint"

    def replace() -> None:
        store.delete("topic", 0)
        new = store.create("topic", bytes(16), 0, CONFIG)
        _fill(new, 1, epoch=8)
        work = new.begin_flush(sync_active=True)
        assert work is not None
        disk.open(work._temporary, create=True)  # how far the other thread has come

    disk.meanwhile = replace
    work = old.begin_flush(sync_active=True)
    assert work is not None
    disk.stops_at_rename = True
    work.run()
    assert not disk.exists(path)


def test_aborted_transactions_are_known_while_their_index_is_being_written() -> None:
    disk, clock = SimDisk(0), ManualClock()
    _, log = open_log(disk, clock, CONFIG)
    batch = make_batch(0, producer_id=5, producer_epoch=0, sequence=0, transactional=True)
    log.append(*batch, 0)
    log.append(*make_marker(1, commit=False, producer_id=5, producer_epoch=0), 0)
    _fill(log, 30)
    work = log.begin_flush()
    assert work is not None
    log.segments[0].release()
    assert len(log.aborted_in(0, 32)) == 1
    work.run()
    log.end_flush(work)
    log.segments[0].release()
    assert len(log.aborted_in(0, 32)) == 1


@pytest.mark.parametrize("number", [EMFILE, ENFILE])
def test_a_want_of_descriptors_is_met_by_letting_go_of_some(number: int) -> None:
    disk, clock = SimDisk(0), ManualClock()
    store, log = open_log(disk, clock, CONFIG)
    other = store.create("other", TOPIC_ID, 0, CONFIG)
    _fill(other, 1)
    for segment in log.segments:
        segment.release()
    disk.fail("open", number, path="topic-0")
    _fill(log, 1)
    assert log.log_end_offset == 1
    assert log.offline is None


def _without_descriptors(disk: SimDisk, path: str) -> None:
    for _ in range(20):
        disk.fail("open", EMFILE, path=path)


def test_a_want_of_descriptors_fails_the_request_and_not_the_log() -> None:
    disk, clock = SimDisk(0), ManualClock()
    _, log = open_log(disk, clock, CONFIG)
    _fill(log, 30)
    for producer in (5, 6):
        batch = make_batch(
            log.log_end_offset, producer_id=producer, producer_epoch=0, sequence=0,
            transactional=True,
        )  # fmt: skip
        log.append(*batch, 0)
        end = log.log_end_offset
        log.append(*make_marker(end, commit=False, producer_id=producer, producer_epoch=0), 0)
        _fill(log, 20)
    flush(log)
    content, end = read_all(log), log.log_end_offset
    actions: tuple[Callable[[], object], ...] = (
        lambda: log.slice(0, 1_000, end, at_least_one=True),
        lambda: log.aborted_in(0, end),
        lambda: next(log.batches_at_or_after(0)),
        lambda: log.roll(0, end),
        lambda: _fill(log, 40),
        log.flush,
    )
    for action in actions:
        for segment in log.segments:
            segment.release()
        if action == log.flush:
            _fill(log, 1)
            log.segments[-1].release()
        _without_descriptors(disk, "topic-0")
        with pytest.raises(RunnelError) as caught:
            action()
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        disk.heal()
        assert log.offline is None
    assert len(log.aborted_in(0, end)) == 2
    assert log.slice(0, 1_000, end, at_least_one=True) is not None
    log.roll(0, log.log_end_offset)
    _fill(log, 40)
    log.flush()
    whole = read_all(log)
    assert whole.startswith(content)
    disk.kill()
    _, again = open_log(disk, clock, CONFIG)
    assert read_all(again) == whole


@pytest.mark.parametrize("path", [".index", ".timeindex", "leader-epoch", ".snapshot"])
def test_a_flush_without_descriptors_is_done_again(path: str) -> None:
    disk, clock = SimDisk(0), ManualClock()
    _, log = open_log(disk, clock, CONFIG)
    _fill(log, 30, epoch=3)
    work = log.begin_flush(sync_active=True)
    assert isinstance(work, Flush)
    disk.fail("open", EMFILE, path=path)
    work.run()
    log.end_flush(work)
    assert (log.offline, work.error, log.flushed_offset, log.is_dirty) == (None, None, 0, True)
    _fill(log, 3, epoch=4)
    for segment in log.segments:
        segment.release()
    flush(log)
    assert (log.flushed_offset, log.is_dirty) == (33, False)
    content = read_all(log)
    log.close()
    disk.lose_power()
    _, again = open_log(disk, clock, CONFIG)
    assert read_all(again) == content
    assert again.epochs.entries == log.epochs.entries
    for segment, same in zip(again.segments, log.segments, strict=True):
        assert segment.index.entries() == same.index.entries()
        assert segment.time_index.entries() == same.time_index.entries()


@pytest.mark.parametrize("number", [EMFILE, EIO])
def test_beginning_a_flush_raises_nothing(number: int) -> None:
    disk, clock = SimDisk(0), ManualClock()
    _, log = open_log(disk, clock, CONFIG)
    _fill(log, 1)
    log.segments[-1].release()
    for _ in range(2):
        disk.fail("open", number)
    assert log.begin_flush() is None
    disk.heal()
    assert (log.offline is None) == (number == EMFILE)
    assert log.is_dirty
    if number == EMFILE:
        flush(log)
        assert log.flushed_offset == 1


def test_a_stop_without_descriptors_is_not_a_clean_one() -> None:
    disk, clock = SimDisk(0), ManualClock()
    store, log = open_log(disk, clock, CONFIG)
    _fill(log, 1)
    _without_descriptors(disk, ".timeindex")
    store.close_clean(1, {})
    assert not disk.exists(f"{FOLDER}/.kafka_cleanshutdown")
    disk.heal()
    _, again = open_log(disk, clock, CONFIG)
    assert again.log_end_offset == 1
