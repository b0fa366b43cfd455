"""The sparse indexes of one segment, held in memory and written in Kafka's layout.

  .index      8 bytes an entry:  int32 last offset of a batch - base offset, int32 its position
  .timeindex  12 bytes an entry: int64 largest timestamp so far, int32 offset of it - base offset

Entries only grow. A file may end in zeros (Kafka maps its active indexes at full size), which are
not entries: the first batch of a segment is never indexed, and a time entry of zeros says nothing
that an empty index does not say.
The file is behind memory by the entries past `written_count`; the log's flush brings it up.
"""

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import NamedTuple

from runnel.ports import Readable

OFFSET_ENTRY_SIZE = 8
TIME_ENTRY_SIZE = 12
MAX_RELATIVE_OFFSET = 2**31 - 1
NO_TIMESTAMP = -1

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_SWAP = sys.byteorder == "little"


class IndexWrite(NamedTuple):
    """Bytes for an index file, which is first cut at `position` if it held other entries."""

    path: str
    position: int
    data: bytes
    cut: bool
    create: bool = True  # the file, even if there is nothing to write


class OffsetIndex:
    """Where to start looking for an offset."""

    __slots__ = ("_offsets", "_positions", "base_offset", "cut", "last_position", "written_count")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._offsets = array("i")
        self._positions = array("i")
        self.last_position = 0
        self.written_count = 0
        self.cut = False

    def __len__(self) -> int:
        return len(self._offsets)

    def append(self, last_offset: int, position: int) -> None:
        self._offsets.append(last_offset - self.base_offset)
        self._positions.append(position)
        self.last_position = position

    def position_before(self, offset: int) -> int:
        """A batch starts here, and every batch before it ends before `offset`."""
        slot = bisect_right(self._offsets, offset - self.base_offset)
        return self._positions[slot - 1] if slot else 0

    def position_up_to(self, position: int) -> int:
        """The last indexed batch start at or before `position`, 0 if there is none."""
        slot = bisect_right(self._positions, position)
        return self._positions[slot - 1] if slot else 0

    def offset_from(self, position: int, otherwise: int) -> int:
        """The last offset of the first indexed batch at or after `position`, if there is one."""
        slot = bisect_left(self._positions, position)
        return self.base_offset + self._offsets[slot] if slot < len(self._offsets) else otherwise

    def truncate(self, offset: int) -> None:
        """Drop the entries of batches that end at or after `offset`."""
        keep = bisect_left(self._offsets, offset - self.base_offset)
        del self._offsets[keep:]
        del self._positions[keep:]
        self.last_position = self._positions[-1] if keep else 0
        self.rewrite()

    def rewrite(self) -> None:
        """The file may hold anything: the next write replaces it from the start."""
        self.written_count = 0
        self.cut = True

    def entries(self) -> list[tuple[int, int]]:
        return [
            (self.base_offset + o, p) for o, p in zip(self._offsets, self._positions, strict=True)
        ]

    def unwritten(self, path: str) -> IndexWrite | None:
        """What the file lacks; the caller writes it, then sets `written_count`."""
        first = self.written_count
        if first == len(self._offsets) and not self.cut:
            return None
        pairs = array("i", bytes(OFFSET_ENTRY_SIZE * (len(self._offsets) - first)))
        pairs[0::2] = self._offsets[first:]
        pairs[1::2] = self._positions[first:]
        if _SWAP:
            pairs.byteswap()
        return IndexWrite(path, first * OFFSET_ENTRY_SIZE, pairs.tobytes(), self.cut)

    def written(self) -> None:
        self.written_count = len(self._offsets)
        self.cut = False

    @classmethod
    def decode(cls, data: bytes, base_offset: int, log_size: int) -> "OffsetIndex":
        """Raises ValueError when the bytes cannot be an index of such a segment."""
        data = _without_zero_tail(data, OFFSET_ENTRY_SIZE)
        pairs = array("i", data)
        if _SWAP:
            pairs.byteswap()
        index = cls(base_offset)
        index._offsets, index._positions = pairs[0::2], pairs[1::2]
        if pairs:
            _ensure_growing(index._offsets)
            _ensure_growing(index._positions)
            if index._offsets[0] < 0 or index._positions[0] <= 0:
                raise ValueError("an entry lies before the segment")
            if index._positions[-1] >= log_size:
                raise ValueError("an entry lies past the end of the segment")
            index.last_position = index._positions[-1]
        index.written_count = len(index._offsets)
        return index


