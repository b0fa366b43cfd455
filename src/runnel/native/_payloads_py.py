"""Rows of columns to the payloads of record batches, in Python: the twin of `_payloads.pyx`.

A record is `length varint, attributes int8, timestamp delta varlong, offset delta varint, key,
value, headers`, its deltas counted from the first record of its batch. Each lane, which is a
partition to its owner, collects the records of the next batch.
"""

from array import array

from runnel.native.columns import ArrowBinary, ArrowHeaders, Payload
from runnel.native.encode import varint
from runnel.native.murmur2 import murmur2


def assign(
    keys: ArrowBinary | None, row_count: int, lane_count: int, keyless: int, run_rows: int
) -> bytearray:
    """The lane of each row as int32: by the hash of its key, and without one in runs of rows."""
    lanes = array("i", bytes(4 * row_count))
    values = None if keys is None else keys.values(row_count)
    for row in range(row_count):
        key = None if values is None else values[row]
        if key is None:
            lanes[row] = (keyless + row // run_rows) % lane_count
        else:
            lanes[row] = (murmur2(key) & 0x7FFFFFFF) % lane_count
    return bytearray(lanes.tobytes())


class _Lane:
    def __init__(self) -> None:
        self.data = bytearray()
        self.count = 0
        self.base_timestamp = -1
        self.max_timestamp = -1


class Payloads:
    """The batches being collected, one per lane, none larger than the limit if it has two rows."""

    def __init__(self, lane_count: int, limit_bytes: int) -> None:
        self._lanes = [_Lane() for _ in range(lane_count)]
        self._limit_bytes = limit_bytes
        self.buffered_bytes = 0

    def append(
        self,
        lanes: bytearray,
        keys: ArrowBinary | None,
        values: ArrowBinary,
        headers: ArrowHeaders | None,
        row: int,
        row_count: int,
        timestamp: int,
    ) -> int:
        """The rows from `row` on; returns that for whose lane there is no room, or the count.

        Raises IndexError for a row of a lane that is not there.
        """
        numbers = memoryview(lanes).cast("i")
        while row < row_count:
            if not 0 <= numbers[row] < len(self._lanes):
                raise IndexError(numbers[row])
            lane = self._lanes[numbers[row]]
            if not lane.count:
                lane.base_timestamp = lane.max_timestamp = timestamp
            body = bytearray(1)  # attributes, of which none is defined
            body += varint(timestamp - lane.base_timestamp)
            body += varint(lane.count)
            _append_bytes(body, None if keys is None else keys.value(row))
            _append_bytes(body, values.value(row))
            pairs = [] if headers is None else headers.pairs(row)
            body += varint(len(pairs))
            for name, value in pairs:
                _append_bytes(body, name)
                _append_bytes(body, value)
            size = varint(len(body))
            if lane.count and len(lane.data) + len(size) + len(body) > self._limit_bytes:
                return row
            lane.data += size
            lane.data += body
            lane.count += 1
            lane.max_timestamp = max(lane.max_timestamp, timestamp)
            self.buffered_bytes += len(size) + len(body)
            row += 1
        return row

    def take(self, lane: int) -> Payload | None:
        """What the lane has collected; it is empty then."""
        found = self._lanes[lane]
        if not found.count:
            return None
        self._lanes[lane] = _Lane()
        self.buffered_bytes -= len(found.data)
        return Payload(found.data, found.count, found.base_timestamp, found.max_timestamp)


def _append_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out += varint(-1)
    else:
        out += varint(len(value))
        out += value
