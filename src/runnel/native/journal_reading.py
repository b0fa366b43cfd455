"""A coordinator's journal read back: its records and markers, one after the other.

A journal is millions of batches of one record each, where the columns of `native.records` cost more
than they give. What a coordinator does not write (compression, headers) is left to those.
"""

from collections.abc import Container
from struct import Struct
from typing import Final

from runnel.errors import ErrorCode, RunnelError
from runnel.native.columns import ControlType
from runnel.native.records import decode
from runnel.wire.batch import (
    COMPRESSION_MASK,
    CONTROL,
    CRC_START,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    crc32c,
)

# Base offset, length, epoch, magic, crc, attributes, last offset delta, two times, producer id and
# epoch, sequence, count.
_unpack_header: Final = Struct(">qiibIhiqqqhii").unpack_from
_KIND_BYTES: Final = 2  # of a key, which say what record it is

# A key or a marker, a value, the producer's id or -1.
Step = tuple[bytes | ControlType, bytes | None, int]


class JournalReader:
    """Of one run of whole batches. `steps` is what is to be replayed, in its order.

    Of several records outside transactions with one key of a `straight` kind only the last is
    given, unless something else stands between them; and every tombstone, because that ends what
    such records in transactions wait for, too.
    """

    def __init__(self, straight: Container[bytes]) -> None:
        self._straight = straight
        self._last: dict[bytes, bytes] = {}
        self.steps: list[Step] = []

    def read(self, data: bytes, from_offset: int) -> int:
        """All in these bytes; the offset after them. Raises RunnelError for bad bytes."""
        position, next_offset = 0, from_offset
        view = memoryview(data)
        while len(data) - position >= HEADER_SIZE:
            fields = _unpack_header(data, position)
            base_offset: int = fields[0]
            length: int = fields[1]
            end = position + LOG_OVERHEAD + length
            if fields[3] != MAGIC or length < HEADER_SIZE - LOG_OVERHEAD or end > len(data):
                raise _corrupt(base_offset)
            if crc32c(view[position + CRC_START : end]) != fields[4]:
                raise _corrupt(base_offset)
            attributes: int = fields[5]
            if attributes & (COMPRESSION_MASK | CONTROL):
                self._read_slowly(data[position:end], from_offset)
            else:
                try:
                    self._read_plainly(
                        data, position + HEADER_SIZE, end, base_offset, fields[12], fields[9],
                        from_offset,
                    )  # fmt: skip
                except IndexError:
                    raise _corrupt(base_offset) from None
            last_delta: int = fields[6]
            next_offset = max(next_offset, base_offset + last_delta + 1)
            position = end
        self._give_last()
        return next_offset

    def _read_plainly(
        self,
        data: bytes,
        position: int,
        end: int,
        base_offset: int,
        count: int,
        producer_id: int,
        from_offset: int,
    ) -> None:
        for _ in range(count):
            size, position = _varint(data, position)
            record_end = position + size
            if size < 0 or record_end > end:
                raise IndexError
            _, position = _varint(data, position + 1)  # after the attributes: the time
            offset_delta, position = _varint(data, position)
            key_size, position = _varint(data, position)
            value_at = position + max(key_size, 0)
            value_size, after = _varint(data, value_at)
            if value_at > record_end or after + max(value_size, 0) >= record_end:
                raise IndexError  # one byte more is there: the count of headers
            if key_size >= 0 and base_offset + offset_delta >= from_offset:
                value = data[after : after + value_size] if value_size >= 0 else None
                self._add(data[position:value_at], value, producer_id)
            position = record_end

    def _read_slowly(self, batch: bytes, from_offset: int) -> None:
        columns = decode(
            batch, from_offset=from_offset, max_records=2**31 - 1, max_bytes=2**30, headers=False
        )
        for found in columns.batches:
            producer_id = found.header.producer_id
            if found.control is None:
                keys, values = columns.keys.values(), columns.values.values()
                for key, value in zip(keys, values, strict=True):
                    if key is not None:
                        self._add(key, value, producer_id)
            elif found.control in (ControlType.COMMIT, ControlType.ABORT):
                self._give_last()
                self.steps.append((found.control, None, producer_id))

    def _add(self, key: bytes, value: bytes | None, producer_id: int) -> None:
        if producer_id < 0 and key[:_KIND_BYTES] in self._straight:
            if value is not None:
                self._last[key] = value
            else:
                self._last.pop(key, None)
                self.steps.append((key, None, producer_id))
        else:
            self._give_last()
            self.steps.append((key, value, producer_id))

    def _give_last(self) -> None:
        if self._last:
            self.steps += [(key, value, -1) for key, value in self._last.items()]
            self._last.clear()


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Zigzag; and the position after it. Raises IndexError."""
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
    return (found >> 1) ^ -(found & 1), position


def _corrupt(offset: int) -> RunnelError:
    return RunnelError(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {offset} is damaged")
