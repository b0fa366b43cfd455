"""The record decoder in plain Python: the twin of `_records.pyx`, one test suite for both.

A record, after the varint of its own length: attributes int8, timestamp delta varlong, offset
delta varint, key length varint and key, value length varint and value, header count varint, then
per header key length, key, value length, value. Varints are zigzag; one of 5 bytes (10 for a
varlong) may carry more bits than fit, which Kafka drops, and so do we. A negative length is null.
Every read is checked against the end of its record, and that against the end of the payload.
"""

from array import array
from collections.abc import Container, Iterator
from typing import Final, NamedTuple

from runnel.native import faults
from runnel.native.columns import BinaryColumn, HeaderColumns
from runnel.ports import Readable
from runnel.wire.batch import LOG_APPEND_TIME, BatchHeader
from runnel.wire.crc import Crc32c

Target = tuple[int, int, int, int]  # see `_records.pyx: retain_plain`

_NO_TIMESTAMP: Final = -1
_VARINT_BYTES: Final = 5
_VARLONG_BYTES: Final = 10


class _Bytes(NamedTuple):
    """A key or value; `size` is negative for null."""

    start: int
    size: int


class _Fields(NamedTuple):
    timestamp_delta: int
    offset_delta: int
    key: _Bytes
    value: _Bytes
    headers: list[tuple[_Bytes, _Bytes]]
    end: int


