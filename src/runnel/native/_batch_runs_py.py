"""Runs of batches without a Python object for each, in Python: the twin of `_batch_runs.pyx`.

A run ends where something comes that needs a closer look. That is not always damage, so whoever
asked looks at the next batch by itself.
"""

from collections.abc import Container
from typing import Final

from runnel.native.faults import damaged
from runnel.native.journal_steps import Step, add_record
from runnel.native.scanned import IndexEntry, Run, Scanned, ScanRules
from runnel.wire.batch import (
    COMPRESSION_MASK,
    CONTROL,
    CRC_START,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    crc32c,
)
from runnel.wire.hot import BATCH_HEADER

# Base offset, length, epoch, magic, crc, attributes, last offset delta, two times, producer id and
# epoch, sequence, count.
_unpack_header: Final = BATCH_HEADER.unpack_from
_OFFSET_MAX: Final = 2**62  # so that no sum of offsets needs more than 64 bits


def scan_run(data: bytes, data_position: int, rules: ScanRules, before: Scanned) -> Run:
    """Batches that follow those before in offset and in the same epoch, whole and with their CRC.

    `data` is what the file has at `data_position`. A marker ends the run.
    """
    position, next_offset, leader_epoch, indexed, max_timestamp, max_offset = before
    entries: list[IndexEntry] = []
    produced: list[int] = []
    view, at = memoryview(data), position - data_position
    while at + HEADER_SIZE <= len(data):
        fields = _unpack_header(data, at)
        base_offset, length, last_delta = fields[0], fields[1], fields[6]
        end = at + LOG_OVERHEAD + length
        last_offset = base_offset + last_delta
        if (
            length < HEADER_SIZE - LOG_OVERHEAD
            or end > len(data)
            or fields[3] != MAGIC
            or fields[5] & CONTROL
            or fields[2] != leader_epoch
            or last_delta < 0
            or base_offset < next_offset
            or (base_offset > next_offset and base_offset > rules.gaps_before)
            or last_offset > rules.last_offset_max
            or crc32c(view[at + CRC_START : end]) != fields[4]
        ):
            break
        position = data_position + at
        if fields[8] > max_timestamp:
            max_timestamp, max_offset = fields[8], last_offset
        if position - indexed > rules.index_interval_bytes:
            entries.append(IndexEntry(last_offset, position, max_timestamp, max_offset))
            indexed = position
        if fields[9] >= 0:
            produced.append(position)
        next_offset, at = last_offset + 1, end
    after = Scanned(
        data_position + at, next_offset, leader_epoch, indexed, max_timestamp, max_offset
    )
    return Run(after, entries, produced)


def read_run(
    data: bytes,
    position: int,
    from_offset: int,
    straight: Container[bytes],
    last: dict[bytes, bytes],
    steps: list[Step],
) -> tuple[int, int]:
    """Records of a journal, to the end or to a batch that is compressed or a marker.

    Where it stopped, and the offset after the batches before. What the records are goes to `last`
    and `steps`, see `journal_steps.py`. Raises RunnelError for bad bytes.
    """
    next_offset = from_offset
    view = memoryview(data)
    while len(data) - position >= HEADER_SIZE:
        fields = _unpack_header(data, position)
        base_offset, length = fields[0], fields[1]
        end = position + LOG_OVERHEAD + length
        if (
            fields[3] != MAGIC
            or length < HEADER_SIZE - LOG_OVERHEAD
            or end > len(data)
            or not 0 <= base_offset <= _OFFSET_MAX
            or crc32c(view[position + CRC_START : end]) != fields[4]
        ):
            raise damaged(base_offset)
        if fields[5] & (COMPRESSION_MASK | CONTROL):
            break
        at = position + HEADER_SIZE
        try:
            for _ in range(fields[12]):
                offset_delta, key, value, at = _record(data, at, end)
                if key is not None and base_offset + offset_delta >= from_offset:
                    add_record(key, value, fields[9], straight, last, steps)
        except IndexError:
            raise damaged(base_offset) from None
        next_offset = max(next_offset, base_offset + fields[6] + 1)
        position = end
    return position, next_offset


def _record(data: bytes, at: int, end: int) -> tuple[int, bytes | None, bytes | None, int]:
    """Its offset delta, key and value, and the position after it. Raises IndexError."""
    size, at = _varint(data, at)
    record_end = at + size
    if size < 0 or record_end > end:
        raise IndexError
    _, at = _varint(data, at + 1)  # after the attributes: the time
    offset_delta, at = _varint(data, at)
    key_size, at = _varint(data, at)
    value_at = at + max(key_size, 0)
    value_size, after = _varint(data, value_at)
    if value_at > record_end or after + max(value_size, 0) >= record_end:
        raise IndexError  # one byte more is there: the count of headers
    key = data[at:value_at] if key_size >= 0 else None
    value = data[after : after + value_size] if value_size >= 0 else None
    return offset_delta, key, value, record_end


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Zigzag, 64 bits; and the position after it. Raises IndexError."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    found, shift = byte & 0x7F, 7
    while byte >= 0x80:
        byte = data[position]
        position += 1
        found |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            raise IndexError
    if found >= 1 << 64:
        raise IndexError
    return (found >> 1) ^ -(found & 1), position
