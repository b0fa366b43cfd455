"""A broker's numbers as they are at one moment, read from the mapped file without asking anybody.

Rows that are being written are read again, a few times; one that never holds still is left out
rather than told half old and half new.
"""

from collections.abc import Iterator
from functools import cached_property
from struct import Struct, iter_unpack
from typing import Final

from runnel.exporter.layout import (
    DIRS,
    FACTS_AT,
    FACTS_BYTES_MAX,
    GROUPS,
    NAMES,
    OFFSETS,
    PARTITIONS,
    PLAIN_BYTES,
    WORD_BYTES,
    DirRow,
    GroupRow,
    OffsetRow,
    PartitionRow,
    Slot,
    Table,
)

TRIES: Final = 100
_NAME_HEAD: Final = Struct("=qq")  # its number, its length


def read_rows(mapped: memoryview, table: Table, count: int) -> bytes:
    """The first rows of a table, one after the other; what cannot be read is zeros."""
    count = max(0, min(count, table.row_count_max))
    sequences = mapped[table.at : table.at + count * WORD_BYTES]
    rows = mapped[table.rows_at : table.rows_at + count * table.row_bytes]
    before = bytes(sequences)
    found = bytes(rows)
    after = bytes(sequences)
    was, live = memoryview(before).cast("q"), memoryview(after).cast("q")
    torn = [row for row in range(count) if was[row] != live[row] or was[row] & 1]
    if not torn:
        return found
    mended = bytearray(found)
    for row in torn:
        at = row * table.row_bytes
        mended[at : at + table.row_bytes] = _read_row(sequences, rows, row, table.row_bytes)
    return bytes(mended)


def _read_row(sequences: memoryview, rows: memoryview, row: int, size: int) -> bytes:
    numbers = sequences.cast("q")
    for _ in range(TRIES):
        before = numbers[row]
        found = bytes(rows[row * size : (row + 1) * size])
        if numbers[row] == before and not before & 1:
            return found
    return bytes(size)


class Snapshot:
    """Made for one scrape. Its tables are copied when they are first asked for, and then kept."""

    def __init__(self, mapped: memoryview) -> None:
        self._mapped = mapped
        self.words = memoryview(bytes(mapped[:PLAIN_BYTES])).cast("q")

    def slot(self, slot: Slot) -> int:
        return self.words[slot]

    @cached_property
    def facts(self) -> dict[tuple[str, str], str]:
        """By kind and key."""
        size = min(self.slot(Slot.FACTS_BYTES), FACTS_BYTES_MAX)
        text = str(self._mapped[FACTS_AT : FACTS_AT + size], "utf-8", "replace")
        lines = (line.split("\t") for line in text.splitlines())
        return {(line[0], line[1]): line[2] for line in lines if len(line) == 3}

    def fact(self, kind: str, key: object) -> str:
        return self.facts.get((kind, str(key)), str(key))

    @cached_property
    def names(self) -> dict[int, str]:
        """By the number that other rows know them by."""
        found: dict[int, str] = {}
        raw = self._rows(NAMES)
        for at in range(0, len(raw), NAMES.row_bytes):
            number, size = _NAME_HEAD.unpack_from(raw, at)
            if number:
                name = raw[at + _NAME_HEAD.size : at + _NAME_HEAD.size + size]
                found[number] = str(name, "utf-8", "replace")
        return found

    def _rows(self, table: Table) -> bytes:
        return read_rows(self._mapped, table, self.slot(table.used))

    def _unpacked(self, table: Table, raw: bytes) -> Iterator[tuple[int, ...]]:
        """Those in use whose name, the first of their numbers, is known."""
        names = self.names
        return (row for row in iter_unpack(f"={table.row_words}q", raw) if row[0] in names)

    @cached_property
    def _partitions(self) -> bytes:
        return self._rows(PARTITIONS)

    def partitions(self) -> Iterator[tuple[int, ...]]:
        """Fields as in `PartitionRow`, plain tuples because there may be very many."""
        return self._unpacked(PARTITIONS, self._partitions)

    @cached_property
    def _offsets(self) -> bytes:
        return self._rows(OFFSETS)

    def offsets(self) -> Iterator[OffsetRow]:
        names = self.names
        rows = map(OffsetRow._make, self._unpacked(OFFSETS, self._offsets))
        return (row for row in rows if row.topic in names)

    @cached_property
    def groups(self) -> list[GroupRow]:
        return [GroupRow._make(row) for row in self._unpacked(GROUPS, self._rows(GROUPS))]

    @cached_property
    def dirs(self) -> list[DirRow]:
        return [DirRow._make(row) for row in self._unpacked(DIRS, self._rows(DIRS))]

    @cached_property
    def high_watermarks(self) -> dict[tuple[int, int], int]:
        """By topic and partition."""
        at = PartitionRow._fields.index("high_watermark")
        return {(row[0], row[1]): row[at] for row in self.partitions()}
