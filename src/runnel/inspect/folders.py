"""Which files a data folder, or the folder of a single partition, holds.

A file that vanishes between the listing and the look at it was taken by retention or by a deleted
topic: it is left out.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from runnel.errors import RunnelError
from runnel.ports import Disk
from runnel.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    MetaProperties,
    decode_meta,
    decode_offsets,
    decode_partition_metadata,
)
from runnel.storage.data_folder import KAFKA_METADATA_LOG, read_data_folder
from runnel.storage.folder import Notice
from runnel.storage.lock import LOCK_FILE
from runnel.storage.segment import LOG, SNAPSHOT, SUFFIXES
from runnel.types import NO_TOPIC_ID, TopicId, TopicPartition

CHECKPOINTS = (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS)

_SEGMENT_FILE = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)")
_PARTITION_NAME = re.compile(r"(.+)-(\d{1,10})")


class SegmentFiles(NamedTuple):
    """One segment: its log and what is beside it."""

    folder: str
    base_offset: int
    sizes: dict[str, int]  # in bytes, by suffix; snapshots are the partition's
    modified_ms: int
    is_last: bool

    @property
    def size(self) -> int:
        return self.sizes[LOG]

    def path(self, suffix: str = LOG) -> str:
        return f"{self.folder}/{self.base_offset:020d}{suffix}"


class PartitionFiles(NamedTuple):
    folder: str
    partition: TopicPartition
    topic_id: TopicId
    segments: list[SegmentFiles]  # in the order of their offsets
    snapshots: dict[int, int]  # bytes by offset; the newest has no segment yet

    @property
    def log_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def index_bytes(self) -> int:
        of_segments = sum(sum(segment.sizes.values()) for segment in self.segments)
        return of_segments - self.log_bytes + sum(self.snapshots.values())


class FolderFiles(NamedTuple):
    """`meta` is None where it is missing or damaged."""

    path: str
    meta: MetaProperties | None
    is_clean: bool
    lock_pid: int  # of the last broker that did not stop in order; -1 if there is none
    partitions: list[PartitionFiles]
    checkpoints: dict[str, dict[TopicPartition, int]]  # by the name of the file
    damaged: list[Notice]  # small files that cannot be read
    notices: list[Notice]  # what else is there, and is none of ours


def look_into(disk: Disk, path: str) -> FolderFiles:
    """Raises OSError if it cannot be listed."""
    path = path.rstrip("/") or "/"
    names = disk.list(path)
    partition = partition_of(path)
    if partition is not None and any(_SEGMENT_FILE.fullmatch(name) for name in names):
        found = [_partition(disk, path, partition)]
        return FolderFiles(path, None, False, -1, found, {name: {} for name in CHECKPOINTS}, [], [])
    notices: list[Notice] = []
    damaged: list[Notice] = []
    # Read before the logs: what they say can only be less than what is found then.
    checkpoints = {name: _offsets(disk, f"{path}/{name}", damaged) for name in CHECKPOINTS}
    named = read_data_folder(disk, path, notices)
    folders = list(named.partitions)
    notices += [Notice(deleted, "of a deleted topic: goes in a while") for deleted in named.deleted]
    for name, _ in named.futures + named.moved:
        notices.append(Notice(f"{path}/{name}", "a copy, while a partition changes its folder"))
    if KAFKA_METADATA_LOG in names:
        folders.append((KAFKA_METADATA_LOG, TopicPartition(KAFKA_METADATA_LOG[:-2], 0)))
        notices = [n for n in notices if not n.path.endswith("/" + KAFKA_METADATA_LOG)]
    looked_at = [
        _partition_or_none(disk, f"{path}/{name}", whose)
        for name, whose in sorted(folders, key=lambda entry: entry[1])
    ]
    return FolderFiles(
        path,
        _meta(disk, f"{path}/{META_PROPERTIES}", damaged),
        CLEAN_SHUTDOWN in names,
        _lock_pid(disk, f"{path}/{LOCK_FILE}"),
        [files for files in looked_at if files is not None],
        checkpoints,
        damaged,
        notices,
    )


def partition_of(folder: str) -> TopicPartition | None:
    """What a folder of this name holds, if it is one of a partition."""
    match = _PARTITION_NAME.fullmatch(folder.rstrip("/").rpartition("/")[2])
    return None if match is None else TopicPartition(match[1], int(match[2]))


def chosen(found: FolderFiles, wanted: str | None) -> list[PartitionFiles]:
    """The partitions of a topic, or a single one by its name; all of them for None."""
    if wanted is None:
        return found.partitions
    return [p for p in found.partitions if wanted in (p.partition.topic, str(p.partition))]


def read_or_none(disk: Disk, path: str) -> bytes | None:
    try:
        return disk.read_whole(path)
    except FileNotFoundError:
        return None


def _partition_or_none(disk: Disk, folder: str, partition: TopicPartition) -> PartitionFiles | None:
    try:
        found = _partition(disk, folder, partition)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found if found.segments or found.topic_id != NO_TOPIC_ID else None


def _partition(disk: Disk, folder: str, partition: TopicPartition) -> PartitionFiles:
    sizes: dict[int, dict[str, int]] = {}
    for base_offset, suffix, size in _sizes(disk, folder):
        sizes.setdefault(base_offset, {})[suffix] = size
    snapshots = {
        base: sizes[base].pop(SNAPSHOT) for base in sorted(sizes) if SNAPSHOT in sizes[base]
    }
    bases = sorted(base for base, found in sizes.items() if LOG in found)
    segments = []
    for base in bases:
        try:
            modified_ms = disk.modified_ms(f"{folder}/{base:020d}{LOG}")
        except FileNotFoundError:
            continue
        segments.append(SegmentFiles(folder, base, sizes[base], modified_ms, base == bases[-1]))
    topic_id = NO_TOPIC_ID
    data = read_or_none(disk, f"{folder}/{PARTITION_METADATA}")
    if data is not None:
        try:
            topic_id = decode_partition_metadata(data, folder)
        except (ValueError, RunnelError):
            topic_id = NO_TOPIC_ID  # `verify` says why
    return PartitionFiles(folder, partition, topic_id, segments, snapshots)


def _sizes(disk: Disk, folder: str) -> Iterator[tuple[int, str, int]]:
    for name in disk.list(folder):
        match = _SEGMENT_FILE.fullmatch(name)
        if match is None or match[2] not in SUFFIXES:
            continue
        try:
            yield int(match[1]), match[2], disk.size(f"{folder}/{name}")
        except FileNotFoundError:
            continue


def _meta(disk: Disk, path: str, damaged: list[Notice]) -> MetaProperties | None:
    data = read_or_none(disk, path)
    if data is None:
        return None
    try:
        return decode_meta(data, path)
    except RunnelError as error:
        damaged.append(Notice(path, str(error)))
        return None


def _offsets(disk: Disk, path: str, damaged: list[Notice]) -> dict[TopicPartition, int]:
    data = read_or_none(disk, path)
    if not data:  # Kafka makes these files at its start and fills them later
        return {}
    try:
        return decode_offsets(data, path)
    except (ValueError, RunnelError) as error:
        damaged.append(Notice(path, f"is damaged ({error})"))
        return {}


def _lock_pid(disk: Disk, path: str) -> int:
    text = (read_or_none(disk, path) or b"").strip()
    return int(text) if text.isdigit() else -1
