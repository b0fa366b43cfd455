"""Records as Arrow lays them out: plain buffers that a caller may wrap without a copy.

Integers are in the machine's byte order, offsets of variable-size columns are int32 with one more
entry than there are rows, validity is one bit per row, lowest bit first, 1 for present.
`pyarrow.Array.from_buffers(type, rows, [validity, offsets, data])` takes a `BinaryColumn` as it
is. Nothing here imports pyarrow.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from runnel.ports import Readable
from runnel.wire.batch import BatchHeader


class ControlType(IntEnum):
    """The second int16 of a control record's key."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class Record(NamedTuple):
    """One record by itself. `offset` -1 means: the one after the record before."""

    key: bytes | None
    value: bytes | None
    timestamp: int = -1
    headers: Sequence[tuple[str, bytes | None]] = ()
    offset: int = -1


class BinaryColumn(NamedTuple):
    """`offsets` and `data` are empty if the decoder was told to leave the bytes out."""

    validity: bytearray
    null_count: int
    offsets: bytearray
    data: bytearray

    def values(self) -> list[bytes | None]:
        ends = memoryview(self.offsets).cast("i")
        with memoryview(self.data) as data:
            return [
                bytes(data[ends[row] : ends[row + 1]])
                if self.validity[row >> 3] >> (row & 7) & 1
                else None
                for row in range(len(ends) - 1)
            ]


class HeaderColumns(NamedTuple):
    """list<struct<key: string, value: binary>>: headers of row r are list_offsets[r : r + 1]."""

    list_offsets: bytearray
    keys: BinaryColumn  # no nulls, valid UTF-8
    values: BinaryColumn


class BatchRows(NamedTuple):
    """Which rows came from which batch or run of batches alike, for readers that hide aborted ones.

    `header` and `position` are those of the first.
    """

    header: BatchHeader
    position: int  # of the batch in the bytes given
    first_row: int
    row_count: int
    control: ControlType | None  # None for a batch of ordinary records
    payload_bytes: int  # of its records without compression


def runs_of(batches: Iterable[BatchRows]) -> list[tuple[int, int]]:
    """First row and number of rows of these batches, neighbours as one."""
    runs: list[tuple[int, int]] = []
    for batch in batches:
        if batch.row_count == 0:
            continue
        first, count = runs[-1] if runs else (batch.first_row, 0)
        if first + count == batch.first_row:
            runs[-1:] = [(first, count + batch.row_count)]
        else:
            runs.append((batch.first_row, batch.row_count))
    return runs


class RecordColumns(NamedTuple):
    """A run of records. To go on, decode from `position` with `from_offset=next_offset`."""

    row_count: int
    offsets: bytearray  # int64
    timestamps: bytearray  # int64, milliseconds
    keys: BinaryColumn
    values: BinaryColumn
    headers: HeaderColumns | None
    batches: list[BatchRows]
    position: int  # of the first batch not read to its end
    next_offset: int

    def rows(self) -> Iterator[Record]:
        """Record by record, for people to read; needs keys and values. Not a fast path."""
        headers = self._headers_by_row()
        columns = zip(
            self.keys.values(),
            self.values.values(),
            memoryview(self.timestamps).cast("q"),
            headers,
            memoryview(self.offsets).cast("q"),
            strict=True,
        )
        for row in columns:
            yield Record(*row)

    def _headers_by_row(self) -> list[list[tuple[str, bytes | None]]]:
        if self.headers is None:
            return [[] for _ in range(self.row_count)]
        keys = [(key or b"").decode() for key in self.headers.keys.values()]
        pairs = list(zip(keys, self.headers.values.values(), strict=True))
        ends = memoryview(self.headers.list_offsets).cast("i")
        return [pairs[ends[row] : ends[row + 1]] for row in range(self.row_count)]


class ArrowBinary(NamedTuple):
    """A column of bytes or strings that Arrow has made, as `Array.buffers()` and `.offset` say."""

    validity: Readable | None
    offsets: Readable
    data: Readable | None
    start: int  # of the rows in the buffers

    def value(self, row: int) -> bytes | None:
        row += self.start
        if self.validity is not None and not memoryview(self.validity)[row >> 3] >> (row & 7) & 1:
            return None
        ends = memoryview(self.offsets).cast("B").cast("i")
        return bytes(memoryview(self.data or b"")[ends[row] : ends[row + 1]])

    def values(self, row_count: int) -> list[bytes | None]:
        return [self.value(row) for row in range(row_count)]


class ArrowHeaders(NamedTuple):
    """list<struct<key: string, value: binary>> likewise; a null list is no headers."""

    validity: Readable | None
    offsets: Readable
    start: int
    names: ArrowBinary
    values: ArrowBinary

    def pairs(self, row: int) -> list[tuple[bytes | None, bytes | None]]:
        row += self.start
        if self.validity is not None and not memoryview(self.validity)[row >> 3] >> (row & 7) & 1:
            return []
        ends = memoryview(self.offsets).cast("B").cast("i")
        return [
            (self.names.value(at), self.values.value(at)) for at in range(ends[row], ends[row + 1])
        ]


class Payload(NamedTuple):
    """The records of a batch that is to be, without its header and not compressed."""

    data: bytearray
    record_count: int
    base_timestamp: int
    max_timestamp: int
