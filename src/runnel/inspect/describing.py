"""What a segment holds, told by its ends: the headers of the first and the last batches.

The indexes say where the last batches are, so a folder of any size is described in the time that
its file names take. Where an index is missing or wrong the headers are walked from the start.
"""

from typing import NamedTuple

from runnel.errors import RunnelError
from runnel.inspect.folders import PartitionFiles, SegmentFiles
from runnel.inspect.walking import Damage, walk
from runnel.ports import Disk, File
from runnel.storage.checkpoints import LEADER_EPOCHS, EpochStart, decode_epochs
from runnel.storage.index import NO_TIMESTAMP, OffsetIndex, TimeIndex
from runnel.storage.segment import INDEX, TIME_INDEX
from runnel.wire.batch import DELETE_HORIZON, BatchHeader


class SegmentSummary(NamedTuple):
    files: SegmentFiles
    size: int
    next_offset: int
    first_timestamp: int  # of the first batch, -1 if there is none
    max_timestamp: int
    index_entries: int  # -1 for a missing or damaged index
    time_index_entries: int
    damage: Damage | None  # at the end; more is found by verifying

    @property
    def base_offset(self) -> int:
        return self.files.base_offset

    @property
    def is_active(self) -> bool:
        return self.files.is_last


class PartitionSummary(NamedTuple):
    files: PartitionFiles
    segments: list[SegmentSummary]
    log_start_offset: int
    log_end_offset: int
    epochs: list[EpochStart]

    @property
    def first_timestamp(self) -> int:
        return min((s.first_timestamp for s in self.segments if s.size), default=NO_TIMESTAMP)

    @property
    def max_timestamp(self) -> int:
        return max((s.max_timestamp for s in self.segments), default=NO_TIMESTAMP)


def describe_partition(
    disk: Disk, files: PartitionFiles, log_start_offset: int = 0
) -> PartitionSummary:
    """`log_start_offset` as its checkpoint has it. Raises OSError, not for what has vanished."""
    summaries = [describe_segment(disk, segment) for segment in files.segments]
    segments = [summary for summary in summaries if summary is not None]
    start = max(segments[0].base_offset if segments else 0, log_start_offset)
    end = segments[-1].next_offset if segments else start
    return PartitionSummary(files, segments, start, max(end, start), read_epochs(disk, files))


def read_epochs(disk: Disk, files: PartitionFiles) -> list[EpochStart]:
    path = f"{files.folder}/{LEADER_EPOCHS}"
    try:
        return decode_epochs(disk.read_whole(path), path)
    except (FileNotFoundError, ValueError, RunnelError):
        return []


def describe_segment(disk: Disk, files: SegmentFiles) -> SegmentSummary | None:
    """None for one that has vanished."""
    try:
        file = disk.open(files.path())
    except FileNotFoundError:
        return None
    size = file.size()
    index = read_offset_index(disk, files, size)
    times = read_time_index(disk, files)
    first_timestamp = NO_TIMESTAMP
    for item in walk(file, size):
        if not isinstance(item, Damage):
            first_timestamp = _first_timestamp(item.header)
        break
    known = index.last_position if index is not None else 0
    next_offset, max_timestamp, damage = _walk_end(file, files.base_offset, size, known)
    if damage is not None and known:
        next_offset, max_timestamp, damage = _walk_end(file, files.base_offset, size, 0)
    if times is not None:
        max_timestamp = max(max_timestamp, times.last[0])
    return SegmentSummary(
        files,
        size,
        next_offset,
        first_timestamp,
        max_timestamp,
        -1 if index is None else len(index),
        -1 if times is None else len(times),
        damage,
    )


def _first_timestamp(header: BatchHeader) -> int:
    """In a batch with tombstones that was compacted, the base is when they go, a time to come."""
    has_horizon = header.attributes & DELETE_HORIZON != 0
    return header.max_timestamp if has_horizon else header.base_timestamp


def read_offset_index(disk: Disk, files: SegmentFiles, log_size: int) -> OffsetIndex | None:
    try:
        data = disk.read_whole(files.path(INDEX))
        return OffsetIndex.decode(data, files.base_offset, log_size)
    except (FileNotFoundError, ValueError):
        return None


def read_time_index(disk: Disk, files: SegmentFiles) -> TimeIndex | None:
    try:
        return TimeIndex.decode(disk.read_whole(files.path(TIME_INDEX)), files.base_offset)
    except (FileNotFoundError, ValueError):
        return None


def _walk_end(
    file: File, base_offset: int, size: int, position: int
) -> tuple[int, int, Damage | None]:
    next_offset, max_timestamp = base_offset, NO_TIMESTAMP
    for item in walk(file, size, position):
        if isinstance(item, Damage):
            return next_offset, max_timestamp, item
        next_offset = item.header.next_offset
        max_timestamp = max(max_timestamp, item.header.max_timestamp)
    return next_offset, max_timestamp, None
