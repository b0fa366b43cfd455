"""Looking inside record batches: decoding, validation, search by time, recompression.

All functions take whole v2 batches and never trust them: sizes and counts are checked against
the bytes that are there before anything is allocated. A header that contradicts itself, a wrong
CRC or a broken compressed stream is `CORRUPT_MESSAGE`; records that do not parse, or that a
client must not send, are `INVALID_RECORD`; an older format is `UNSUPPORTED_FOR_MESSAGE_FORMAT`.
They take time in proportion to the batch: keep large ones off the event loop.
"""

import struct
from typing import Final, NamedTuple

from runnel.errors import ErrorCode, RunnelError
from runnel.native import backend
from runnel.native.columns import (
    BatchRows,
    BinaryColumn,
    ControlType,
    HeaderColumns,
    RecordColumns,
)
from runnel.native.compression import (
    MAX_DECOMPRESSED_BYTES,
    Compression,
    codec_of,
    compress,
    decompress,
)
from runnel.ports import Readable
from runnel.wire.batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    crc32c,
    crc_is_right,
)
from runnel.wire.crc import Crc32c

COMPILED: Final = backend.COMPILED  # whether the fast decoder is there; the broker logs it
MAX_OFFSET: Final = (1 << 63) - 1
MAX_COLUMN_BYTES: Final = (1 << 31) - 1  # the offsets of a column are int32
MIN_RECORD_BYTES: Final = 7
_NOT_IN_RUN: Final = COMPRESSION_MASK | CONTROL
_CONTROL_TYPES: Final = frozenset(ControlType)


class BatchSummary(NamedTuple):
    """What validation learned. Timestamps are -1 where no record has one."""

    record_count: int
    min_timestamp: int  # of the records that have a timestamp
    max_timestamp: int
    offset_of_max_timestamp: int  # -1 if no record has a timestamp
    compression: Compression
    decompressed_bytes: int


