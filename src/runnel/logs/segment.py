"""One file of the index: lines of one partition from one offset to another, and their words.

A file of SQLite with a table of FTS5 without content, whose row ids are offsets, beside the lines
themselves in compressed blocks: so the index answers with lines while the broker is down. It is
written once, under a name that nobody looks for, and never changed; `index` says which files count.
"""

import os
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from struct import error as StructError
from typing import Any, Final, NamedTuple, Self

from runnel.logs.blocks import BLOCK_BYTES, BLOCK_LINES, Block, packed
from runnel.logs.filters import Filters, LogRecord, searched
from runnel.logs.lines import parsed
from runnel.logs.match import expression_of, origin_of
from runnel.logs.query import folded

SUFFIX: Final = ".seg"
UNFINISHED: Final = ".part"
ADDED_LINES: Final = 8192  # at a time
MEMORY_BYTES: Final = 64 << 20  # of postings, before they are written
FIRST_MS, LAST_MS = -(1 << 62), 1 << 62
_TABLES: Final = """
    CREATE VIRTUAL TABLE words USING fts5(
        text, level, origin, content='', columnsize=0, tokenize="ascii");
    CREATE TABLE blocks (
        first INTEGER PRIMARY KEY, next INTEGER, min_ms INTEGER, max_ms INTEGER, data BLOB);
"""


class LogIndexError(Exception):
    """The message names the file and says what to do."""


class SegmentInfo(NamedTuple):
    """What stands about a segment in the list of them; it covers start <= offset < end."""

    file: str
    partition: int
    start: int
    end: int
    lines: int
    size_bytes: int
    min_ms: int
    max_ms: int


class SegmentWriter:
    """Lines in the order of their offsets. `finish` gives a file that is safely on disk."""

    def __init__(self, folder: Path, partition: int, start: int) -> None:
        self._folder, self._partition, self._start = folder, partition, start
        self._name = f"{partition}-{start:020d}-{uuid.uuid4().hex[:12]}"
        self._path = folder / (self._name + UNFINISHED)
        self._pending: list[LogRecord] = []
        self._pending_bytes = 0
        self._lines = 0
        self._min_ms, self._max_ms = LAST_MS, FIRST_MS
        self._next = start
        self._database = sqlite3.connect(self._path, isolation_level=None)
        for setting in (
            "journal_mode=off",
            "synchronous=off",
            "page_size=16384",
            "cache_size=-65536",
        ):
            self._database.execute(f"PRAGMA {setting}")
        self._database.executescript(_TABLES)
        self._database.execute(
            "INSERT INTO words(words, rank) VALUES ('hashsize', ?)", (MEMORY_BYTES,)
        )
        self._database.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.discard()

    def discard(self) -> None:
        """What is not finished goes; nothing happens to what is."""
        self._database.close()
        self._path.unlink(missing_ok=True)

    @property
    def lines(self) -> int:
        return self._lines

    @property
    def next_offset(self) -> int:
        return self._next

    def add(self, records: Iterable[LogRecord]) -> None:
        """Offsets have to rise, from call to call as well."""
        self._database.executemany(
            "INSERT INTO words(rowid, text, level, origin) VALUES (?, ?, ?, ?)",
            self._rows(records),
        )

    def finish(self, end: int) -> SegmentInfo:
        """`end` is the offset up to which there are no more lines than these."""
        assert end >= self._next, (end, self._next)
        self._write_block()
        self._database.execute("COMMIT")
        self._database.execute("INSERT INTO words(words) VALUES ('optimize')")
        self._database.execute("CREATE INDEX times ON blocks (min_ms, max_ms, first, next)")
        self._database.close()
        file = f"{self._name}{SUFFIX}"
        descriptor = os.open(self._path, os.O_RDWR)
        try:
            os.fsync(descriptor)
            size_bytes = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        self._path.rename(self._folder / file)
        return SegmentInfo(
            file,
            self._partition,
            self._start,
            end,
            self._lines,
            size_bytes,
            self._min_ms,
            self._max_ms,
        )

    def _rows(self, records: Iterable[LogRecord]) -> Iterator[tuple[int, str, str, str]]:
        for record in records:
            assert record.offset >= self._next, (record.offset, self._next)
            if self._pending and (
                len(self._pending) >= BLOCK_LINES
                or self._pending_bytes + len(record.value) > BLOCK_BYTES
            ):
                self._write_block()
            self._pending.append(record)
            self._pending_bytes += len(record.value)
            self._next = record.offset + 1
            self._lines += 1
            line = parsed(record.value)
            yield record.offset, folded(searched(line)), line.level, origin_of(line)

    def _write_block(self) -> None:
        if not self._pending:
            return
        stamps = [record.timestamp_ms for record in self._pending]
        low_ms, high_ms = min(stamps), max(stamps)
        self._min_ms, self._max_ms = min(self._min_ms, low_ms), max(self._max_ms, high_ms)
        first, last = self._pending[0].offset, self._pending[-1].offset
        self._database.execute(
            "INSERT INTO blocks VALUES (?, ?, ?, ?, ?)",
            (first, last + 1, low_ms, high_ms, packed(self._pending)),
        )
        self._pending, self._pending_bytes = [], 0


