"""A data folder over its life: create, stop, crash, reopen, delete, and what does not belong."""

import contextlib
import random
from errno import EIO
from pathlib import Path

import pytest

from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.files import OsDisk, write_all
from runnel.storage.log import Log
from runnel.storage.store import LogStore
from runnel.types import TopicPartition
from tests.simulated.disk import SimDisk
from tests.support.batches import make_batch
from tests.support.compacting import clean
from tests.support.stores import (
    FOLDER,
    TOPIC_ID,
    ManualClock,
    flush,
    open_log,
    open_store,
    read_all,
)

CONFIG = LogConfig(segment_bytes=1_000, index_interval_bytes=200)
PARTITION = TopicPartition("topic", 0)


def _fill(log: Log, count: int) -> None:
    for _ in range(count):
        header, raw = make_batch(log.log_end_offset, 2, value=bytes(100))
        log.append(header, raw, 0)


def _stopped(disk: SimDisk, clock: ManualClock, count: int = 20) -> bytes:
    """A folder with one log, cleanly stopped by the broker of epoch 5."""
    store, log = open_log(disk, clock, CONFIG)
    _fill(log, count)
    content = read_all(log)
    store.close_clean(5, {PARTITION: log.log_end_offset - 2})
    disk.kill()
    return content


def test_a_clean_stop_opens_without_a_scan() -> None:
    disk, clock = SimDisk(0), ManualClock()
    content = _stopped(disk, clock)
    syncs = disk.counts["sync"]
    store, opened = open_store(disk, clock, CONFIG)
    log = store.get("topic", 0)
    assert log is not None
    assert (opened.clean, opened.broker_epoch, opened.same_boot) == (True, 5, True)
    assert opened.notices == []
    assert (log.topic_id, log.log_end_offset, log.flushed_offset) == (TOPIC_ID, 40, 40)
    assert log.opened_high_watermark == 38
    assert disk.counts["sync"] <= syncs + 2  # the boot file, no log
    assert read_all(log) == content


def test_the_marker_is_gone_before_anything_is_written() -> None:
    disk, clock = SimDisk(0), ManualClock()
    _stopped(disk, clock)
    open_store(disk, clock, CONFIG)
    assert not disk.exists(f"{FOLDER}/.kafka_cleanshutdown")
    disk.lose_power()
    assert not open_store(disk, clock, CONFIG)[1].clean


def test_the_marker_may_be_kept_until_the_new_epoch_is_registered() -> None:
    disk, clock = SimDisk(0), ManualClock()
    _stopped(disk, clock)
    store = LogStore(disk, [FOLDER], clock, random.Random(1), CONFIG)
    assert store.open(keep_marker=True).clean
    assert disk.exists(f"{FOLDER}/.kafka_cleanshutdown")
    store.remove_clean_markers()
    assert not disk.exists(f"{FOLDER}/.kafka_cleanshutdown")


def test_a_crash_is_told_from_a_reboot_and_from_a_failing_disk() -> None:
    disk, clock = SimDisk(0), ManualClock()
    _, log = open_log(disk, clock, CONFIG)
    disk.kill()
    opened = open_store(disk, clock, CONFIG)[1]
    assert (opened.clean, opened.broker_epoch, opened.same_boot) == (False, -1, True)
    assert not open_store(disk, clock, CONFIG, boot_id="boot-2")[1].same_boot
    _, log = open_log(disk, clock, CONFIG)
    disk.fail("write", EIO, path=".log")
    with pytest.raises(RunnelError):
        _fill(log, 1)
    disk.kill()
    assert not open_store(disk, clock, CONFIG)[1].same_boot


def test_only_segments_from_the_recovery_point_on_are_scanned() -> None:
    disk, clock = SimDisk(0), ManualClock()
    store, log = open_log(disk, clock, CONFIG)
    _fill(log, 20)
    flush(log)
    store.write_checkpoints({})
    _fill(log, 1)
    first = disk.open(log.segments[0].path(".log"))
    write_all(first, 100, b"\xff")  # damage that only a scan of this segment would find
    disk.kill()
    _, again = open_log(disk, clock, CONFIG)
    assert again.log_end_offset == 42
    assert again.segments[0].size == log.segments[0].size


