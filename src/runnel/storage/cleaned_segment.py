"""A new segment while compaction writes it, under names that nobody else looks for."""

import contextlib
from collections.abc import Callable

from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Disk, Readable
from runnel.storage.batch_retention import Left
from runnel.storage.files import write_all
from runnel.storage.index import OffsetIndex, TimeIndex
from runnel.storage.log_cleaning import cleaned_paths
from runnel.storage.transactions import TransactionIndex

POSITION_MAX = 2**31 - 1
# So that no flood of dirty pages makes others wait. Not by a sync: that commits the journal of the
# file system each time, and everybody who writes waits for it.
LET_GO_EVERY_BYTES = 4 << 20

Pace = Callable[[int], None]


class CleanedSegment:
    """The new segment while it is written."""

    def __init__(
        self, disk: Disk, folder: str, base_offset: int, *, interval_bytes: int, buffer_bytes: int,
        pace: Pace,
    ) -> None:  # fmt: skip
        self._disk = disk
        self._paths = cleaned_paths(folder, base_offset)
        for path in self._paths:  # an earlier try may have left them
            with contextlib.suppress(FileNotFoundError):
                disk.remove(path)
        self._interval_bytes = interval_bytes
        self._buffer_bytes = buffer_bytes
        self._pace = pace
        self._file = disk.open(self._paths[0], create=True)
        self._index = OffsetIndex(base_offset)
        self._time_index = TimeIndex(base_offset)
        self._max_timestamp, self._max_timestamp_offset = self._time_index.last
        self._buffer = bytearray()
        self._written = self._let_go = 0
        self.size = 0

    @property
    def state(self) -> tuple[int, int, int, int]:
        return (
            self.size,
            self._index.last_position,
            self._max_timestamp,
            self._max_timestamp_offset,
        )

    def append_run(
        self,
        left: bytearray,
        entries: list[tuple[int, int, int, int]],
        state: tuple[int, int, int, int],
    ) -> None:
        """What `retain_plain` left, which has done for each batch what `append` does."""
        self._ensure_room(len(left))
        for last_offset, position, max_timestamp, max_timestamp_offset in entries:
            self._index.append(last_offset, position)
            self._time_index.maybe_append(max_timestamp, max_timestamp_offset)
        self.size, _, self._max_timestamp, self._max_timestamp_offset = state
        self._add(left)

    def append(self, left: Left) -> None:
        position, last_offset = self.size, left.header.last_offset
        self._ensure_room(len(left.raw))
        if left.header.max_timestamp > self._max_timestamp:
            self._max_timestamp = left.header.max_timestamp
            self._max_timestamp_offset = last_offset
        if position - self._index.last_position > self._interval_bytes:
            self._index.append(last_offset, position)
            self._time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
        self.size += len(left.raw)
        self._add(left.raw)

    def _ensure_room(self, size: int) -> None:
        if self.size > POSITION_MAX - size:
            raise RunnelError(
                ErrorCode.RECORD_LIST_TOO_LARGE, f"{self._paths[0]} grows beyond one segment"
            )

    def _add(self, raw: Readable) -> None:
        self._buffer += raw
        if len(self._buffer) >= self._buffer_bytes:
            self._write()

    def _write(self) -> None:
        write_all(self._file, self._written, self._buffer)
        self._written += len(self._buffer)
        self._pace(len(self._buffer))
        self._buffer = bytearray()
        if self._written - self._let_go >= LET_GO_EVERY_BYTES:
            self._file.let_go(self._let_go, self._written - self._let_go)
            self._let_go = self._written

    def finish(self, transactions: TransactionIndex) -> None:
        """All that is left is written, and everything is durable."""
        self._write()
        files = [self._file]
        self._time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
        indexes: tuple[OffsetIndex | TimeIndex | TransactionIndex, ...] = (
            self._index,
            self._time_index,
            transactions,
        )
        for path, index in zip(self._paths[1:], indexes, strict=True):
            index.rewrite()
            write = index.unwritten(path)
            if write is not None and write.create:
                file = self._disk.open(path, create=True)
                write_all(file, 0, write.data)
                files.append(file)
        for file in files:  # all on their way before the first sync, so that one commit does
            file.let_go(0, file.size())
        for file in files:
            file.sync()