class Segment:
    """A finished file, open for reading."""

    def __init__(self, folder: Path, info: SegmentInfo) -> None:
        """Raises FileNotFoundError if it has been replaced meanwhile."""
        self.info = info
        path = folder / info.file
        if not path.exists():
            raise FileNotFoundError(path)
        self._path = path
        self._database = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro&immutable=1",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
        self._database.execute(f"PRAGMA mmap_size={1 << 31}")
        self._recent: Block | None = None  # one after the other is looked for in the same

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def candidates(self, filters: Filters, low: int, high: int) -> Iterator[LogRecord]:
        """Newest first, those that may match with low <= offset < high."""
        for first, end in self._spans(filters, low, high):
            expression = expression_of(filters)
            if expression is None:
                yield from self._backwards(first, end)
                continue
            rows = self._asked(
                "SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ? AND rowid < ?"
                " ORDER BY rowid DESC",
                (expression, first, end),
            )
            for (offset,) in rows:
                yield self.record(offset)

    def record(self, offset: int) -> LogRecord:
        if self._recent is None or offset not in self._recent:
            self._recent = self._block_of(offset)
        return self._recent.record(offset)

    def before(self, offset: int, count: int) -> list[LogRecord]:
        """The last so many lines before an offset, in order."""
        found: list[LogRecord] = []
        for record in self._backwards(self.info.start, offset):
            if len(found) == count:
                break
            found.append(record)
        return found[::-1]

    def after(self, offset: int, count: int) -> list[LogRecord]:
        """The first so many lines from an offset on."""
        found: list[LogRecord] = []
        for record in self.records(offset):
            if len(found) == count:
                break
            found.append(record)
        return found

    def records(self, start: int = 0) -> Iterator[LogRecord]:
        """All lines from an offset on."""
        query = (
            "SELECT data FROM blocks WHERE first >= coalesce("
            "(SELECT max(first) FROM blocks WHERE first <= ?), 0) ORDER BY first"
        )
        for (data,) in self._asked(query, (start,)):
            yield from self._block(data).records(start, self.info.end)

    def _spans(self, filters: Filters, low: int, high: int) -> list[tuple[int, int]]:
        """Offsets of blocks in which a time may lie, from the first to the last of them."""
        if filters.since_ms is None and filters.until_ms is None:
            return [(low, high)]
        since = FIRST_MS if filters.since_ms is None else filters.since_ms
        until = LAST_MS if filters.until_ms is None else filters.until_ms
        query = "SELECT min(first), max(next) FROM blocks WHERE max_ms >= ? AND min_ms < ?"
        ((first, end),) = self._asked(query, (since, until))
        return [] if first is None else [(max(low, first), min(high, end))]

    def _backwards(self, low: int, high: int) -> Iterator[LogRecord]:
        query = "SELECT data FROM blocks WHERE first < ? AND next > ? ORDER BY first DESC"
        for (data,) in self._asked(query, (high, low)):
            yield from reversed(self._block(data).records(low, high))

    def _block_of(self, offset: int) -> Block:
        query = "SELECT data FROM blocks WHERE first <= ? ORDER BY first DESC LIMIT 1"
        row = next(self._asked(query, (offset,)), None)
        if row is None:
            raise self._damaged(ValueError(f"no block has offset {offset}"))
        return self._block(row[0])

    def _block(self, data: bytes) -> Block:
        try:
            return Block(data, self.info.partition)
        except (ValueError, StructError) as error:
            raise self._damaged(error) from error

    def _asked(self, query: str, values: Sequence[object]) -> "Iterator[Any]":
        try:
            yield from self._database.execute(query, values)
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> LogIndexError:
        return LogIndexError(
            f"{self._path} is damaged ({error}): run `runnel logs index {self._path.parent.name}"
            " --rebuild`"
        )


def discard(folder: Path, info: SegmentInfo) -> None:
    with suppress(FileNotFoundError):
        (folder / info.file).unlink()
