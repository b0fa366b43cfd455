"""Whether a folder is whole: every batch, every index entry, every small file.

What is judged:
  - the CRC of each batch, a sane header, bytes that are no batch, a torn end;
  - offsets that only grow, within a segment and from one to the next; leader epochs likewise;
  - index entries: each points at the start of a batch and names the last offset of it, or of one
    appended together with it as older Kafkas wrote them; time entries name the largest timestamp so
    far and a batch that has it;
  - the small files: snapshots, transaction indexes, epochs, ids, checkpoints;
  - with `deep`, each record.
Gaps between offsets are counted and no finding: compaction leaves them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from runnel.errors import RunnelError
from runnel.inspect.folders import FolderFiles, PartitionFiles, SegmentFiles
from runnel.inspect.index_checks import OffsetEntries, TimeEntries
from runnel.inspect.small_files import check_small_files
from runnel.inspect.walking import Batch, Damage, walk
from runnel.native.records import decode
from runnel.ports import Disk, File
from runnel.storage.checkpoints import RECOVERY_POINTS
from runnel.storage.folder import Notice
from runnel.wire.batch import LOG_APPEND_TIME, crc_is_right

TORN_LOOKS_MAX = 10  # at an end that a running broker may be writing
DECOMPRESSED_MAX_BYTES = 1 << 30


class Finding(NamedTuple):
    """`position` is -1 where the file as a whole is meant."""

    path: str
    position: int
    what: str


@dataclass
class Checked:
    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    missing_offsets: int = 0
    vanished: int = 0
    findings: int = 0


class Verifier:
    """`report` gets each finding, `advance` the bytes read so far, `pause` waits for a writer."""

    def __init__(
        self,
        disk: Disk,
        report: Callable[[Finding], None],
        *,
        deep: bool = False,
        advance: Callable[[int], None] = lambda _bytes: None,
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        self.checked = Checked()
        self._disk = disk
        self._report = report
        self._deep = deep
        self._advance = advance
        self._pause = pause

    def verify(self, found: FolderFiles, partitions: list[PartitionFiles]) -> Checked:
        """Raises OSError, not for what has vanished."""
        for path, text in found.damaged:
            self._find(path, -1, text)
        for files in partitions:
            recovery_point = found.checkpoints[RECOVERY_POINTS].get(files.partition, 0)
            end = self.verify_partition(files)
            if end is not None and end < recovery_point:
                path = f"{found.path}/{RECOVERY_POINTS}"
                what = f"{files.partition} was durable up to {recovery_point} and ends at {end}"
                self._find(path, -1, what)
        return self.checked

    def verify_partition(self, files: PartitionFiles) -> int | None:
        """The offset where the log ends; None if that is not known."""
        for path, text in self._damaged_small_files(files):
            self._find(path, -1, text)
        order = _Order()
        vanished = self.checked.vanished
        for segment in files.segments:
            self.checked.missing_offsets += order.begin_segment(segment)
            self._verify_segment(segment, order)
        self.checked.partitions += 1
        is_known = order.is_sure and self.checked.vanished == vanished
        return order.next_offset if is_known else None

    def _verify_segment(self, segment: SegmentFiles, order: "_Order") -> None:
        try:
            offset_entries, time_entries = self._index_entries(segment)
            file = self._disk.open(segment.path())
        except FileNotFoundError:
            self.checked.vanished += 1
            return
        path = segment.path()
        self.checked.segments += 1
        position, is_whole = 0, True
        for item in _walk_growing(file, segment, self._pause):
            if isinstance(item, Damage):
                self._find(path, item.position, item.why)
                is_whole = False
                break
            position = item.position + item.header.size
            self._verify_batch(path, item, order)
            offset_entries.saw(item.position, item.header)
            time_entries.saw(item.header)
        for entries in (offset_entries, time_entries):
            for text in entries.faults(is_whole):
                self._find(entries.path, -1, text)
        self.checked.bytes += position
        self._advance(self.checked.bytes)

    def _damaged_small_files(self, files: PartitionFiles) -> list[Notice]:
        """A file that is being written may look damaged: what counts is what stays so."""
        damaged = list(check_small_files(self._disk, files))
        if not damaged:
            return []
        self._pause()
        return [notice for notice in check_small_files(self._disk, files) if notice in damaged]

    def _index_entries(self, segment: SegmentFiles) -> tuple[OffsetEntries, TimeEntries]:
        """Likewise. Raises FileNotFoundError if the log is gone."""
        entries = OffsetEntries(self._disk, segment), TimeEntries(self._disk, segment)
        if segment.is_last and any(index.is_damaged for index in entries):
            self._pause()
            entries = OffsetEntries(self._disk, segment), TimeEntries(self._disk, segment)
        return entries

    def _verify_batch(self, path: str, batch: Batch, order: "_Order") -> None:
        position, header, raw = batch
        self.checked.batches += 1
        self.checked.records += header.record_count
        if self.checked.batches % 256 == 0:
            self._advance(self.checked.bytes + position)
        if not crc_is_right(header, raw):
            what = f"the CRC of the batch at offset {header.base_offset} is wrong"
            self._find(path, position, what)
            order.is_sure = False
            return  # whatever else it says means nothing
        for what in order.faults(batch):
            self._find(path, position, what)
        self.checked.missing_offsets += order.missing
        if self._deep:
            self._verify_records(path, batch)

    def _verify_records(self, path: str, batch: Batch) -> None:
        position, header, raw = batch
        try:
            columns = decode(
                raw, max_records=header.record_count + 1, max_bytes=DECOMPRESSED_MAX_BYTES,
                control=True, verify_crc=False, max_decompressed_bytes=DECOMPRESSED_MAX_BYTES,
            )  # fmt: skip
        except RunnelError as error:
            self._find(path, position, str(error))
            return
        if columns.row_count != header.record_count:
            what = f"{columns.row_count} records, and its header says {header.record_count}"
            self._find(path, position, what)
        latest = max(memoryview(columns.timestamps).cast("q"), default=header.max_timestamp)
        if latest != header.max_timestamp and not header.attributes & LOG_APPEND_TIME:
            what = f"its latest record is of {latest}, its header says {header.max_timestamp}"
            self._find(path, position, what)

    def _find(self, path: str, position: int, what: str) -> None:
        self.checked.findings += 1
        self._report(Finding(path, position, what))


def _walk_growing(
    file: File, segment: SegmentFiles, pause: Callable[[], None]
) -> Iterator[Batch | Damage]:
    """A batch that a running broker is writing is torn for a moment: then it is looked at again."""
    position, end, looks = 0, file.size(), 0
    while True:
        for item in walk(file, end, position):
            if isinstance(item, Damage) and item.is_torn and segment.is_last:
                break
            yield item
            position = item.position + (0 if isinstance(item, Damage) else item.header.size)
        else:
            return
        looks += 1
        pause()
        size = file.size()
        if size == end or looks > TORN_LOOKS_MAX:
            yield item
            return
        end = size


class _Order:
    """Offsets and epochs, which only grow, from batch to batch and from segment to segment."""

    def __init__(self) -> None:
        self.next_offset = 0
        self.missing = 0  # offsets between the last batch and the one before
        self._segment_base = 0
        self._epoch = -1
        self._is_first = True
        self.is_sure = True  # that the batch before was what it was written as

    def begin_segment(self, segment: SegmentFiles) -> int:
        """How many offsets are missing before it. An empty one ends the log where it begins."""
        base_offset = self._segment_base = segment.base_offset
        missing = 0
        if self.is_sure and not self._is_first:
            missing = max(0, base_offset - self.next_offset)
        self._is_first = False
        self.next_offset = max(self.next_offset, base_offset)
        return missing

    def faults(self, batch: Batch) -> list[str]:
        header, found = batch.header, []
        self.missing = 0
        if header.base_offset < self._segment_base:
            found.append(f"offset {header.base_offset} lies before its file's first")
        elif header.base_offset < self.next_offset:
            found.append(f"offset {header.base_offset} follows {self.next_offset - 1}: goes back")
        elif self.is_sure:
            self.missing = header.base_offset - self.next_offset
        self.is_sure = True
        if header.partition_leader_epoch < self._epoch:
            found.append(
                f"leader epoch {header.partition_leader_epoch} follows {self._epoch}: goes back"
            )
        self._epoch = max(self._epoch, header.partition_leader_epoch)
        self.next_offset = max(self.next_offset, header.next_offset)
        return found
