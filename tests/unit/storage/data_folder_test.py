"""Which entries of a data folder are logs, what becomes of the others, and of logs kept out."""

import pytest

from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.checkpoints import HIGH_WATERMARKS, LOG_STARTS, META_PROPERTIES, RECOVERY_POINTS
from runnel.storage.files import write_all
from runnel.storage.store import LogStore, read_identity
from runnel.types import TopicPartition
from tests.simulated.disk import SimDisk
from tests.support.batches import make_batch
from tests.support.stores import FOLDER, TOPIC_ID, ManualClock, flush, open_store, read_all

CONFIG = LogConfig()
MARKER = f"{FOLDER}/.kafka_cleanshutdown"


def _write(disk: SimDisk, path: str, data: bytes) -> None:
    file = disk.open(f"{FOLDER}/{path}", create=True)
    file.truncate(0)
    write_all(file, 0, data)


def _store_with(disk: SimDisk, *topics: str) -> LogStore:
    store, _ = open_store(disk, ManualClock(), CONFIG)
    for topic in topics:
        log = store.create(topic, TOPIC_ID, 0, CONFIG)
        for _ in range(4):
            log.append(*make_batch(log.log_end_offset), 0)
        log.delete_records(2)
        flush(log)
    return store


@pytest.mark.parametrize(
    "topic", [".hidden", "metadata.db", "metadata.db-wal", "x-delete", "a.tmp", "meta.properties"]
)
def test_every_legal_name_of_a_topic_is_found_again(topic: str) -> None:
    disk = SimDisk(0)
    store = _store_with(disk, topic)
    store.close_clean(1, {})
    for name in ("metadata.db", "metadata.db-wal", ".lock", f"{RECOVERY_POINTS}.writing.tmp"):
        _write(disk, name, b"x")
    again, opened = open_store(disk, ManualClock(), CONFIG)
    log = again.get(topic, 0)
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (2, 4)
    assert opened.notices == []


def test_a_folder_that_holds_no_log_is_left_alone() -> None:
    disk = SimDisk(0)
    _store_with(disk, "topic").close_clean(1, {})
    disk.make_dir(f"{FOLDER}/photos-2024")
    _write(disk, "photos-2024/half.tmp", b"mine")
    disk.make_dir(f"{FOLDER}/many-1000001")
    disk.make_dir(f"{FOLDER}/topic-00")
    disk.make_dir(f"{FOLDER}/my-delete")
    for name in ("many-1000001", "topic-00"):
        _write(disk, f"{name}/{0:020d}.log", b"")
    store, opened = open_store(disk, ManualClock(), CONFIG)
    assert [log.partition for log in store.logs] == [("topic", 0)]
    assert [(notice.path.split("/")[1], notice.text) for notice in opened.notices] == [
        ("many-1000001", "a partition past 1000000: left alone"),
        ("my-delete", "not a partition: left alone"),
        ("topic-00", "not a partition: left alone"),
        ("photos-2024", "holds no log: left alone"),
    ]
    assert store.purge() == []
    assert disk.list(f"{FOLDER}/photos-2024") == ["half.tmp"]


def test_a_new_log_never_takes_over_files_that_it_finds() -> None:
    disk = SimDisk(0)
    store = _store_with(disk)
    disk.make_dir(f"{FOLDER}/topic-0")
    _write(disk, f"topic-0/{0:020d}.log", make_batch(0)[1])
    with pytest.raises(RunnelError, match="topic-0 holds files: move them away"):
        store.create("topic", TOPIC_ID, 0, CONFIG)
    _write(disk, f"topic-0/{0:020d}.log", b"")  # what a failed try leaves
    assert store.create("topic", TOPIC_ID, 0, CONFIG).log_end_offset == 0