def test_damage_past_the_recovery_point_drops_later_segments() -> None:
    disk, clock = SimDisk(0), ManualClock()
    _, log = open_log(disk, clock, CONFIG)
    _fill(log, 20)
    assert log.segment_count > 3
    write_all(disk.open(log.segments[1].path(".log")), 100, b"\xff")
    disk.kill()
    store, opened = open_store(disk, clock, CONFIG)
    again = store.get("topic", 0)
    assert again is not None
    assert again.log_end_offset == log.segments[1].base_offset
    assert any("cut" in notice.text for notice in opened.notices)
    assert any("removed" in notice.text for notice in opened.notices)
    disk.kill()
    assert open_log(disk, clock, CONFIG)[1].log_end_offset == again.log_end_offset


def test_a_segment_lost_before_a_later_one_is_a_hole_that_is_cut() -> None:
    disk, clock = SimDisk(0), ManualClock()
    _, log = open_log(disk, clock, CONFIG)
    _fill(log, 20)
    segment = log.segments[1]
    batch = next(h for _, h in segment.headers())
    disk.open(segment.path(".log")).truncate(batch.size)  # ends at a batch, so nothing is torn
    disk.kill()
    _, again = open_log(disk, clock, CONFIG)
    assert again.log_end_offset == batch.next_offset


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "garbage", "cut"])
def test_a_damaged_index_of_a_closed_segment_is_rebuilt(suffix: str, damage: str) -> None:
    disk, clock = SimDisk(0), ManualClock()
    content = _stopped(disk, clock)
    path = f"{FOLDER}/topic-0/{0:020d}{suffix}"
    whole = disk.read_whole(path)
    disk.remove(path)
    if damage != "missing":
        write_all(disk.open(path, create=True), 0, whole[:-1] if damage == "cut" else b"\xa5" * 24)
    _, log = open_log(disk, clock, CONFIG)
    assert read_all(log, max_bytes=300) == content
    assert next(log.batches_at_or_after(1_001)).batch == content[: log.segments[0].size // 3]
    assert disk.read_whole(path) == whole


def test_leftovers_of_a_crash_are_cleared_away() -> None:
    """R32: .deleted and .cleaned go, a .swap log replaces what it covers, orphans go."""
    disk, clock = SimDisk(0), ManualClock()
    content = _stopped(disk, clock)
    folder = f"{FOLDER}/topic-0"
    store, log = open_log(disk, clock, CONFIG)
    bases = [segment.base_offset for segment in log.segments]
    first, second = (disk.read_whole(segment.path(".log")) for segment in log.segments[:2])
    store.close_clean(6, {})
    for name, data in {
        f"{bases[0]:020d}.log.swap": first + second,
        f"{bases[0]:020d}.index.swap": b"whatever",
        f"{bases[-1]:020d}.log.cleaned": b"half",
        f"{999:020d}.log.deleted": b"gone",
        f"{777:020d}.index": b"no log",
        "leader-epoch-checkpoint.tmp": b"0",
        "notes.txt": b"mine",
    }.items():
        write_all(disk.open(f"{folder}/{name}", create=True), 0, data)
    disk.kill()
    store, opened = open_store(disk, clock, CONFIG)
    again = store.get("topic", 0)
    assert again is not None
    assert [segment.base_offset for segment in again.segments] == [bases[0], *bases[2:]]
    assert read_all(again) == content
    left = set(disk.list(folder))
    assert "notes.txt" in left
    assert not [name for name in left if name.endswith((".swap", ".cleaned", ".deleted", ".tmp"))]
    assert f"{777:020d}.index" not in left
    assert any(notice.path.endswith("notes.txt") for notice in opened.notices)


def test_strays_are_told_of_and_left_alone() -> None:
    disk, clock = SimDisk(0), ManualClock()
    _stopped(disk, clock)
    disk.make_dir(f"{FOLDER}/lost+found")
    write_all(disk.open(f"{FOLDER}/file-3", create=True), 0, b"x")
    store, opened = open_store(disk, clock, CONFIG)
    assert len(store) == 1
    assert sorted(notice.path for notice in opened.notices) == [
        f"{FOLDER}/file-3",
        f"{FOLDER}/lost+found",
    ]


def test_a_log_of_a_later_format_is_kept_out_and_untouched() -> None:
    disk, clock = SimDisk(0), ManualClock()
    _stopped(disk, clock, 1)
    path = f"{FOLDER}/topic-0/{0:020d}.log"
    write_all(disk.open(path), 16, b"\x03")
    before = disk.read_whole(path)
    store, _ = open_store(disk, clock, CONFIG)
    assert store.get("topic", 0) is None
    assert "format 3" in store.failed[PARTITION]
    assert disk.read_whole(path) == before
    with pytest.raises(RunnelError) as caught:
        store.create("topic", TOPIC_ID, 0, CONFIG)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_another_clusters_folder_is_refused() -> None:
    disk, clock = SimDisk(0), ManualClock()
    open_store(disk, clock, CONFIG)
    for cluster_id, node_id in (("other", 1), ("cluster", 2)):
        store = LogStore(
            disk, [FOLDER], clock, random.Random(1), CONFIG, cluster_id=cluster_id, node_id=node_id
        )
        with pytest.raises(RunnelError, match="belongs to"):
            store.open()


def test_a_deleted_log_is_gone_at_once_and_its_files_later() -> None:
    disk, clock = SimDisk(0), ManualClock()
    store, log = open_log(disk, clock, CONFIG)
    _fill(log, 3)
    flush(log)
    store.write_checkpoints({PARTITION: 6})
    store.delete("topic", 0)
    assert store.get("topic", 0) is None
    with pytest.raises(RunnelError, match="deleted"):
        _fill(log, 1)
    (folder,) = [name for name in disk.list(FOLDER) if name.endswith("-delete")]
    assert store.purge() == []
    clock.advance(CONFIG.file_delete_delay_ms)
    (purge,) = store.purge()
    purge.run()
    assert not disk.exists(f"{FOLDER}/{folder}")


def test_a_namesake_does_not_inherit_the_offsets_of_the_deleted_log() -> None:
    """Else its unsynced segments would be taken for flushed ones, or its start for a later one."""
    disk, clock = SimDisk(0), ManualClock()
    store, log = open_log(disk, clock, CONFIG)
    _fill(log, 20)
    log.delete_records(31)
    flush(log)
    store.write_checkpoints({PARTITION: 40})
    store.delete("topic", 0)
    log = store.create("topic", bytes(16), 0, CONFIG)
    _fill(log, 6)
    content = read_all(log)
    disk.kill()
    _, again = open_log(disk, clock, CONFIG)
    assert (again.topic_id, again.log_start_offset, again.opened_high_watermark) == (
        bytes(16),
        0,
        0,
    )
    assert read_all(again) == content


def test_a_log_that_ends_before_its_start_is_emptied() -> None:
    disk, clock = SimDisk(0), ManualClock()
    store, log = open_log(disk, clock, CONFIG)
    _fill(log, 5)
    log.delete_records(9)
    store.write_checkpoints({PARTITION: 10})
    disk.open(log.segments[-1].path(".log")).truncate(0)
    disk.kill()
    _, again = open_log(disk, clock, CONFIG)
    assert (again.log_start_offset, again.log_end_offset) == (9, 9)


def test_checkpoints_overtaken_by_a_truncation_are_written_over() -> None:
    disk, clock = SimDisk(0), ManualClock()
    store, log = open_log(disk, clock, CONFIG)
    _fill(log, 5)
    flush(log)
    write = store.begin_checkpoints({PARTITION: 10})
    assert write is not None
    assert store.begin_checkpoints({}) is None
    log.truncate_to(4)
    write.run()
    store.end_checkpoints(write)
    path = f"{FOLDER}/recovery-point-offset-checkpoint"
    assert disk.read_whole(path) == b"0\n1\ntopic 0 4\n"
    disk.fail("rename", EIO)
    with pytest.raises(OSError, match="injected"):
        store.write_checkpoints({PARTITION: 4})
    store.write_checkpoints({PARTITION: 4})
    assert disk.read_whole(f"{FOLDER}/replication-offset-checkpoint") == b"0\n1\ntopic 0 4\n"


def test_a_folder_with_a_broken_log_is_not_marked_clean() -> None:
    disk, clock = SimDisk(0), ManualClock()
    store, log = open_log(disk, clock, CONFIG)
    disk.fail("write", EIO, path=".log")
    with pytest.raises(RunnelError):
        _fill(log, 1)
    store.close_clean(7, {})
    assert not disk.exists(f"{FOLDER}/.kafka_cleanshutdown")


def test_logs_in_memory_leave_nothing_on_the_disk() -> None:
    disk, clock = SimDisk(0), ManualClock()
    store, _ = open_store(disk, clock, CONFIG)
    config = LogConfig(storage="memory", segment_bytes=1_000)
    log = store.create("topic", TOPIC_ID, 0, config)
    _fill(log, 20)
    assert log.segment_count > 2
    flush(log)
    content = read_all(log)
    assert len(content) == log.size_bytes
    found = log.slice(0, 500, 40, at_least_one=True)
    assert found is not None
    assert found.file.fileno() >= 0
    log.truncate_to(21)
    assert read_all(log) == content[: len(content) // 2]
    store.close_clean(1, {})
    assert "topic-0" not in disk.list(FOLDER)
    assert store.begin_checkpoints({}) is None
    assert open_store(disk, clock, CONFIG)[0].get("topic", 0) is None


def test_many_logs_share_few_open_files() -> None:
    disk, clock = SimDisk(0), ManualClock()
    store = LogStore(disk, [FOLDER, "other"], clock, random.Random(1), CONFIG, max_open_files=4)
    store.open()
    logs = [store.create("topic", TOPIC_ID, index, CONFIG) for index in range(12)]
    for _ in range(3):
        for log in logs:
            _fill(log, 4)
    assert all(len(read_all(log)) == log.size_bytes for log in logs)
    held = [s for log in logs for s in log.segments if s._file is not None]
    assert len(held) <= 4
    in_other = [name for name in disk.list("other") if name.startswith("topic-")]
    assert len(in_other) == 6  # the folder with fewer logs gets the next


@pytest.mark.parametrize("way", ["retention", "truncation", "compaction", "deletion"])
def test_what_is_deleted_frees_its_space(way: str, tmp_path: Path) -> None:
    """A file that is removed keeps its bytes on the disk for as long as somebody has it open."""
    disk, clock = OsDisk(), ManualClock()
    store = LogStore(disk, [str(tmp_path)], clock, random.Random(1), CONFIG)
    store.open()
    log = store.create("topic", TOPIC_ID, 0, CONFIG)
    _fill(log, 20)
    flush(log)
    before = list(log.segments)
    assert len(before) > 3 and len(read_all(log)) == log.size_bytes, "all of them are open"
    if way == "retention":
        log.delete_records(log.segments[-1].base_offset)
        log.retain(clock.wall_ms(), log.log_end_offset)
    elif way == "truncation":
        log.truncate_to(log.segments[1].base_offset)
    elif way == "compaction":
        clean(disk, log, clock.wall_ms())
    else:
        store.delete("topic", 0)
    assert way == "deletion" or not set(before) <= set(log.segments)
    clock.advance(CONFIG.file_delete_delay_ms)
    for purge in store.purge():
        purge.run()
    assert removed_but_open(tmp_path) == []


def removed_but_open(folder: Path) -> list[str]:
    """What this process has open of the folder although its name is gone."""
    found: list[str] = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # of the listing itself
            found.append(str(link.readlink()))
    return [path for path in found if path.startswith(str(folder)) and path.endswith("(deleted)")]
