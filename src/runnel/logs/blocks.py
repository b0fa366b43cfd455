"""Records of a log, some hundred together and compressed, as a segment of the index keeps them."""

import sys
from array import array
from collections.abc import Sequence
from itertools import accumulate
from struct import Struct
from typing import Final

from runnel.logs.filters import LogRecord
from runnel.native.compression import Compression, compress, decompress

BLOCK_LINES: Final = 512
BLOCK_BYTES: Final = 256 << 10  # of values; one larger record is a block by itself
BLOCK_BYTES_MAX: Final = 1 << 30
_COUNT: Final = Struct("<I")


def packed(records: Sequence[LogRecord]) -> bytes:
    """Offsets, timestamps and lengths in columns, then the values: like stands beside like."""
    columns = [
        array("q", [record.offset for record in records]),
        array("q", [record.timestamp_ms for record in records]),
        array("I", [len(record.value) for record in records]),
    ]
    values = [record.value for record in records]
    payload = b"".join([_COUNT.pack(len(records)), *(_little(part) for part in columns), *values])
    return bytes(compress(Compression.ZSTD, payload, None))


def unpacked(data: bytes, partition: int) -> list[LogRecord]:
    """Raises RunnelError for bytes that are no block."""
    payload = memoryview(decompress(Compression.ZSTD, data, BLOCK_BYTES_MAX))
    (count,) = _COUNT.unpack_from(payload)
    at = _COUNT.size
    columns: list[array[int]] = []
    for kind in ("q", "q", "I"):
        column = array(kind)
        size = column.itemsize * count
        column.frombytes(payload[at : at + size])
        columns.append(_native(column))
        at += size
    offsets, stamps, lengths = columns
    ends = list(accumulate(lengths, initial=at))
    return [
        LogRecord(partition, offsets[row], stamps[row], bytes(payload[ends[row] : ends[row + 1]]))
        for row in range(count)
    ]


def _little(column: "array[int]") -> bytes:
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _native(column: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        column.byteswap()
    return column
