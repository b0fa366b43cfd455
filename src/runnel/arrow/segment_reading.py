"""The rows of a range out of segment files that are open: decoded batch by batch, in order."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from runnel.arrow.losses import ReadError
from runnel.arrow.mapped import MappedLog, MappedSegment
from runnel.arrow.markers import Committed
from runnel.arrow.ranges import Range, Scan
from runnel.arrow.rows import RowBuilder, any_within
from runnel.arrow.tally import Tally
from runnel.client.aborted import Aborted
from runnel.errors import RunnelError
from runnel.native.columns import RecordColumns
from runnel.wire.batch import COMPRESSION_MASK, BatchHeader

if TYPE_CHECKING:
    import pyarrow as pa


class SegmentReader:
    """`offset` is the first that was not given yet."""

    def __init__(self, scan: Scan, piece: Range, log: MappedLog, tally: Tally) -> None:
        self.offset = piece.start
        self.folder = log.folder
        self._end = piece.end
        self._log = log
        self._builder = RowBuilder(scan, piece.topic, piece.partition)
        self._stamps_ms = scan.timestamps_ms
        self._visible = Committed(log) if scan.read_committed else Aborted(None)
        self._tally = tally

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Raises ReadError, and what a log that goes raises: GoneError, OSError, UndecidedError."""
        slot = 0
        while self.offset < self._end and (segment := self._log.segment(slot)) is not None:
            if segment.base_offset >= self._end:
                self.offset = self._end  # compaction left nothing before it
                break
            if isinstance(self._visible, Committed):
                self._visible.read_from(slot)
            self._tally.add(files=1)
            yield from self._of(segment, self._first(segment) if slot == 0 else 0)
            segment.close()
            slot += 1

    def _first(self, segment: MappedSegment) -> int:
        return segment.position_near(self.offset, verify_crc=self._builder.verifies_crc)

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
                position, batch = self._next(segment, position, header)
            except RunnelError as error:
                raise ReadError(
                    f"{segment.path} from offset {self.offset} on cannot be decoded: {error};"
                    " look at it with `runnel storage verify`, or start after it"
                ) from None
            if batch is not None and batch.num_rows:
                yield batch

    def _next(
        self, segment: MappedSegment, position: int, header: BatchHeader
    ) -> "tuple[int, pa.RecordBatch | None]":
        """Where to go on, and the rows of the next few thousand records, if any may be wanted."""
        end, data = self._end, segment.data
        if self._stamps_ms is not None:
            seen = self._builder.stamps(data, position, self.offset, end)
            if not any_within(seen, *self._stamps_ms):
                return self._moved(seen, position), None
            end = min(end, seen.next_offset)
        columns = self._builder.decode(data, position, self.offset, end)
        batch = self._builder.build(columns, self._visible) if columns.row_count else None
        self._tally.add(records=columns.row_count)
        return self._moved(columns, position), batch

    def _moved(self, columns: RecordColumns, position: int) -> int:
        self.offset = columns.next_offset
        size = columns.position - position + self._bytes_of_part(columns)
        self._tally.add(file_bytes=size)
        return columns.position

    def _bytes_of_part(self, columns: RecordColumns) -> int:
        """Of the batch in whose middle the run ended: its CRC and its codec want all of it."""
        last = columns.batches[-1] if columns.batches else None
        if last is None or last.position != columns.position:
            return 0
        if self._builder.verifies_crc or last.header.attributes & COMPRESSION_MASK:
            return last.header.size
        return last.header.size * last.row_count // max(last.header.record_count, 1)