def decode(
    data: Readable,
    *,
    position: int = 0,
    from_offset: int = 0,
    up_to_offset: int = MAX_OFFSET,
    max_records: int,
    max_bytes: int,
    keys: bool = True,
    values: bool = True,
    headers: bool = True,
    control: bool = False,
    verify_crc: bool = True,
    runs: bool = False,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> RecordColumns:
    """The records of the batches from `position` on with from_offset <= offset < up_to_offset.

    Stops before `max_records` or `max_bytes` of keys, values and headers would be exceeded, in
    the middle of a batch if need be, though never before the first record; also before a batch
    that is not whole, as a fetch may end with one. Control records are left out unless `control`
    is set; their batches are in `batches` all the same.

    With `runs`, neighbours that a reader treats alike may be one entry of `batches`, with the
    header of the first: same attributes, and same producer if transactional. That is many times
    faster for batches of a few kilobytes.
    """
    assert max_records > 0 and max_decompressed_bytes <= MAX_COLUMN_BYTES
    max_bytes = min(max_bytes, MAX_COLUMN_BYTES)
    columns = backend.Columns(keys, values, headers, len(data) - position)
    batches: list[BatchRows] = []
    next_offset = from_offset
    view = memoryview(data)
    while columns.row_count < max_records:
        header = _whole_batch_at(view, position)
        if header is None or header.base_offset >= up_to_offset:
            break
        end = position + header.size
        if runs and not header.attributes & _NOT_IN_RUN:
            after, reached, stopped_before = _take_run(
                *(columns, batches, header, view, position),
                *(from_offset, up_to_offset, max_records, max_bytes),
                crc32c if verify_crc else None,
            )
            if stopped_before >= 0:
                position, next_offset = after, stopped_before
                break
            if after > position:
                position, next_offset = after, max(next_offset, reached)
                continue
        if header.last_offset >= from_offset:
            if verify_crc:
                _ensure_crc(header, view, position)
            payload = payload_of(header, view[position + HEADER_SIZE : end], max_decompressed_bytes)
            marker = _control_type(header, payload)
            first_row, stopped_before = columns.row_count, -1
            if control or marker is None:
                stopped_before = columns.append(
                    header, payload, from_offset, up_to_offset, max_records, max_bytes
                )
            rows = columns.row_count - first_row
            batches.append(BatchRows(header, position, first_row, rows, marker, len(payload)))
            if stopped_before >= 0:
                next_offset = stopped_before
                break
        next_offset = max(next_offset, header.next_offset)
        position = end
    row_count = columns.row_count
    offsets, timestamps, key, value, found = columns.finish()
    found = None if found is None else _with_valid_keys(found)
    return RecordColumns(
        row_count, offsets, timestamps, key, value, found, batches, position, next_offset
    )


def _take_run(
    columns: backend.Columns,
    batches: list[BatchRows],
    header: BatchHeader,
    view: memoryview,
    position: int,
    from_offset: int,
    up_to_offset: int,
    max_records: int,
    max_bytes: int,
    crc: Crc32c | None,
) -> tuple[int, int, int]:
    """Where the run ends, the offset after it, the offset of the record it stopped before or -1."""
    first_row = columns.row_count
    after, reached, stopped_before, size = columns.append_run(
        view, position, from_offset, up_to_offset, max_records, max_bytes, crc
    )
    if size:
        rows = columns.row_count - first_row
        batches.append(BatchRows(header, position, first_row, rows, None, size))
    return after, reached, stopped_before


def validate(
    batch: Readable, *, require_keys: bool, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> BatchSummary:
    """Check every record of one batch from a client, whose CRC the caller has checked."""
    header, payload = _open(batch, max_decompressed_bytes)
    if header.record_count == 0 or header.last_offset_delta != header.record_count - 1:
        raise _invalid(
            header, f"{header.record_count} records, offsets 0 to {header.last_offset_delta}"
        )
    timestamps = backend.scan(header, payload, True, require_keys)
    return BatchSummary(header.record_count, *timestamps, codec_of(header.attributes), len(payload))


def first_at_or_after(
    batch: Readable, timestamp: int, from_offset: int = 0
) -> tuple[int, int] | None:
    """Offset and timestamp of the first record from `from_offset` on that is not earlier."""
    header, payload = _open(batch, MAX_DECOMPRESSED_BYTES)
    return backend.find(header, payload, timestamp, from_offset)


def max_timestamp(batch: Readable) -> tuple[int, int]:
    """Offset and timestamp of the latest record, the first of equals; -1 and -1 if none has one."""
    header, payload = _open(batch, MAX_DECOMPRESSED_BYTES)
    _, latest, offset = backend.scan(header, payload, False, False)
    return offset, latest


def recompress(
    batch: Readable,
    codec: Compression,
    level: int | None = None,
    *,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> bytearray:
    """The same records under another codec; attributes, length and CRC are made anew."""
    header, payload = _open(batch, max_decompressed_bytes)
    attributes = header.attributes & ~COMPRESSION_MASK | codec
    return header.changed(attributes=attributes).write(compress(codec, payload, level))


def _whole_batch_at(data: memoryview, position: int) -> BatchHeader | None:
    if len(data) - position < HEADER_SIZE:
        return None
    header = BatchHeader.read(data, position)
    if header.magic != MAGIC:
        raise RunnelError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"message format {header.magic} is not read"
        )
    if header.length < HEADER_SIZE - LOG_OVERHEAD:
        raise _corrupt(header, f"its length is {header.length}")
    if header.length > len(data) - position - LOG_OVERHEAD:
        return None
    if header.base_offset < 0 or header.last_offset_delta < 0 or header.last_offset >= MAX_OFFSET:
        raise _corrupt(header, f"its offsets end at {header.last_offset_delta} after the first")
    return header


def _open(batch: Readable, max_decompressed_bytes: int) -> tuple[BatchHeader, Readable]:
    """Header and records of what must be exactly one batch."""
    view = memoryview(batch)
    header = _whole_batch_at(view, 0)
    if header is None or header.size != len(view):
        raise RunnelError(ErrorCode.CORRUPT_MESSAGE, f"{len(view)} bytes are not one batch")
    return header, payload_of(header, view[HEADER_SIZE:], max_decompressed_bytes)


def payload_of(
    header: BatchHeader, records: memoryview, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> Readable:
    """The records without compression; a count that cannot be true is refused."""
    payload: Readable = records
    if header.record_count == 0:
        return b""  # what compaction leaves to remember a producer
    if header.attributes & COMPRESSION_MASK:
        payload = decompress(codec_of(header.attributes), records, max_decompressed_bytes)
    if not 0 < header.record_count <= len(payload) // MIN_RECORD_BYTES:
        raise _invalid(header, f"{header.record_count} records in {len(payload)} bytes")
    return payload


def _ensure_crc(header: BatchHeader, data: memoryview, position: int) -> None:
    if not crc_is_right(header, data, position):
        raise _corrupt(header, "its CRC is wrong")


def _control_type(header: BatchHeader, payload: Readable) -> ControlType | None:
    """None for a batch of ordinary records."""
    if not header.attributes & CONTROL:
        return None
    if header.record_count == 0:
        return ControlType.UNKNOWN
    first = backend.Columns(True, False, False)
    first.append(header, payload, 0, MAX_OFFSET, 1, MAX_COLUMN_BYTES)
    key = first.finish()[2].data
    if len(key) < 4:
        raise _invalid(header, "a control record has no type")
    number: int = struct.unpack_from(">h", key, 2)[0]
    return ControlType(number) if number in _CONTROL_TYPES else ControlType.UNKNOWN


def _with_valid_keys(headers: HeaderColumns) -> HeaderColumns:
    """Arrow's strings must be UTF-8 and Kafka's need not be: as Java does, replace what is not."""
    if headers.keys.data.isascii():
        return headers
    keys = [(key or b"").decode(errors="replace").encode() for key in headers.keys.values()]
    ends = [0]
    for key in keys:
        ends.append(ends[-1] + len(key))
    if ends[-1] > MAX_COLUMN_BYTES:  # a replacement is three bytes long
        raise RunnelError(ErrorCode.MESSAGE_TOO_LARGE, "header keys exceed one column")
    offsets = bytearray(struct.pack(f"={len(ends)}i", *ends))
    column = BinaryColumn(headers.keys.validity, 0, offsets, bytearray(b"".join(keys)))
    return headers._replace(keys=column)


def _corrupt(header: BatchHeader, why: str) -> RunnelError:
    return RunnelError(
        ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {header.base_offset} is corrupt: {why}"
    )


def _invalid(header: BatchHeader, why: str) -> RunnelError:
    return RunnelError(
        ErrorCode.INVALID_RECORD, f"the batch at offset {header.base_offset} is invalid: {why}"
    )
