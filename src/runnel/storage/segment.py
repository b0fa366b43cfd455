"""One file of a partition's log, with its indexes.

Invariants:
  - offsets only grow: a batch starts at `next_offset` or later;
  - `size` counts whole batches; bytes past it are a failed write, cut by recovery;
  - of a closed segment `next_offset` is the base of the one that follows it.
Positions of the last batches are kept in memory, so that reads near the end of the log need no
look at the file; further back the index gives a position and the headers after it are walked.
The segment of an evicted descriptor opens itself again; the indexes of closed ones load lazily.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from runnel.errors import ErrorCode, RunnelError
from runnel.native.scanned import Run, Scanned
from runnel.ports import Disk, File, Readable
from runnel.storage.files import OpenFiles, write_all
from runnel.storage.flush import write_index
from runnel.storage.index import (
    MAX_RELATIVE_OFFSET,
    NO_TIMESTAMP,
    IndexWrite,
    OffsetIndex,
    TimeIndex,
)
from runnel.storage.transactions import TransactionIndex
from runnel.types import FileSlice
from runnel.wire.batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader

LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT = (
    ".log",
    ".index",
    ".timeindex",
    ".txnindex",
    ".snapshot",
)
SUFFIXES = (LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT)

WALK_BYTES = 16 << 10
TAIL_BATCHES = 256
UNKNOWN = -2


class ColdError(Exception):
    """To find an offset, these bytes would have to come from the disk. Warm them and ask again."""

    def __init__(self, cold: FileSlice) -> None:
        super().__init__(f"{cold.file.path} at {cold.position}")
        self.cold = cold


class Segment:
    """Owned by one Log."""

    __slots__ = (
        "_disk", "_file", "_first_timestamp", "_index", "_is_reserved", "_max_timestamp",
        "_open_files", "_tail_offsets", "_tail_positions", "_time_index", "_txn_index",
        "base_offset", "created_ms", "ending", "folder", "index_interval_bytes", "indexes_unsynced",
        "is_active", "is_flushing", "max_timestamp_offset", "next_offset", "size",
    )  # fmt: skip

    def __init__(
        self, disk: Disk, open_files: OpenFiles, folder: str, base_offset: int, *,
        index_interval_bytes: int, created_ms: int,
    ) -> None:  # fmt: skip
        self._disk = disk
        self._open_files = open_files
        self.folder = folder
        self.ending = ""  # of its file names; who has found it still reads it when it is discarded
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.size = 0
        self.index_interval_bytes = index_interval_bytes
        self.created_ms = created_ms
        self.is_active = True
        self.indexes_unsynced: list[str] = []  # suffixes: entries were written since the last sync
        self.is_flushing = False  # the index files lack what a flush is about to write
        self._first_timestamp = UNKNOWN
        self._max_timestamp = UNKNOWN  # until then the last entry of the time index says
        self.max_timestamp_offset = base_offset
        self._file: File | None = None
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TransactionIndex | None = None
        self._tail_offsets: list[int] = []  # last offset of each of the last batches
        self._tail_positions: list[int] = []
        self._is_reserved = False

    def start_empty(self, reserved_bytes: int = 0) -> None:
        """A new segment: create its file, and indexes that need no look at the disk."""
        path = self.path(LOG)
        self.file = self._open_files.sparing(lambda: self._disk.open(path, create=True))
        if reserved_bytes:
            self.file.reserve(reserved_bytes)
            self._is_reserved = True
        self.reset_indexes()

    def reset_indexes(self) -> None:
        """Forget all that was indexed, as before a scan of the whole file."""
        self._index = OffsetIndex(self.base_offset)
        self._time_index = TimeIndex(self.base_offset)
        self._txn_index = TransactionIndex()
        for index in (self._index, self._time_index, self._txn_index):
            index.rewrite()
        self._tail_offsets.clear()
        self._tail_positions.clear()
        self._first_timestamp = UNKNOWN
        self._max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset

    def path(self, suffix: str) -> str:
        return f"{self.folder}/{self.base_offset:020d}{suffix}{self.ending}"

    @property
    def file(self) -> File:
        file = self._file
        if file is None:
            path = self.path(LOG)
            file = self.file = self._open_files.sparing(lambda: self._disk.open(path))
        return file

    @file.setter
    def file(self, file: File) -> None:
        self._open_files.opened(self)
        self._file = file

    def release(self) -> None:
        """Let go of the descriptor and of what can be loaded again. Slices keep theirs."""
        self._file = None
        self._open_files.closed(self)
        if self.is_active or self.is_flushing:
            return
        if self._index is not None and self._index.unwritten("") is None:
            self._index = None
        if self._time_index is not None and self._time_index.unwritten("") is None:
            self._time_index = None
        if self._txn_index is not None and self._txn_index.unwritten("") is None:
            self._txn_index = None

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            try:
                data = self._read(INDEX)
                self._index = OffsetIndex.decode(data, self.base_offset, self.size)
            except (FileNotFoundError, ValueError):
                self.rebuild_indexes()
        assert self._index is not None
        return self._index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            try:
                data = self._read(TIME_INDEX)
                self._time_index = TimeIndex.decode(data, self.base_offset)
            except (FileNotFoundError, ValueError):
                self.rebuild_indexes()
        assert self._time_index is not None
        return self._time_index

    @property
    def txn_index(self) -> TransactionIndex:
        """Raises ValueError when it is damaged: only the producers' history can rebuild it."""
        if self._txn_index is None:
            try:
                data = self._read(TXN_INDEX)
            except FileNotFoundError:
                data = b""
            self._txn_index = TransactionIndex.decode(data, self.base_offset)
        return self._txn_index

    @txn_index.setter
    def txn_index(self, index: TransactionIndex) -> None:
        self._txn_index = index

    def _read(self, suffix: str) -> bytes:
        path = self.path(suffix)
        return self._open_files.sparing(lambda: self._disk.read_whole(path))

    def take_index_writes(self) -> list[IndexWrite]:
        """What the index files lack. The caller writes it down, or takes the log offline."""
        writes: list[IndexWrite] = []
        for index, suffix in (
            (self._index, INDEX),
            (self._time_index, TIME_INDEX),
            (self._txn_index, TXN_INDEX),
        ):
            write = index.unwritten(self.path(suffix)) if index is not None else None
            if index is not None and write is not None:
                index.written()
                writes.append(write)
                if write.data and suffix not in self.indexes_unsynced:
                    self.indexes_unsynced.append(suffix)
        return writes

    @property
    def max_timestamp(self) -> int:
        if self._max_timestamp == UNKNOWN:
            self._max_timestamp, self.max_timestamp_offset = self.time_index.last
        return self._max_timestamp

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, from which the age of the segment counts."""
        if self._first_timestamp == UNKNOWN and self.size:
            _, header = next(self.headers())
            self._first_timestamp = header.max_timestamp
        return self._first_timestamp

    @property
    def known_first_timestamp(self) -> int | None:
        """The same without a look at the file: -1 if it is empty, None if one is needed."""
        if not self.size:
            return NO_TIMESTAMP
        return None if self._first_timestamp == UNKNOWN else self._first_timestamp

    def reading_first_timestamp(self) -> "partial[int]":
        """That look, for a worker: it touches nothing of the segment."""
        return partial(_first_timestamp_in, self._disk, self.path(LOG))

    def learn_first_timestamp(self, timestamp: int) -> None:
        if self._first_timestamp == UNKNOWN:
            self._first_timestamp = timestamp

    def activate(self) -> None:
        """Make ready for `append`: it expects what it touches to be loaded."""
        self.is_active = True
        _ = self.index, self.max_timestamp, self.txn_index

    def append(self, raw: Readable, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """Write one batch whose offsets are stamped. Not durable before the file is synced.

        Raises OSError, and then nothing has changed but bytes past `size`.
        """
        assert base_offset >= self.next_offset, (base_offset, self.next_offset)
        position, size = self.size, len(raw)
        file = self._file
        if file is None:
            file = self.file
        written = file.write_on_loop(position, raw)
        if written != size:
            write_all(file, position + written, memoryview(raw)[written:])
        self.note(position, last_offset, max_timestamp)
        self.size = position + size

    def note(self, position: int, last_offset: int, max_timestamp: int) -> None:
        """A batch stands at `position`: index it. Appending and recovery do exactly the same."""
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if position == 0:
            self._first_timestamp = max_timestamp
        index = self._index
        assert index is not None
        if position - index.last_position > self.index_interval_bytes:
            index.append(last_offset, position)
            self.time_index.maybe_append(self._max_timestamp, self.max_timestamp_offset)
        tail = self._tail_offsets
        tail.append(last_offset)
        self._tail_positions.append(position)
        if len(tail) > 2 * TAIL_BATCHES:
            del tail[:TAIL_BATCHES]
            del self._tail_positions[:TAIL_BATCHES]
        self.next_offset = last_offset + 1

    def scanned(self, position: int, leader_epoch: int) -> Scanned:
        """What has been noted of the batches before `position`."""
        return Scanned(
            position,
            self.next_offset,
            leader_epoch,
            self.index.last_position,
            self.max_timestamp,
            self.max_timestamp_offset,
        )

    def note_run(self, run: Run) -> None:
        """`note` for all batches of a run, but that none of them is kept as one of the last."""
        index, time_index = self.index, self.time_index
        for entry in run.entries:
            index.append(entry.last_offset, entry.position)
            time_index.maybe_append(entry.max_timestamp, entry.max_timestamp_offset)
        self._max_timestamp = run.after.max_timestamp
        self.max_timestamp_offset = run.after.max_timestamp_offset
        self._tail_offsets.clear()
        self._tail_positions.clear()
        self.next_offset = run.after.next_offset

    def may_hold(self, last_offset: int) -> bool:
        """Whether the 4 bytes of a relative offset reach so far (KAFKA-6264)."""
        return last_offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def position_of(self, offset: int, *, wait: bool = True) -> int:
        """The start of the first batch that ends at or after `offset`; `size` if there is none.

        Raises ColdError instead of waiting for the disk.
        """
        if offset >= self.next_offset:
            return self.size
        tail = self._tail_offsets
        if len(tail) > 1 and offset > tail[-2]:
            return self._tail_positions[-1]  # whoever is woken reads the last batch
        if tail and (offset > tail[0] or self._tail_positions[0] == 0):
            return self._tail_positions[bisect_left(tail, offset)]
        if not wait:
            self._ensure_index_cached()
        for position, header in self.headers(self.index.position_before(offset), wait=wait):
            if header.base_offset + header.last_offset_delta >= offset:
                return position
        return self.size

    def _ensure_index_cached(self) -> None:
        if self._index is None:
            path = self.path(INDEX)
            try:
                file = self._open_files.sparing(lambda: self._disk.open(path))
            except FileNotFoundError:
                return
            size = file.size()
            if size and not file.is_cached(0, size):
                raise ColdError(FileSlice(file, 0, size))

    def slice(
        self,
        offset: int,
        max_bytes: int,
        before_offset: int,
        *,
        at_least_one: bool,
        wait: bool = True,
    ) -> FileSlice | None:
        """Whole batches from the one that holds `offset`, see `Log.slice`."""
        start = self.position_of(offset, wait=wait)
        end = self.size
        if before_offset < self.next_offset:
            end = self.position_of(before_offset, wait=wait)
        if end - start > max_bytes:  # which a fetch that has used up its bytes gives as negative
            end = self._cut(start, start + max(max_bytes, 0), at_least_one, wait)
        if end <= start:
            return None
        return FileSlice(self.file, start, end - start)

    def _cut(self, start: int, limit: int, at_least_one: bool, wait: bool) -> int:
        """The end of the last batch before `limit` that is known without walking far."""
        tail = self._tail_positions
        if tail and start >= tail[0]:
            end = tail[bisect_right(tail, limit) - 1]
        else:
            end = self.index.position_up_to(limit)
        if end > start:
            return end
        for position, header in self.headers(start, wait=wait):
            batch_end = position + LOG_OVERHEAD + header.length
            if batch_end > limit:
                return batch_end if position == start and at_least_one else position
        return self.size

    def headers(
        self, position: int = 0, *, chunk_bytes: int = WALK_BYTES, wait: bool = True
    ) -> Iterator[tuple[int, BatchHeader]]:
        """The batches from `position` on, one read for many. Raises if the bytes are no batches."""
        file = self.file
        while position < self.size:
            size = min(chunk_bytes, self.size - position)
            chunk = file.read_at(position, size) if wait else file.read_cached(position, size)
            if chunk is None:
                raise ColdError(FileSlice(file, position, size))
            start = position
            while position < self.size and position - start + HEADER_SIZE <= len(chunk):
                header = BatchHeader.read(chunk, position - start)
                end = position + LOG_OVERHEAD + header.length
                if header.length < HEADER_SIZE - LOG_OVERHEAD or end > self.size:
                    raise self._no_batch(position)
                yield position, header
                position = end
            if position == start:
                raise self._no_batch(position)

    def _no_batch(self, position: int) -> RunnelError:
        return RunnelError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"{self.path(LOG)}: no batch at position {position}"
        )

    def rebuild_indexes(self) -> None:
        """Make the offset and the time index anew from the batches."""
        txn_index, next_offset = self._txn_index, self.next_offset
        _ = self.file  # if it cannot be opened, nothing is forgotten
        self.reset_indexes()
        for position, header in self.headers():
            self.note(position, header.last_offset, header.max_timestamp)
        self.index_max_timestamp()
        self._txn_index = txn_index
        if not self.is_active:
            self.next_offset = next_offset
            self._tail_offsets, self._tail_positions = [], []
            for write in self.take_index_writes():
                self._open_files.sparing(partial(write_index, self._disk, write))

    def index_max_timestamp(self) -> None:
        """Retention asks a closed segment for its largest timestamp: the last entry holds it."""
        self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)

    def close_for_writing(self) -> None:
        """The log rolled: no more batches come. The next flush writes and syncs the indexes."""
        self.index_max_timestamp()
        self.is_active = False
        self._tail_offsets, self._tail_positions = [], []
        if self._is_reserved:
            with suppress(OSError):  # what was not written is given back; if not now, at its end
                self.file.truncate(self.size)

    def truncate(self, offset: int) -> None:
        """Cut the file before the batch that holds `offset`, durably. Raises OSError."""
        self.activate()
        position = self.position_of(offset)
        file = self.file
        file.truncate(position)
        file.sync()
        self.size = position
        self.index.truncate(offset)
        self.time_index.truncate(offset)
        self.txn_index.truncate(offset)
        self._tail_offsets.clear()
        self._tail_positions.clear()
        self._max_timestamp, self.max_timestamp_offset = self.time_index.last
        self.next_offset = self.base_offset
        self._first_timestamp = UNKNOWN
        for _, header in self.headers(self.index.last_position):
            last_offset = header.base_offset + header.last_offset_delta
            if header.max_timestamp > self._max_timestamp:
                self._max_timestamp, self.max_timestamp_offset = header.max_timestamp, last_offset
            self.next_offset = last_offset + 1


def base_offset_of(segment: Segment) -> int:
    """The key to search a list of segments by."""
    return segment.base_offset


def _first_timestamp_in(disk: Disk, path: str) -> int:
    """UNKNOWN as well if the file is gone or its disk refuses: then nobody asks for it again."""
    try:
        file = disk.open(path)
        try:
            head = file.read_at(0, HEADER_SIZE)
        finally:
            file.close()
    except OSError:
        return UNKNOWN
    return BatchHeader.read(memoryview(head)).max_timestamp if len(head) == HEADER_SIZE else UNKNOWN
