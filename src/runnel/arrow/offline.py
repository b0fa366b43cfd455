"""What the data folders of a broker that is down hold: topics, partitions, offsets, for planning.

How far a log may be read without its broker (ADR 36):
  - Runnel's own, and no process has the folder: up to its end, as the next start would serve it.
    After a crash the batches from the recovery point on are read whole, and the first that is torn,
    damaged or does not follow ends the log, by the same rules as recovery, which changes nothing
    here.
  - a process has the folder: up to the high watermark that it wrote down last, seconds ago;
  - Kafka's: likewise, and no further than its end. A replica may hold what was never committed, and
    only the other replicas know.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from runnel.arrow.log_files import LogNames, list_log, split_path
from runnel.errors import RunnelError
from runnel.inspect.folders import FolderFiles, PartitionFiles, look_into
from runnel.inspect.walking import Batch, Damage, walk
from runnel.storage.checkpoints import (
    BOOT,
    FIRST_DIRTY,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    decode_offsets,
)
from runnel.storage.data_folder import KAFKA_METADATA_LOG
from runnel.storage.files import OpenFiles, OsDisk
from runnel.storage.lock import is_held
from runnel.storage.rebuild import rebuild_producers
from runnel.storage.segment import LOG, Segment
from runnel.storage.timestamps import batches_at_or_after
from runnel.types import TopicId, TopicPartition
from runnel.wire.batch import crc_is_right

OPEN_FILES_MAX: Final = 16
INDEX_INTERVAL_BYTES: Final = 4096
TOPICS_TOLD: Final = 8


class OfflineError(Exception):
    """The message names the folder or the topic, and says what to do."""


class _Log(NamedTuple):
    segments: list[Segment]
    snapshots: list[int]
    log_start_offset: int
    high_watermark: int  # up to which it may be read


class Folders:
    """The data folders of one broker, looked at once: make another to see what has changed."""

    def __init__(self, path: str) -> None:
        """`path` is one folder, or several between commas. Raises OfflineError."""
        self._disk = OsDisk(read_only=True)
        self._path = path
        self._found = [_look(self._disk, folder) for folder in split_path(path)]
        if not self._found:
            raise OfflineError(f"path={path!r} names no data folder")
        self._partitions: dict[TopicPartition, tuple[FolderFiles, PartitionFiles]] = {}
        for found in self._found:
            for files in found.partitions:
                if not files.folder.endswith("/" + KAFKA_METADATA_LOG):
                    self._partitions.setdefault(files.partition, (found, files))
        self._logs: dict[TopicPartition, _Log] = {}

    @property
    def cluster_id(self) -> str:
        """Empty where no folder says."""
        return next((found.meta.cluster_id for found in self._found if found.meta), "")

    def topics(self) -> list[str]:
        """By name, internal ones as well."""
        return sorted({each.topic for each in self._partitions})

    def partitions(self, topic: str) -> list[int]:
        """Raises OfflineError if the topic is not there."""
        found = sorted(each.index for each in self._partitions if each.topic == topic)
        if not found:
            raise self._no_topic(topic)
        return found

    def topic_id(self, topic: str) -> TopicId:
        """NO_TOPIC_ID if its folders do not say. Raises OfflineError if the topic is not there."""
        first = TopicPartition(topic, self.partitions(topic)[0])
        return self._partitions[first][1].topic_id

    def earliest_and_latest(
        self, topic: str, partition: int, *, read_committed: bool
    ) -> tuple[int, int]:
        """The first offset, and the one after the last that may be read. Raises OfflineError."""
        log = self._log(TopicPartition(topic, partition))
        latest = self._last_stable(log) if read_committed else log.high_watermark
        return log.log_start_offset, latest

    def offset_for_timestamp(
        self, topic: str, partition: int, timestamp_ms: int, *, read_committed: bool
    ) -> int | None:
        """Of the first record that is not earlier; None if there is none. Raises OfflineError."""
        log = self._log(TopicPartition(topic, partition))
        latest = self._last_stable(log) if read_committed else log.high_watermark
        try:
            for batch in batches_at_or_after(log.segments, timestamp_ms, log.log_start_offset):
                found = batch.first_at_or_after(timestamp_ms, log.log_start_offset)
                if found is not None:
                    return found.offset if found.offset < latest else None
        except (OSError, RunnelError) as error:
            raise _unreadable(f"{topic}-{partition}", error) from error
        return None

    def _last_stable(self, log: _Log) -> int:
        end = log.high_watermark
        try:
            producers = rebuild_producers(self._disk, log.segments, list(log.snapshots), end)
        except (OSError, RunnelError) as error:
            raise _unreadable(log.segments[0].folder, error) from error
        producers.high_watermark_moved(end)
        unstable = producers.first_unstable_offset
        if unstable is None or unstable > end:
            return end
        return max(unstable, log.log_start_offset)

    def _log(self, partition: TopicPartition) -> _Log:
        log = self._logs.get(partition)
        if log is None:
            if partition not in self._partitions:
                known = ", ".join(map(str, self.partitions(partition.topic)))
                raise OfflineError(
                    f"{self._path} has no partition {partition.index} of topic {partition.topic};"
                    f" it has {known}"
                )
            try:
                log = _open(self._disk, *self._partitions[partition])
            except (OSError, RunnelError) as error:
                raise _unreadable(str(partition), error) from error
            self._logs[partition] = log
        return log

    def _no_topic(self, topic: str) -> OfflineError:
        known = self.topics()
        more = " and more" if len(known) > TOPICS_TOLD else ""
        some = ", ".join(known[:TOPICS_TOLD]) + more if known else "none"
        return OfflineError(f"{self._path} has no topic {topic}; it has: {some}")


def _look(disk: OsDisk, folder: str) -> FolderFiles:
    try:
        found = look_into(disk, folder)
    except OSError as error:
        raise OfflineError(
            f"path={folder} cannot be read ({error.strerror}): name a data folder (`log.dirs`) of"
            " this machine that this user may read"
        ) from error
    if found.meta is None and not found.partitions:
        raise OfflineError(f"path={folder} is no data folder: it has no meta.properties, no logs")
    if found.damaged:
        path, why = found.damaged[0]
        raise OfflineError(f"{path} {why}: start the broker, or see `runnel storage verify`")
    return found


def _unreadable(what: str, error: Exception) -> OfflineError:
    return OfflineError(
        f"{what} cannot be read without its broker ({error}): start it, or see"
        " `runnel storage verify`"
    )


def _open(disk: OsDisk, found: FolderFiles, files: PartitionFiles) -> _Log:
    """Raises OSError, RunnelError."""
    names, open_files = list_log(disk, files.folder), OpenFiles(OPEN_FILES_MAX)
    segments = _segments(disk, open_files, files.folder, names)
    known = {name: found.checkpoints[name].get(files.partition, 0) for name in found.checkpoints}
    log_start_offset = known[LOG_STARTS]
    if not segments:
        return _Log([], [], log_start_offset, log_start_offset)
    log_start_offset = max(log_start_offset, segments[0].base_offset)
    is_owned, is_held_now = disk.exists(f"{found.path}/{BOOT}"), is_held(found.path)
    if found.is_clean and not is_held_now:
        end = _end_after_stop(segments)
    else:
        compacted = _compacted(disk, found.path)
        end = _end_after_crash(segments, known[RECOVERY_POINTS], files.partition in compacted)
    if is_held_now or not is_owned:
        end = min(end, known[HIGH_WATERMARKS])
    return _Log(segments, names.snapshots, log_start_offset, max(end, log_start_offset))


def _segments(disk: OsDisk, open_files: OpenFiles, folder: str, names: LogNames) -> list[Segment]:
    """All of them active, as a closed one would write an index that it finds damaged."""
    segments: list[Segment] = []
    for base_offset, ending in names.segments:
        segment = Segment(
            disk, open_files, folder, base_offset,
            index_interval_bytes=INDEX_INTERVAL_BYTES, created_ms=0,
        )  # fmt: skip
        segment.ending = ending
        segment.size = disk.size(segment.path(LOG))
        if segments:
            segments[-1].next_offset = base_offset
        segments.append(segment)
    return segments


def _compacted(disk: OsDisk, folder: str) -> Sequence[TopicPartition]:
    path = f"{folder}/{FIRST_DIRTY}"
    try:
        return list(decode_offsets(disk.read_whole(path), path))
    except (FileNotFoundError, ValueError):
        return []


def _end_after_stop(segments: list[Segment]) -> int:
    """A few headers past the last index entry tell."""
    last = segments[-1]
    for _, header in last.headers(last.index.last_position):
        last.next_offset = header.next_offset
    return last.next_offset


def _end_after_crash(segments: list[Segment], recovery_point: int, is_compacted: bool) -> int:
    """Segments past the first bad byte are dropped; those that are kept are indexed in memory."""
    first = len(segments)
    while first and (first == len(segments) or segments[first].base_offset >= recovery_point):
        first -= 1
    for slot in range(first, len(segments)):
        segment = segments[slot]
        is_whole = _index(segment, recovery_point, is_compacted)
        if slot + 1 == len(segments):
            break
        follower = segments[slot + 1].base_offset
        is_hole = segment.next_offset < follower
        if not is_whole or (is_hole and not is_compacted and follower > recovery_point):
            del segments[slot + 1 :]
            break
        segment.next_offset = follower
    return segments[-1].next_offset


def _index(segment: Segment, recovery_point: int, is_compacted: bool) -> bool:
    """Note the good batches at the start of a segment; whether it has no others."""
    file, size = segment.file, segment.size
    segment.reset_indexes()
    segment.next_offset, segment.size, epoch = segment.base_offset, 0, -1
    for batch in walk(file, size):
        if isinstance(batch, Damage):
            if segment.next_offset < recovery_point:
                raise OSError(f"{segment.path(LOG)} at {batch.position}: {batch.why}")
            return False
        if not _follows(segment, batch, epoch, recovery_point, is_compacted):
            return False
        header = batch.header
        segment.note(batch.position, header.last_offset, header.max_timestamp)
        segment.size, epoch = batch.position + header.size, header.partition_leader_epoch
    return True


def _follows(
    segment: Segment, batch: Batch, epoch: int, recovery_point: int, is_compacted: bool
) -> bool:
    header, expected = batch.header, segment.next_offset
    gap_is_fine = is_compacted or header.base_offset <= recovery_point
    if header.base_offset != expected and not (header.base_offset > expected and gap_is_fine):
        return False
    if header.partition_leader_epoch < epoch or not segment.may_hold(header.last_offset):
        return False
    # What was durable is never cut, not even for a wrong CRC: whoever reads it will be told.
    return header.next_offset <= recovery_point or crc_is_right(header, batch.raw)