class _Fault(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def unwritten(size: int) -> bytearray:
    """A buffer whose content nobody reads before writing it."""
    return bytearray(size)


class _Column:
    """A growing BinaryColumn."""

    def __init__(self, copied: bool) -> None:
        self._copied = copied
        self._present = bytearray()  # a byte per row until the end
        self._ends = array("i", [0])
        self._data = bytearray()

    def append(self, payload: memoryview, field: _Bytes) -> None:
        self._present.append(field.size >= 0)
        if self._copied:
            self._data += payload[field.start : field.start + max(0, field.size)]
            self._ends.append(len(self._data))

    def finish(self) -> BinaryColumn:
        validity = bytearray((len(self._present) + 7) // 8)
        for row, present in enumerate(self._present):
            validity[row >> 3] |= present << (row & 7)
        ends = self._ends if self._copied else array("i")
        return BinaryColumn(validity, self._present.count(0), bytearray(ends.tobytes()), self._data)


class Columns:
    """Rows appended batch by batch. After an exception the object is of no use any more.

    `likely_bytes` of values are expected in all; only the compiled twin makes use of that.
    """

    def __init__(self, keys: bool, values: bool, headers: bool, likely_bytes: int = 0) -> None:
        self.row_count = 0
        self.data_bytes = 0
        self._with = (keys, values, headers)
        self._offsets = array("q")
        self._timestamps = array("q")
        self._keys = _Column(keys)
        self._values = _Column(values)
        self._list_ends = array("i", [0])
        self._header_keys = _Column(True)
        self._header_values = _Column(True)
        self._header_count = 0

    def append(
        self,
        header: BatchHeader,
        payload: Readable,
        from_offset: int,
        up_to_offset: int,
        max_records: int,
        max_bytes: int,
    ) -> int:
        """Read one batch; the offset of the record it stopped before, or -1 at its end.

        It stops at `up_to_offset`, at `max_records` rows in all and before the data grow beyond
        `max_bytes`, though never before the first row.
        """
        with memoryview(payload) as view:
            for fields, timestamp in _records(header, view):
                offset = header.base_offset + fields.offset_delta
                if offset < from_offset:
                    continue
                size = self._size(fields)
                full = self.row_count >= max_records or (
                    self.row_count > 0 and self.data_bytes + size > max_bytes
                )
                if full or offset >= up_to_offset:
                    return offset
                self._offsets.append(offset)
                self._timestamps.append(timestamp)
                self._append_bytes(view, fields)
                self.row_count += 1
                self.data_bytes += size
        return -1

    def append_run(
        self,
        data: Readable,
        position: int,
        from_offset: int,
        up_to_offset: int,
        max_records: int,
        max_bytes: int,
        crc32c: Crc32c | None,
    ) -> tuple[int, int, int, int]:
        """The compiled twin takes whole runs of batches here; one by one they fare the same."""
        return position, from_offset, -1, 0

    def finish(
        self,
    ) -> tuple[bytearray, bytearray, BinaryColumn, BinaryColumn, HeaderColumns | None]:
        headers = None
        if self._with[2]:
            headers = HeaderColumns(
                bytearray(self._list_ends.tobytes()),
                self._header_keys.finish(),
                self._header_values.finish(),
            )
        return (
            bytearray(self._offsets.tobytes()),
            bytearray(self._timestamps.tobytes()),
            self._keys.finish(),
            self._values.finish(),
            headers,
        )

    def _size(self, fields: _Fields) -> int:
        keys, values, headers = self._with
        size = max(0, fields.key.size) if keys else 0
        size += max(0, fields.value.size) if values else 0
        if headers:
            size += sum(key.size + max(0, value.size) for key, value in fields.headers)
        return size

    def _append_bytes(self, view: memoryview, fields: _Fields) -> None:
        self._keys.append(view, fields.key)
        self._values.append(view, fields.value)
        if self._with[2]:
            for key, value in fields.headers:
                self._header_keys.append(view, key)
                self._header_values.append(view, value)
            self._header_count += len(fields.headers)
            self._list_ends.append(self._header_count)


def scan(
    header: BatchHeader, payload: Readable, consecutive: bool, require_keys: bool
) -> tuple[int, int, int]:
    """Check every record; the least and the greatest timestamp, and the offset of the latter.

    Records without a timestamp (-1) do not count for the least. The first of equals wins.
    """
    least = greatest = offset_of_greatest = _NO_TIMESTAMP
    with memoryview(payload) as view:
        for index, (fields, timestamp) in enumerate(_records(header, view)):
            if consecutive and fields.offset_delta != index:
                raise faults.fault(faults.NOT_CONSECUTIVE, index, header.base_offset)
            if require_keys and fields.key.size < 0:
                raise faults.fault(faults.NO_KEY, index, header.base_offset)
            if timestamp > greatest:
                greatest = timestamp
                offset_of_greatest = header.base_offset + fields.offset_delta
            if timestamp != _NO_TIMESTAMP and (least == _NO_TIMESTAMP or timestamp < least):
                least = timestamp
    return least, greatest, offset_of_greatest


def find(
    header: BatchHeader, payload: Readable, timestamp: int, from_offset: int
) -> tuple[int, int] | None:
    """Offset and timestamp of the first record from `from_offset` on that is not earlier."""
    with memoryview(payload) as view:
        for fields, at in _records(header, view):
            offset = header.base_offset + fields.offset_delta
            if at >= timestamp and offset >= from_offset:
                return offset, at
    return None


class OffsetMap:
    """The last offset of each key, for as many keys as the compiled twin has room for."""

    def __init__(self, slots: int, load_factor: float, seed: bytes) -> None:
        assert slots > 1 and 0 < load_factor < 1 and len(seed) == 16
        self.key_count_max = max(1, int(slots * load_factor))
        self._offsets: dict[bytes, int] = {}

    @property
    def key_count(self) -> int:
        return len(self._offsets)

    def add(self, header: BatchHeader, payload: Readable, from_offset: int) -> int:
        """Remember the keys of a batch; the offset of the first that found no room, or -1."""
        with memoryview(payload) as view:
            for fields, _timestamp in _records(header, view):
                offset = header.base_offset + fields.offset_delta
                if fields.key.size < 0 or offset < from_offset:
                    continue
                key = _content(view, fields.key)
                if key not in self._offsets and self.key_count >= self.key_count_max:
                    return offset
                self._offsets[key] = offset
        return -1

    def retain(
        self, header: BatchHeader, payload: Readable, up_to_offset: int, drop_tombstones: bool
    ) -> tuple[int, int, int, bytearray]:
        """The records that stay: count, tombstones among them, largest timestamp, their bytes.

        Of those before `up_to_offset` a record stays if the map knows no later one of its key;
        one without a key does not.
        """
        count, tombstones, max_timestamp, out = 0, 0, _NO_TIMESTAMP, bytearray()
        with memoryview(payload) as view:
            start = 0
            for fields, timestamp in _records(header, view):
                offset, at, start = header.base_offset + fields.offset_delta, start, fields.end
                if offset < up_to_offset and (
                    fields.key.size < 0
                    or offset < self._offsets.get(_content(view, fields.key), -1)
                    or (fields.value.size < 0 and drop_tombstones)
                ):
                    continue
                count += 1
                tombstones += fields.value.size < 0
                max_timestamp = max(max_timestamp, timestamp)
                out += view[at : fields.end]
        return count, tombstones, max_timestamp, out

    def add_plain(
        self, chunk: Readable, position: int, from_offset: int, crc32c: Crc32c
    ) -> tuple[int, int]:
        """The compiled twin takes whole runs of batches here; one by one they fare the same."""
        return position, -1

    def retain_plain(
        self,
        chunk: Readable,
        position: int,
        up_to_offset: int,
        end_offset: int,
        now_ms: int,
        producers: Container[int],
        crc32c: Crc32c,
        interval_bytes: int,
        target: Target,
    ) -> tuple[int, bytearray, list[Target], Target]:
        """As `add_plain`: this one leaves every batch to its caller."""
        return position, bytearray(), [], target


def rebased(header: BatchHeader, payload: Readable, base_timestamp: int) -> bytearray:
    """The same records, their times counted from another base."""
    out, start = bytearray(), 0
    with memoryview(payload) as view:
        for fields, _timestamp in _records(header, view):
            _size, at = _varint(view, start, len(view))
            _delta, rest = _varint(view, at + 1, fields.end, _VARLONG_BYTES)
            delta = _as_int64(header.base_timestamp + fields.timestamp_delta - base_timestamp)
            body = bytes(view[at : at + 1]) + _zigzag(delta) + bytes(view[rest : fields.end])
            out += _zigzag(len(body)) + body
            start = fields.end
    return out


def _content(payload: memoryview, field: _Bytes) -> bytes:
    return bytes(payload[field.start : field.start + field.size])


def _zigzag(value: int) -> bytes:
    value = value << 1 ^ value >> 63
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _records(header: BatchHeader, payload: memoryview) -> Iterator[tuple[_Fields, int]]:
    position = 0
    appended_at = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    for index in range(header.record_count):
        try:
            fields = _read(payload, position)
        except _Fault as found:
            raise faults.fault(found.number, index, header.base_offset) from None
        if not 0 <= fields.offset_delta <= header.last_offset_delta:
            raise faults.fault(faults.OFFSET_DELTA, index, header.base_offset)
        position = fields.end
        timestamp = appended_at
        if timestamp is None:
            timestamp = _as_int64(header.base_timestamp + fields.timestamp_delta)
        yield fields, timestamp
    if position != len(payload):
        raise faults.fault(faults.TRAILING, header.record_count, header.base_offset)


def _read(payload: memoryview, position: int) -> _Fields:
    size, position = _varint(payload, position, len(payload))
    if not 0 <= size <= len(payload) - position:
        raise _Fault(faults.LENGTH)
    end = position + size
    if size == 0:
        raise _Fault(faults.TRUNCATED)  # no room for the attributes
    timestamp_delta, position = _varint(payload, position + 1, end, _VARLONG_BYTES)
    offset_delta, position = _varint(payload, position, end)
    key, position = _bytes(payload, position, end, faults.KEY)
    value, position = _bytes(payload, position, end, faults.VALUE)
    header_count, position = _varint(payload, position, end)
    if not 0 <= header_count <= (end - position) // 2:  # a header takes two bytes at least
        raise _Fault(faults.HEADER_COUNT)
    headers = []
    for _ in range(header_count):
        header_key, position = _bytes(payload, position, end, faults.HEADER)
        if header_key.size < 0:
            raise _Fault(faults.HEADER)
        header_value, position = _bytes(payload, position, end, faults.HEADER)
        headers.append((header_key, header_value))
    if position != end:
        raise _Fault(faults.SURPLUS)
    return _Fields(timestamp_delta, offset_delta, key, value, headers, end)


def _bytes(payload: memoryview, position: int, end: int, fault: int) -> tuple[_Bytes, int]:
    size, position = _varint(payload, position, end)
    if size > end - position:
        raise _Fault(fault)
    return _Bytes(position, size), position + max(0, size)


def _varint(
    payload: memoryview, position: int, end: int, max_bytes: int = _VARINT_BYTES
) -> tuple[int, int]:
    value = 0
    for shift in range(0, 7 * max_bytes, 7):
        if position == end:
            raise _Fault(faults.TRUNCATED)
        byte = payload[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFF_FFFF if max_bytes == _VARINT_BYTES else 0xFFFF_FFFF_FFFF_FFFF
            return (value >> 1) ^ -(value & 1), position
    raise _Fault(faults.VARINT)


def _as_int64(value: int) -> int:
    """As a Java long overflows."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
