"""Records of a log, some together and compressed, as a segment of the index keeps them.

By LZ4: a search unpacks a block for nearly every line that it looks at, and zstd takes 15 us to
begin with, thrice as long as LZ4 for all of it. The index is a quarter larger so.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from struct import Struct
from typing import Final

import cramjam

from runnel.logs.filters import LogRecord

BLOCK_LINES: Final = 64  # a search looks at one of them and has to decompress all
BLOCK_BYTES: Final = 64 << 10  # of values; one larger record is a block by itself
BLOCK_BYTES_MAX: Final = 1 << 30
_COUNT: Final = Struct("<I")


def packed(records: Sequence[LogRecord]) -> bytes:
    """Offsets, timestamps and ends in columns, then the values: like stands beside like."""
    values = [record.value for record in records]
    columns = (
        array("q", [record.offset for record in records]),
        array("q", [record.timestamp_ms for record in records]),
        array("q", accumulate(map(len, values), initial=0)),
    )
    for column in columns:
        _swap(column)
    head = [_COUNT.pack(len(records)), *(column.tobytes() for column in columns)]
    return bytes(cramjam.lz4.compress_block(b"".join([*head, *values])))


class Block:
    """Decompressed; records are made of it when they are asked for."""

    def __init__(self, data: bytes, partition: int) -> None:
        """Raises ValueError or struct.error for bytes that are no block."""
        payload = _unpacked(data)
        (count,) = _COUNT.unpack_from(payload)
        columns = array("q")
        size = columns.itemsize * (3 * count + 1)
        columns.frombytes(payload[_COUNT.size : _COUNT.size + size])
        _swap(columns)
        self._offsets, self._stamps_ms = columns[:count], columns[count : 2 * count]
        self._ends = columns[2 * count :]
        self._values = payload[_COUNT.size + size :]
        self._partition = partition
        if not count or len(self._ends) != count + 1 or self._ends[-1] != len(self._values):
            raise ValueError("lengths that contradict each other")

    def __contains__(self, offset: int) -> bool:
        return self._offsets[0] <= offset <= self._offsets[-1]

    def record(self, offset: int) -> LogRecord:
        return self._at(bisect_left(self._offsets, offset))

    def records(self, low: int, high: int) -> list[LogRecord]:
        """Those with low <= offset < high, in order."""
        first, end = bisect_left(self._offsets, low), bisect_left(self._offsets, high)
        return [self._at(row) for row in range(first, end)]

    def _at(self, row: int) -> LogRecord:
        value = bytes(self._values[self._ends[row] : self._ends[row + 1]])
        return LogRecord(self._partition, self._offsets[row], self._stamps_ms[row], value)


def _unpacked(data: bytes) -> memoryview:
    (size,) = _COUNT.unpack_from(data)  # which the bytes themselves say
    if size > BLOCK_BYTES_MAX:
        raise ValueError(f"a block of {size} bytes")
    try:
        return memoryview(cramjam.lz4.decompress_block(data))
    except cramjam.DecompressionError as error:
        raise ValueError(str(error)) from None


def _swap(column: "array[int]") -> None:
    """Files have the lowest byte first, whatever machine this is."""
    if sys.byteorder == "big":
        column.byteswap()
