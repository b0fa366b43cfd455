"""A range of offsets read from segment files instead of from the broker: the same rows.

The driver has learned from the broker (or, if that is down, from `offline`) up to where the range
may be read, and where the files are (`locating`). Whether they are here, and still are, is found
out in the task; where they are not, from that offset on the broker is asked instead. Without a
broker that is an error that says which file is missing.
"""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from runnel.arrow.log_files import folder_of
from runnel.arrow.losses import ReadError, report_loss
from runnel.arrow.mapped import GoneError, MappedLog, MappedSegment
from runnel.arrow.markers import Committed, UndecidedError
from runnel.arrow.ranges import Place, Range, Scan
from runnel.arrow.rows import RowBuilder, any_within
from runnel.client.aborted import Aborted
from runnel.errors import RunnelError
from runnel.native.columns import RecordColumns
from runnel.storage.checkpoints import LOG_STARTS, decode_offsets
from runnel.storage.files import OsDisk
from runnel.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

BOOTSTRAP: Final = "bootstrap.servers"
_log = logging.getLogger(__name__)


def open_range(scan: Scan, piece: Range) -> "Iterator[pa.RecordBatch] | None":
    """The records of the range; None if its files are not for us to read, and a broker can be.

    The files are open when it returns. Raises ReadError.
    """
    if piece.place is None or piece.start >= piece.end:
        return None
    disk = OsDisk(read_only=True)
    try:
        log = _opened(disk, piece.place, piece)
    except (OSError, GoneError) as error:
        _leave_to_broker(scan, piece, piece.start, str(error))
        return None if scan.client.get(BOOTSTRAP) else iter(())
    return _rows(scan, piece, log)


def _opened(disk: OsDisk, place: Place, piece: Range) -> MappedLog:
    partition = TopicPartition(piece.topic, piece.partition)
    folder = folder_of(disk, place.folders, partition)
    if folder is None:
        raise GoneError(f"there is no folder {partition} in {', '.join(place.folders)}")
    if piece.start < _log_start(disk, folder, partition):
        raise GoneError(f"{partition} begins after offset {piece.start}")
    return MappedLog(disk, folder, place.topic_id, piece.start, piece.end)


def _log_start(disk: OsDisk, folder: str, partition: TopicPartition) -> int:
    """Records before it were deleted by somebody, although their segment may still be there."""
    path = f"{folder.rpartition('/')[0]}/{LOG_STARTS}"
    try:
        return decode_offsets(disk.read_whole(path), path).get(partition, 0)
    except (FileNotFoundError, ValueError, RunnelError):
        return 0


def _leave_to_broker(scan: Scan, piece: Range, offset: int, why: str) -> None:
    """Raises ReadError where there is none, unless what is missing may be skipped."""
    if not scan.client.get(BOOTSTRAP):
        report_loss(scan, piece, offset, piece.end, f"{why}; and no kafka.{BOOTSTRAP} to ask")
    _log.info("%s-%s from offset %s on is read from the broker: %s", *piece[:2], offset, why)


def _rows(scan: Scan, piece: Range, log: MappedLog) -> "Iterator[pa.RecordBatch]":
    reader = _Reader(scan, piece, log)
    try:
        yield from reader.batches()
    except (OSError, GoneError, UndecidedError) as error:
        why = f"{error}" if not isinstance(error, UndecidedError) else f"open transaction: {error}"
        yield from _rest_from_broker(scan, piece, reader.offset, why)
    else:
        if reader.offset < piece.end:
            why = f"{log.folder} ends at offset {reader.offset}"
            yield from _rest_from_broker(scan, piece, reader.offset, why)


def _rest_from_broker(
    scan: Scan, piece: Range, offset: int, why: str
) -> "Iterator[pa.RecordBatch]":
    from runnel.arrow.scan import read_from_broker  # which imports this module

    _leave_to_broker(scan, piece, offset, why)
    if scan.client.get(BOOTSTRAP):
        yield from read_from_broker(scan, piece._replace(start=offset, place=None))


class _Reader:
    """`offset` is the first that was not given yet."""

    def __init__(self, scan: Scan, piece: Range, log: MappedLog) -> None:
        self.offset = piece.start
        self._end = piece.end
        self._log = log
        self._builder = RowBuilder(scan, piece.topic, piece.partition)
        self._stamps_ms = scan.timestamps_ms
        self._skipped = (0, 0)  # the position and the offset after what nobody wants
        self._visible = Committed(log) if scan.read_committed else Aborted(None)

    def batches(self) -> "Iterator[pa.RecordBatch]":
        slot = 0
        while self.offset < self._end and (segment := self._log.segment(slot)) is not None:
            if segment.base_offset >= self._end:
                self.offset = self._end  # compaction left nothing before it
                break
            if isinstance(self._visible, Committed):
                self._visible.read_from(slot)
            yield from self._of(segment, segment.position_near(self.offset) if slot == 0 else 0)
            segment.close()
            slot += 1

    def _of(self, segment: MappedSegment, position: int) -> "Iterator[pa.RecordBatch]":
        while self.offset < self._end:
            segment.read_up_to(position)
            header = segment.header_at(position)
            if header is None:
                return  # the end of the file, or of what was written of it
            if header.base_offset >= self._end:
                self.offset = self._end
                return
            try:
                columns = self._columns(segment, position)
            except RunnelError as error:
                raise ReadError(
                    f"{segment.path} from offset {self.offset} on cannot be decoded: {error};"
                    " look at it with `runnel storage verify`, or start after it"
                ) from None
            if columns is None:
                position, self.offset = self._skipped
            elif columns.row_count:
                batch = self._builder.build(columns, self._visible)
                position, self.offset = columns.position, columns.next_offset
                if batch.num_rows:
                    yield batch
            else:
                position, self.offset = columns.position, columns.next_offset

    def _columns(self, segment: MappedSegment, position: int) -> RecordColumns | None:
        """The next records; None where all of the next few thousand are of other times."""
        end = self._end
        if self._stamps_ms is not None:
            looked_at = self._builder.stamps(segment.data, position, self.offset, end)
            if not any_within(looked_at, *self._stamps_ms):
                self._skipped = looked_at.position, looked_at.next_offset
                return None
            end = min(end, looked_at.next_offset)
        return self._builder.decode(segment.data, position, self.offset, end)
