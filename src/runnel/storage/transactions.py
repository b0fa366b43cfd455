"""Transaction markers, and the index of aborted transactions of one segment.

  .txnindex  34 bytes an entry: int16 version 0, int64 producer id, int64 first offset,
             int64 offset of the marker, int64 last stable offset at that time

An entry lies in the segment that holds the abort marker; the transaction may start segments
earlier. Readers of committed data walk forward until an entry's last stable offset covers them.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from runnel.errors import ErrorCode, RunnelError
from runnel.storage.index import IndexWrite
from runnel.wire.batch import HEADER_SIZE

ENTRY_SIZE = 34
VERSION = 0

ABORT = 0
COMMIT = 1

_ENTRY = struct.Struct(">hqqqq")
_MARKER_KEY = struct.Struct(">hh")  # version, type
_MARKER_VALUE = struct.Struct(">hi")  # version, coordinator epoch


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int  # of the marker
    last_stable_offset: int


class Marker(NamedTuple):
    """What a control batch says about the transaction of its producer."""

    is_commit: bool
    coordinator_epoch: int


class TransactionIndex:
    __slots__ = ("cut", "entries", "written_count")

    def __init__(self, entries: Iterable[AbortedTransaction] = ()) -> None:
        self.entries = list(entries)
        self.written_count = len(self.entries)
        self.cut = False

    def append(self, entry: AbortedTransaction) -> None:
        assert not self.entries or entry.last_offset > self.entries[-1].last_offset, entry
        self.entries.append(entry)

    def truncate(self, offset: int) -> None:
        self.entries = [entry for entry in self.entries if entry.last_offset < offset]
        self.rewrite()

    def rewrite(self) -> None:
        self.written_count = 0
        self.cut = True

    def collect(self, from_offset: int, to_offset: int, found: list[AbortedTransaction]) -> bool:
        """Add what touches the half-open range; True when later segments can add nothing."""
        for entry in self.entries:
            if entry.last_offset >= from_offset and entry.first_offset < to_offset:
                found.append(entry)
            if entry.last_stable_offset >= to_offset:
                return True
        return False

    def unwritten(self, path: str) -> IndexWrite | None:
        """What the file lacks. Kafka has no file where nothing was aborted."""
        first = self.written_count
        if first == len(self.entries) and not self.cut:
            return None
        data = b"".join([_ENTRY.pack(VERSION, *entry) for entry in self.entries[first:]])
        return IndexWrite(path, first * ENTRY_SIZE, data, self.cut, create=bool(self.entries))

    def written(self) -> None:
        self.written_count = len(self.entries)
        self.cut = False

    @classmethod
    def decode(cls, data: bytes, base_offset: int) -> "TransactionIndex":
        """Raises ValueError when the bytes cannot be the index of such a segment."""
        if len(data) % ENTRY_SIZE:
            raise ValueError("the last entry is cut short")
        entries: list[AbortedTransaction] = []
        for version, *fields in _ENTRY.iter_unpack(data):
            if version > VERSION:
                raise RunnelError(
                    ErrorCode.KAFKA_STORAGE_ERROR, f"transaction index of version {version}"
                )
            entry = AbortedTransaction(*fields)
            previous = entries[-1].last_offset if entries else base_offset - 1
            if entry.last_offset <= previous or entry.first_offset > entry.last_offset:
                raise ValueError("entries do not grow")
            entries.append(entry)
        return cls(entries)


def read_marker(raw: memoryview | bytes) -> Marker | None:
    """The marker in a control batch, None for one that compaction has emptied.

    Other control types (KRaft's own) are no business of a partition's producer state. Raises
    CORRUPT_MESSAGE for a control batch whose only record is not a control record.
    """
    if len(raw) <= HEADER_SIZE:
        return None
    position = HEADER_SIZE
    try:
        _length, position = _read_varint(raw, position)
        position += 1  # attributes
        for _ in range(2):  # timestamp delta, offset delta
            _delta, position = _read_varint(raw, position)
        key_size, position = _read_varint(raw, position)
        _version, kind = _MARKER_KEY.unpack_from(raw, position)
        if kind not in (ABORT, COMMIT):
            return None
        value_size, position = _read_varint(raw, position + key_size)
        _version, coordinator_epoch = _MARKER_VALUE.unpack_from(raw, position)
    except (struct.error, IndexError, ValueError) as error:
        raise _no_control_record() from error
    if key_size < _MARKER_KEY.size or value_size < _MARKER_VALUE.size:
        raise _no_control_record()
    return Marker(kind == COMMIT, coordinator_epoch)


def _no_control_record() -> RunnelError:
    return RunnelError(ErrorCode.CORRUPT_MESSAGE, "a control batch without a control record")


def _read_varint(raw: memoryview | bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift <= 63:
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    raise ValueError("a varint of more than ten bytes")
