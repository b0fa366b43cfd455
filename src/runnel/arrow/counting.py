"""How many records a range has, by the headers of its batches: nothing in them is decompressed.

A header says how many records its batch has, after compaction too. Where that does not suffice the
records are looked at after all: in a batch that lies across an end of the range, and where many
small ones follow each other, of which the decoder does thousands in the time of a few headers.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from runnel.arrow.mapped import MappedSegment
from runnel.arrow.markers import Committed
from runnel.arrow.rows import BATCH_ROWS
from runnel.arrow.segment_reading import SegmentReader
from runnel.wire.batch import COMPRESSION_MASK, CONTROL, HEADER_SIZE, BatchHeader

if TYPE_CHECKING:
    import pyarrow as pa

SMALL_BATCH_BYTES: Final = 1024
MANY: Final = 64  # small batches after each other, from which on more are presumed to follow


class BatchCounter(SegmentReader):
    """Gives batches of the two columns that are the same in all rows: topic and partition."""

    _small = 0  # how many small batches came last

    def _of(self, segment: MappedSegment, position: int) -> "Iterator[pa.RecordBatch]":
        segment.read_sparsely()
        yield from super()._of(segment, position)

    def _next(
        self, segment: MappedSegment, position: int, header: BatchHeader
    ) -> "tuple[int, pa.RecordBatch | None]":
        count = looked_at = 0
        found: BatchHeader | None = header
        while found is not None and count < BATCH_ROWS and self._suffices(found):
            count += self._count(found, position)
            looked_at += 1
            position, self.offset = position + found.size, found.next_offset
            found = segment.header_at(position)
        if not looked_at:
            self._small = MANY // 2
            return super()._next(segment, position, header)
        self._tally.add(file_bytes=looked_at * HEADER_SIZE, counted_records=count)
        return position, self._builder.constant(count) if count else None

    def _suffices(self, header: BatchHeader) -> bool:
        is_small = header.size < SMALL_BATCH_BYTES and not header.attributes & COMPRESSION_MASK
        self._small = self._small + 1 if is_small else 0
        is_within = header.base_offset >= self.offset and header.next_offset <= self._end
        return is_within and self._small < MANY

    def _count(self, header: BatchHeader, position: int) -> int:
        if header.attributes & CONTROL or header.record_count <= 0:
            return 0
        is_visible = not isinstance(self._visible, Committed) or self._visible.is_visible(
            header, position
        )
        return header.record_count if is_visible else 0