def test_a_log_that_was_kept_out_loses_nothing_by_a_clean_stop_of_the_others() -> None:
    disk = SimDisk(0)
    store = _store_with(disk, "good", "kept")
    store.close_clean(1, {TopicPartition("kept", 0): 3, TopicPartition("good", 0): 4})
    path = f"{FOLDER}/kept-0/partition.metadata"
    whole = disk.read_whole(path)
    _write(disk, "kept-0/partition.metadata", b"version: 9\ntopic_id: x\n")
    disk.remove(MARKER)  # a crash, so that recovery points count
    store, _ = open_store(disk, ManualClock(), CONFIG)
    assert list(store.failed) == [("kept", 0)]
    good = store.get("good", 0)
    assert good is not None
    good.append(*make_batch(4), 0)
    store.close_clean(2, {TopicPartition("good", 0): 5})
    assert not disk.exists(MARKER)
    for name, line in (
        (RECOVERY_POINTS, b"kept 0 4\n"),
        (HIGH_WATERMARKS, b"kept 0 3\n"),
        (LOG_STARTS, b"kept 0 2\n"),
    ):
        assert line in disk.read_whole(f"{FOLDER}/{name}"), name
    _write(disk, "kept-0/partition.metadata", whole)
    store, _ = open_store(disk, ManualClock(), CONFIG)
    log = store.get("kept", 0)
    assert log is not None
    assert (log.log_start_offset, log.opened_high_watermark, log.log_end_offset) == (2, 3, 4)


@pytest.mark.parametrize("name", [META_PROPERTIES, RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS])
@pytest.mark.parametrize("data", [b"\xff\xfe", b"nonsense\n", b"version=x\nx\n", b"0\n7\nt 0 0\n"])
def test_a_damaged_file_of_the_data_folder_is_named_with_what_to_do(name: str, data: bytes) -> None:
    disk = SimDisk(0)
    _store_with(disk, "topic").close_clean(1, {})
    _write(disk, name, data)
    with pytest.raises(RunnelError, match="restore it") as caught:
        open_store(disk, ManualClock(), CONFIG)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert f"{FOLDER}/{name}" in str(caught.value)
    if name == META_PROPERTIES:
        with pytest.raises(RunnelError, match="restore it"):
            read_identity(disk, FOLDER)
    else:
        disk.remove(f"{FOLDER}/{name}")  # what the message offers
        assert open_store(disk, ManualClock(), CONFIG)[0].get("topic", 0) is not None


def test_nonsense_in_a_log_folder_stops_nothing() -> None:
    disk = SimDisk(0)
    _store_with(disk, "topic").close_clean(1, {})
    _write(disk, "topic-0/mine.log.swap", b"")
    _write(disk, "topic-0/leader-epoch-checkpoint", b"0\n1\n-4 -4\n")
    store, opened = open_store(disk, ManualClock(), CONFIG)
    log = store.get("topic", 0)
    assert log is not None
    assert len(read_all(log)) == log.size_bytes // 2
    assert any("negative" in notice.text for notice in opened.notices)


def test_many_namesakes_forget_the_old_offsets_in_one_write() -> None:
    disk = SimDisk(0)
    store = _store_with(disk)
    count = 50
    for index in range(count):
        store.create("topic", TOPIC_ID, index, CONFIG).append(*make_batch(0), 0)
    for log in store.logs:
        flush(log)
    store.write_checkpoints({})
    for index in range(count):
        store.delete("topic", index)
    syncs = disk.counts["sync"]
    for index in range(count):
        store.create("topic", bytes(16), index, CONFIG)
    assert disk.counts["sync"] - syncs <= 3
    assert disk.read_whole(f"{FOLDER}/{RECOVERY_POINTS}") == b"0\n0\n"


def test_a_stop_syncs_what_changed_and_each_folder_once() -> None:
    disk = SimDisk(0)
    store = _store_with(disk)
    count = 100
    for index in range(count):
        store.create("topic", TOPIC_ID, index, CONFIG).append(*make_batch(0), 0)
    files, folders = disk.counts["sync"], disk.counts["sync_dir"]
    store.close_clean(1, {})
    # The log, its time index, partition.metadata and the epochs; then three files for all.
    assert disk.counts["sync"] - files <= 4 * count + 4
    assert disk.counts["sync_dir"] - folders <= count + 5
    disk.lose_power()
    store, opened = open_store(disk, ManualClock(), CONFIG)
    assert opened.clean
    assert [log.log_end_offset for log in store.logs] == [1] * count
    files = disk.counts["sync"]
    store.close_clean(2, {})
    assert disk.counts["sync"] - files <= 4  # an idle one: none for any log