def position_in(data: Readable, base_offset: int, offset: int) -> int:
    """`OffsetIndex.position_before` for whoever asks once: a few entries are looked at.

    So nothing is checked: the file may be behind, or hold anything after a crash.
    """
    relative, unpack = offset - base_offset, _OFFSET_ENTRY.unpack_from
    low, high = 0, len(data) // OFFSET_ENTRY_SIZE
    while low < high:
        middle = (low + high) // 2
        last_offset, position = unpack(data, middle * OFFSET_ENTRY_SIZE)
        if position == 0 or last_offset > relative:  # zeros are the room for more entries
            high = middle
        else:
            low = middle + 1
    return int(unpack(data, (low - 1) * OFFSET_ENTRY_SIZE)[1]) if low else 0


class TimeIndex:
    """Where to start looking for a timestamp: before an entry nothing is later than it says."""

    __slots__ = ("_offsets", "_timestamps", "base_offset", "cut", "written_count")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("i")
        self.written_count = 0
        self.cut = False

    def __len__(self) -> int:
        return len(self._timestamps)

    @property
    def last(self) -> tuple[int, int]:
        """The largest timestamp indexed and the offset of it; (-1, base offset) when empty."""
        if not self._timestamps:
            return NO_TIMESTAMP, self.base_offset
        return self._timestamps[-1], self.base_offset + self._offsets[-1]

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Nothing is added while the largest timestamp so far is that of the last entry."""
        last_timestamp, last_offset = self.last
        if timestamp > last_timestamp:
            assert offset >= last_offset, (offset, last_offset)
            self._timestamps.append(timestamp)
            self._offsets.append(offset - self.base_offset)

    def offset_before(self, timestamp: int) -> int:
        """Every record before this offset is older than `timestamp`."""
        slot = bisect_left(self._timestamps, timestamp)
        return self.base_offset + (self._offsets[slot - 1] if slot else 0)

    def truncate(self, offset: int) -> None:
        keep = bisect_left(self._offsets, offset - self.base_offset)
        del self._offsets[keep:]
        del self._timestamps[keep:]
        self.rewrite()

    def rewrite(self) -> None:
        self.written_count = 0
        self.cut = True

    def entries(self) -> list[tuple[int, int]]:
        return [
            (t, self.base_offset + o) for t, o in zip(self._timestamps, self._offsets, strict=True)
        ]

    def unwritten(self, path: str) -> IndexWrite | None:
        first = self.written_count
        if first == len(self._timestamps) and not self.cut:
            return None
        rows = zip(self._timestamps[first:], self._offsets[first:], strict=True)
        data = b"".join([_TIME_ENTRY.pack(timestamp, offset) for timestamp, offset in rows])
        return IndexWrite(path, first * TIME_ENTRY_SIZE, data, self.cut)

    def written(self) -> None:
        self.written_count = len(self._timestamps)
        self.cut = False

    @classmethod
    def decode(cls, data: bytes, base_offset: int) -> "TimeIndex":
        """Raises ValueError when the bytes cannot be a time index."""
        index = cls(base_offset)
        for timestamp, offset in _TIME_ENTRY.iter_unpack(_without_zero_tail(data, TIME_ENTRY_SIZE)):
            index._timestamps.append(timestamp)
            index._offsets.append(offset)
        if index._offsets:
            _ensure_growing(index._timestamps)
            if any(b < a for a, b in pairwise(index._offsets)):
                raise ValueError("offsets go back")
            if index._offsets[0] < 0 or index._timestamps[0] < 0:
                raise ValueError("an entry lies before the segment")
        index.written_count = len(index._timestamps)
        return index


def _without_zero_tail(data: bytes, entry_size: int) -> bytes:
    """Without the zeros after the last entry. An entry cut short is kept out by ValueError."""
    used = len(data.rstrip(b"\0"))
    end = -(-used // entry_size) * entry_size
    if end > len(data):
        raise ValueError("the last entry is cut short")
    return data[:end]


def _ensure_growing(column: "array[int]") -> None:
    if any(later <= earlier for earlier, later in pairwise(column)):
        raise ValueError("entries do not grow")
