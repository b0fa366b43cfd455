"""Opening a log: after a clean stop by reading next to nothing, after a crash by scanning.

After a crash the segments from the recovery point on are read whole (R30): each batch must have a
sane header, follow the one before in offset and epoch, and match its CRC; where the topic is known
not to be compacted its offset must be the very next, because the CRC does not cover the offset and
a hole would be a loss that nobody is told of. The log is cut at the first byte that fails,
later segments go, indexes, producer state and epochs are made anew, and all of it is synced before
anyone may append. A tail of zeros, preallocated or left by the file system, is no batch either.

What lies before the recovery point was durable, so nothing of it is ever cut: whole segments of it
are not read; of the one that holds the point a batch with a wrong CRC is told of and kept, as it
would be in any other segment, gaps are what compaction left, and bytes that are no batches keep the
log out.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from runnel.config.topic import LogConfig
from runnel.errors import RunnelError
from runnel.ports import Disk
from runnel.storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    decode_epochs,
    decode_partition_metadata,
)
from runnel.storage.epochs import LeaderEpochs
from runnel.storage.folder import FolderFiles, Notice, list_folder
from runnel.storage.log import Log, Surroundings
from runnel.storage.producers import ProducerStates
from runnel.storage.rebuild import rebuild_producers, rebuild_transactions, write_snapshot
from runnel.storage.segment import LOG, SNAPSHOT, Segment
from runnel.storage.segment_scan import READ_BYTES, Judge, scan_segment
from runnel.types import NO_TOPIC_ID, TopicId, TopicPartition
from runnel.wire.batch import MAGIC

T = TypeVar("T")


class Wanted(NamedTuple):
    """What the checkpoint files of the data folder say about a log."""

    clean: bool
    recovery_point: int
    log_start_offset: int
    allow_gaps: bool  # between offsets: the topic is compacted, or may be


def load_log(
    around: Surroundings, folder: str, partition: TopicPartition, config: LogConfig, wanted: Wanted,
    notices: list[Notice],
) -> Log:  # fmt: skip
    """Raises OSError, or RunnelError for a format of a later release: then nothing was changed.

    A log that is dirty was scanned, and must be flushed before anyone may append.
    """
    disk = around.disk
    files = list_folder(disk, folder, notices)
    topic_id = _read_topic_id(disk, folder, notices)
    epochs = _read_epochs(disk, folder, notices)
    segments = _segments(around, folder, config, files)
    clean = wanted.clean and not files.replaced
    if clean and segments and not _find_end(segments[-1], notices):
        clean = False
    epochs_known = epochs is not None
    epochs = epochs or LeaderEpochs()
    scanned: list[Segment] = []
    if clean:
        producers = ProducerStates()
        if segments and files.snapshots:
            end = segments[-1].next_offset
            producers = rebuild_producers(disk, segments, files.snapshots, end)
    else:
        judge = Judge(wanted.recovery_point, wanted.allow_gaps, notices)
        producers, scanned = _recover(disk, segments, files, epochs, judge)
    if segments and segments[-1].next_offset < wanted.log_start_offset:
        notices.append(Notice(folder, f"ends before its start {wanted.log_start_offset}: emptied"))
        for segment in segments:
            files.remove_segment(disk, segment.base_offset)
        segments.clear()
        scanned.clear()
        producers = ProducerStates()
    if not segments:
        segments.append(_first_segment(around, folder, config, max(wanted.log_start_offset, 0)))
    if not epochs_known and len(scanned) < len(segments):  # else the scan has seen every batch
        _rebuild_epochs(segments, epochs)
    try:
        segments[-1].activate()
    except ValueError:
        segments[-1].txn_index = rebuild_transactions(disk, segments, files.snapshots, segments[-1])
    log = Log(around, folder, partition, topic_id, config, segments, epochs, producers)
    log.log_start_offset = max(wanted.log_start_offset, segments[0].base_offset)
    epochs.truncate_from_end(log.log_end_offset + 1)
    epochs.truncate_from_start(log.log_start_offset)
    log.snapshots = _without_strays(disk, folder, segments, files.snapshots, log.log_end_offset)
    if clean:
        log.flushed_offset = log.log_end_offset
    else:
        # What the scan found may be in the page cache alone: the recovery point passes it only now.
        log.flushed_offset = log.log_start_offset
        log.closed_unsynced = [segment for segment in scanned if segment is not segments[-1]]
        log.unsynced_folders.append(folder)
        log.unsynced_paths.append(f"{folder}/{PARTITION_METADATA}")
    return log


def _segments(
    around: Surroundings, folder: str, config: LogConfig, files: FolderFiles
) -> list[Segment]:
    segments: list[Segment] = []
    for base_offset in files.bases:
        segment = Segment(
            around.disk, around.open_files, folder, base_offset,
            index_interval_bytes=config.index_interval_bytes, created_ms=around.clock.wall_ms(),
        )  # fmt: skip
        segment.size = around.disk.size(segment.path(LOG))
        if segments:
            segments[-1].is_active = False
            segments[-1].next_offset = base_offset
        segments.append(segment)
    return segments


def _first_segment(
    around: Surroundings, folder: str, config: LogConfig, base_offset: int
) -> Segment:
    segment = Segment(
        around.disk, around.open_files, folder, base_offset,
        index_interval_bytes=config.index_interval_bytes, created_ms=around.clock.wall_ms(),
    )  # fmt: skip
    segment.start_empty(config.segment_bytes if config.preallocate else 0)
    return segment


def _find_end(segment: Segment, notices: list[Notice]) -> bool:
    """Where the log ended at a clean stop: a few headers past the last index entry."""
    try:
        last = None
        for _, last in segment.headers(segment.index.last_position):
            if last.magic != MAGIC:
                return False
        if last is not None:
            segment.next_offset = last.next_offset
    except RunnelError as error:
        notices.append(Notice(segment.path(LOG), f"{error}, although the stop was clean: scanned"))
        return False
    return segment.next_offset >= segment.base_offset


def _recover(
    disk: Disk, segments: list[Segment], files: FolderFiles, epochs: LeaderEpochs, judge: Judge
) -> tuple[ProducerStates, list[Segment]]:
    """Scan the segments from the recovery point on; those past the first bad byte are dropped.

    The producers' state at the end, and the segments that were scanned and kept.
    """
    first = len(segments)
    while first and (first == len(segments) or segments[first].base_offset >= judge.recovery_point):
        first -= 1  # one that ends at the point may have been closed since: its index is not synced
    if files.replaced:
        first = 0
    if not segments:
        return ProducerStates(), []
    producers = rebuild_producers(disk, segments, files.snapshots, segments[first].base_offset)
    for slot in range(first, len(segments)):
        segment = segments[slot]
        if slot:  # the one that the roll wrote may be lost, or the segments before it may go
            _replace_snapshot(disk, files, segment.base_offset, producers)
        cut_bytes = scan_segment(segment, producers, epochs, judge)
        if cut_bytes:
            judge.notices.append(
                Notice(
                    segment.path(LOG), f"cut {cut_bytes} bytes after offset {segment.next_offset}"
                )
            )
        follower = segments[slot + 1] if slot + 1 < len(segments) else None
        if follower is None:
            judge.note_end(segment)
            break
        is_hole = segment.next_offset < follower.base_offset
        if cut_bytes or (is_hole and not judge.allows_gap_before(follower.base_offset)):
            for later in segments[slot + 1 :]:
                judge.notices.append(
                    Notice(later.path(LOG), f"removed: {segment.next_offset} is missing")
                )
                files.remove_segment(disk, later.base_offset)
            del segments[slot + 1 :]
            break
        segment.close_for_writing()
        segment.next_offset = follower.base_offset
    return producers, segments[first:]


def _replace_snapshot(
    disk: Disk, files: FolderFiles, offset: int, producers: ProducerStates
) -> None:
    path = write_snapshot(disk, files.folder, offset, producers)
    disk.open(path).sync()
    if offset not in files.snapshots:
        files.snapshots.append(offset)
        files.snapshots.sort()


def _rebuild_epochs(segments: list[Segment], epochs: LeaderEpochs) -> None:
    """The checkpoint was missing or damaged: every batch says its epoch."""
    found = LeaderEpochs()
    for segment in segments:
        for _, header in segment.headers(chunk_bytes=READ_BYTES):
            if header.partition_leader_epoch > found.latest_epoch:
                found.assign(header.partition_leader_epoch, header.base_offset)
    epochs.clear()
    for entry in found.entries:
        epochs.assign(entry.epoch, entry.start_offset)


def _without_strays(
    disk: Disk, folder: str, segments: list[Segment], snapshots: list[int], log_end_offset: int
) -> list[int]:
    """Snapshots belong to segments, and one may stand at the end of the log. Others are removed."""
    wanted = {segment.base_offset for segment in segments} | {log_end_offset}
    for offset in snapshots:
        if offset not in wanted:
            disk.remove(f"{folder}/{offset:020d}{SNAPSHOT}")
    return [offset for offset in snapshots if offset in wanted]


def _read_topic_id(disk: Disk, folder: str, notices: list[Notice]) -> TopicId:
    path = f"{folder}/{PARTITION_METADATA}"
    return (
        _read(disk, path, lambda data: decode_partition_metadata(data, path), notices)
        or NO_TOPIC_ID
    )


def _read_epochs(disk: Disk, folder: str, notices: list[Notice]) -> LeaderEpochs | None:
    path = f"{folder}/{LEADER_EPOCHS}"
    return _read(disk, path, lambda data: LeaderEpochs(decode_epochs(data, path)), notices)


def _read(disk: Disk, path: str, decode: Callable[[bytes], T], notices: list[Notice]) -> T | None:
    try:
        return decode(disk.read_whole(path))
    except FileNotFoundError:
        return None
    except ValueError as error:
        notices.append(Notice(path, f"unreadable ({error}): made anew"))
        return None
