"""The rows of a range out of segment files that are open: decoded batch by batch, in order."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from runnel.arrow.losses import ReadError
from runnel.arrow.mapped import GoneError, MappedLog, MappedSegment
from runnel.arrow.markers import Committed
from runnel.arrow.ranges import Range, Scan
from runnel.arrow.rows import RowBuilder, any_within
from runnel.arrow.tally import Tally
from runnel.client.aborted import Aborted
from runnel.errors import RunnelError
from runnel.native.columns import RecordColumns
from runnel.wire.batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    BatchHeader,
)

if TYPE_CHECKING:
    import pyarrow as pa

STRETCH: Final = 1024  # batches whose headers are looked at before they are decoded


class SegmentReader:
    """`offset` is the first that was not given yet."""

    def __init__(self, scan: Scan, piece: Range, log: MappedLog, tally: Tally) -> None:
        self.offset = piece.start
        self.folder = log.folder
        self._end = piece.end
        self._log = log
        self._builder = RowBuilder(scan, piece.topic, piece.partition)
        self._stamps_ms = scan.timestamps_ms
        self._times = scan.timestamps_ms if scan.believes_headers else None
        self._visible = Committed(log) if scan.read_committed else Aborted(None)
        self._tally = tally
        self._touched = 0  # up to this position of the segment, and counted
        self._bytes_left = 0  # of the segment, where no batch stands any more

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
            self._touched = 0
            yield from self._of(segment, self._first(segment) if slot == 0 else 0)
            segment.close()
            slot += 1
            self._ensure_whole(segment, slot)

    def _first(self, segment: MappedSegment) -> int:
        return segment.position_near(self.offset, verify_crc=self._builder.verifies_crc)

    def _ensure_whole(self, segment: MappedSegment, next_slot: int) -> None:
        """Raises GoneError where a batch cannot be read and others follow it.

        At the end of the log a part of one is normal: it is being written, or a crash left it.
        """
        if self._bytes_left == 0 or self.offset >= self._end:
            return
        follower = self._log.segment(next_slot)
        if follower is not None and follower.base_offset > self.offset:
            raise GoneError(
                f"{segment.path} is damaged {self._bytes_left} bytes before its end, from offset"
                f" {self.offset} on"
            )

    def _of(self, segment: MappedSegment, position: int) -> "Iterator[pa.RecordBatch]":
        self._bytes_left = 0
        while self.offset < self._end:
            segment.read_up_to(position)
            header = segment.header_at(position)
            if header is None:  # the end of the file, or of what was written of it
                self._bytes_left = len(segment.data) - position
                return
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
        if self._times is not None:
            first, end = self._stretch(segment, position, header)
            if first > position:
                return first, None
        elif self._stamps_ms is not None:
            seen = self._builder.stamps(data, position, self.offset, end)
            if not any_within(seen, *self._stamps_ms):
                return self._moved(seen, position, segment), None
            end = min(end, seen.next_offset)
        columns = self._builder.decode(data, position, self.offset, end)
        batch = self._builder.build(columns, self._visible) if columns.row_count else None
        self._tally.add(records=columns.row_count)
        return self._moved(columns, position, segment), batch

    def _stretch(
        self, segment: MappedSegment, position: int, header: BatchHeader
    ) -> tuple[int, int]:
        """Past batches of other times; or up to which offset the next few are not such."""
        found: BatchHeader | None = header
        is_outside, first, looked_at = self._is_outside(header), position, 0
        while (
            found is not None
            and looked_at < STRETCH
            and found.base_offset < self._end
            and self._is_outside(found) is is_outside
        ):
            position, looked_at, offset = position + found.size, looked_at + 1, found.next_offset
            found = segment.header_at(position)
        if not is_outside:
            return first, min(self._end, offset)
        self._tally.add(file_bytes=looked_at * HEADER_SIZE)
        self.offset = max(self.offset, offset)
        return position, self._end

    def _is_outside(self, header: BatchHeader) -> bool:
        assert self._times is not None
        least_ms, most_ms = self._times
        first_ms, latest_ms = header.base_timestamp, header.max_timestamp
        if header.attributes & LOG_APPEND_TIME:
            first_ms = latest_ms
        elif header.attributes & DELETE_HORIZON:
            first_ms = most_ms  # it is not told
        return latest_ms < least_ms or first_ms - (latest_ms - first_ms) > most_ms

    def _moved(self, columns: RecordColumns, position: int, segment: MappedSegment) -> int:
        """Where to go on. A batch that is taken up again is counted once."""
        self.offset = columns.next_offset
        touched = columns.position + self._bytes_of_part(segment, columns)
        self._tally.add(file_bytes=max(0, touched - max(position, self._touched)))
        self._touched = touched
        return columns.position

    def _bytes_of_part(self, segment: MappedSegment, columns: RecordColumns) -> int:
        """Of the batch in whose middle the run ended: its CRC and its codec want all of it."""
        header = segment.header_at(columns.position)
        if header is None or header.base_offset >= columns.next_offset:
            return 0
        if self._builder.verifies_crc or header.attributes & COMPRESSION_MASK:
            return header.size
        taken = columns.next_offset - header.base_offset
        return header.size * taken // (header.last_offset_delta + 1)
