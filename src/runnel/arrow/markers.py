"""Which records were committed, told from the log alone: by the markers that come after them.

What a producer wrote in a transaction was aborted if the next marker of that producer says so. It
may lie past the end of the range and is looked for as far as need be; it is there, as a range of
committed records ends before the first transaction that is still open. The index of aborted
transactions is not asked: its file is behind while the segment is being written.
Headers are walked only once a transactional batch asks, so other topics pay nothing.
"""

from collections import deque
from struct import Struct
from typing import Final, NamedTuple

from runnel.arrow.mapped import GoneError, MappedLog, MappedSegment
from runnel.native.columns import BatchRows, RecordColumns, runs_of
from runnel.storage.transactions import read_marker
from runnel.wire.batch import (
    CONTROL,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
)

# Base offset, length, magic, attributes, producer id.
_FIELDS: Final = Struct(">qi4xb4xh20xq")


class UndecidedError(Exception):
    """No marker ends this transaction: it was still open."""


class _Ended(NamedTuple):
    offset: int
    is_commit: bool


class Committed:
    """Of one partition, whose batches are given in order."""

    def __init__(self, log: MappedLog) -> None:
        self._log = log
        self._slot = 0  # of the segment that is read
        self._at = (0, 0)  # slot and position of the batch that is walked next
        self._markers: dict[int, deque[_Ended]] = {}  # by producer id, those ahead

    def read_from(self, slot: int) -> None:
        """The columns that follow are of this segment."""
        self._slot = slot

    def visible_runs(self, columns: RecordColumns) -> list[tuple[int, int]]:
        """First row and number of rows of what is not aborted, neighbours as one.

        Raises UndecidedError, OSError, GoneError.
        """
        undecided = TRANSACTIONAL
        if not any(batch.header.attributes & undecided for batch in columns.batches):
            return [(0, columns.row_count)] if columns.row_count else []
        return runs_of(batch for batch in columns.batches if self._has_visible(batch))

    def is_visible(self, header: BatchHeader, position: int) -> bool:
        """Whether the records of this batch are not aborted. Raises as `visible_runs` does."""
        if not header.attributes & TRANSACTIONAL:
            return True
        return self._is_committed(header.producer_id, header.base_offset, position)

    def _has_visible(self, batch: BatchRows) -> bool:
        return not batch.row_count or self.is_visible(batch.header, batch.position)

    def _is_committed(self, producer_id: int, offset: int, position: int) -> bool:
        ahead = self._markers.setdefault(producer_id, deque())
        while ahead and ahead[0].offset < offset:
            ahead.popleft()
        if not ahead:
            self._at = max(self._at, (self._slot, position))
            self._walk_to_marker_of(producer_id)
        return ahead[0].is_commit

    def _walk_to_marker_of(self, wanted: int) -> None:
        slot, position = self._at
        while (segment := self._log.segment(slot)) is not None:
            position = self._walk(segment, position, wanted)
            self._at = slot, position
            if self._markers[wanted]:
                return
            if any(segment.data[position : position + HEADER_SIZE]) and self._log.segment(slot + 1):
                raise GoneError(f"{segment.path} is damaged: markers may lie behind")
            slot, position = slot + 1, 0
            self._at = slot, position
        raise UndecidedError(f"producer {wanted}")

    def _walk(self, segment: MappedSegment, position: int, wanted: int) -> int:
        """Note the markers up to the first of this producer; where to go on."""
        data, unpack = segment.data, _FIELDS.unpack_from
        end = len(data) - HEADER_SIZE
        while position <= end:
            base_offset, length, magic, attributes, producer_id = unpack(data, position)
            after: int = position + length + LOG_OVERHEAD
            if magic != MAGIC or after <= position or after > len(data):
                break
            if attributes & CONTROL and producer_id >= 0:
                marker = read_marker(data[position:after])
                if marker is not None:
                    ended = _Ended(base_offset, marker.is_commit)
                    self._markers.setdefault(producer_id, deque()).append(ended)
                    if producer_id == wanted:
                        return after
            position = after
        return position
