"""Which entries of a data folder are logs of partitions, and which are not ours to touch.

A log is a folder named `<topic>-<index>` that holds a segment or `partition.metadata`. Names that
begin with a dot or look like one of our files are legal names of topics, so our own files are known
by their whole names alone. Everything else is told of as a notice and left alone.
"""

import re
from typing import NamedTuple

from runnel.ports import Disk
from runnel.storage.checkpoints import (
    BOOT,
    CLEAN_SHUTDOWN,
    FIRST_DIRTY,
    HIGH_WATERMARKS,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
)
from runnel.storage.folder import TMP, Notice
from runnel.storage.lock import LOCK_FILE
from runnel.types import TopicPartition

KAFKA_METADATA_LOG = "__cluster_metadata-0"
KAFKA_FILES = ("bootstrap.checkpoint",)  # not ours, and no news
METADATA_STORE = "metadata.db"  # of the broker, with SQLite's files beside it
METADATA_RESERVE = "metadata.reserve"  # room for it on a full disk
PARTITION_INDEX_MAX = 1_000_000
WRITING = ".writing"  # then `.tmp`: of a file that a thread replaces

OUR_FILES = {
    META_PROPERTIES, RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS, FIRST_DIRTY, CLEAN_SHUTDOWN,
    BOOT, LOCK_FILE, METADATA_RESERVE,
    *(METADATA_STORE + ending for ending in ("", "-wal", "-shm", "-journal")),
    *KAFKA_FILES,
}  # fmt: skip

_PARTITION_FOLDER = re.compile(r"(.+)-(0|[1-9]\d{0,9})")
FUTURE, MOVED = "-future", "-moved"  # a copy of a log under way, and one that is complete
_COPY_FOLDER = re.compile(rf"(.+)-(0|[1-9]\d{{0,6}})\.[0-9a-f]{{32}}({FUTURE}|{MOVED})")
_DELETED_FOLDER = re.compile(r".*\.[0-9a-f]{32}-delete")
_SEGMENT = re.compile(r"\d{20}\.log(\.swap)?")


class DataFolder(NamedTuple):
    """What one data folder holds."""

    partitions: list[tuple[str, TopicPartition]]  # by the names of their folders
    deleted: list[str]  # paths
    futures: list[tuple[str, TopicPartition]]  # copies that were not finished, by name
    moved: list[tuple[str, TopicPartition]]  # copies that were, see `future_log`


def read_data_folder(disk: Disk, directory: str, notices: list[Notice]) -> DataFolder:
    found = DataFolder([], [], [], [])
    for name in disk.list(directory):
        path = f"{directory}/{name}"
        match = _PARTITION_FOLDER.fullmatch(name)
        if name.removesuffix(TMP).removesuffix(WRITING) in OUR_FILES:
            continue
        copy = _COPY_FOLDER.fullmatch(name)
        if _DELETED_FOLDER.fullmatch(name):
            found.deleted.append(path)
        elif copy is not None:
            copies = found.futures if copy[3] == FUTURE else found.moved
            copies.append((name, TopicPartition(copy[1], int(copy[2]))))
        elif name == KAFKA_METADATA_LOG:
            notices.append(Notice(path, "Kafka's own metadata: left alone"))
        elif match is None:
            notices.append(Notice(path, "not a partition: left alone"))
        elif int(match[2]) > PARTITION_INDEX_MAX:
            notices.append(Notice(path, f"a partition past {PARTITION_INDEX_MAX}: left alone"))
        else:
            found.partitions.append((name, TopicPartition(match[1], int(match[2]))))
    return found


def holds_log(disk: Disk, folder: str, notices: list[Notice]) -> bool:
    """Whether this folder, named like one of a partition, is one. Raises OSError."""
    try:
        names = disk.list(folder)
    except NotADirectoryError:
        notices.append(Notice(folder, "a file, not a folder: left alone"))
        return False
    if any(name == PARTITION_METADATA or _SEGMENT.fullmatch(name) for name in names):
        return True
    notices.append(Notice(folder, "holds no log: left alone"))
    return False


def is_free(disk: Disk, folder: str) -> bool:
    """Whether a new log may be made here: there is nothing, or what a failed try left behind."""
    if not disk.exists(folder):
        return True
    first_segment = f"{0:020d}.log"
    return all(
        name == PARTITION_METADATA
        or name.endswith(TMP)
        or (name == first_segment and disk.size(f"{folder}/{name}") == 0)
        for name in disk.list(folder)
    )
