"""Carrying out a plan of compaction: the keys are mapped, then segments are written anew.

Runs in a process of its own, or in a worker, or inline: it reads closed segments and writes files
that nobody else knows of, `<base offset>.log.cleaned` with its indexes, and syncs them. To put them
in the place of the old ones is the log's own work, on the loop (`log_cleaning.py`).
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from runnel.errors import ErrorCode, RunnelError
from runnel.native.backend import OffsetMap
from runnel.native.records import payload_of
from runnel.ports import Disk
from runnel.storage.batch_retention import Left, Round, left_of
from runnel.storage.cleaned_transactions import CleanedTransactions
from runnel.storage.cleaning_plan import CleaningPlan, Source
from runnel.storage.files import write_all
from runnel.storage.folder import CLEANED
from runnel.storage.index import OffsetIndex, TimeIndex
from runnel.storage.segment import INDEX, LOG, TIME_INDEX, TXN_INDEX
from runnel.storage.transactions import TransactionIndex, read_marker
from runnel.wire.batch import (
    CONTROL,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    crc_is_right,
)

MAP_ENTRY_BYTES = 24
POSITION_MAX = 2**31 - 1
SYNC_EVERY_BYTES = 16 << 20  # so that no flood of dirty pages makes others wait

Pace = Callable[[int], None]


class Cleaned(NamedTuple):
    """One new segment, complete and synced under its `.cleaned` names."""

    base_offset: int
    source_count: int
    size_bytes: int
    read_bytes: int
    mapped_offset: int  # compacted up to here once all groups are in place


def rewrite(disk: Disk, plan: CleaningPlan, pace: Pace = lambda _bytes: None) -> Iterator[Cleaned]:
    """One new segment after the other. Raises OSError, or RunnelError for damaged batches.

    `pace` is called with the bytes read or written, and may take its time. Segments past those
    whose keys found room in the map are left as they are.
    """
    offsets, mapped_offset = _map_keys(disk, plan, pace)
    by = Round(
        offsets,
        mapped_offset,
        plan.end_offset,
        plan.now_ms,
        plan.delete_retention_ms,
        dict(plan.last_records),
        CleanedTransactions(plan.aborted),
    )
    for group in plan.groups:
        if group[0].base_offset >= mapped_offset:
            break
        yield _rewrite_group(disk, plan, group, by, pace)


def cleaned_paths(folder: str, base_offset: int) -> list[str]:
    stem = f"{folder}/{base_offset:020d}"
    return [f"{stem}{suffix}{CLEANED}" for suffix in (LOG, INDEX, TIME_INDEX, TXN_INDEX)]


def _map_keys(disk: Disk, plan: CleaningPlan, pace: Pace) -> tuple[OffsetMap, int]:
    """The last offsets of the dirty keys, and up to which offset the map knows them all."""
    slots = max(plan.limits.map_bytes // MAP_ENTRY_BYTES, 2)
    offsets = OffsetMap(slots, plan.limits.load_factor, plan.seed)
    first = plan.first_dirty_offset
    transactions = CleanedTransactions([a for a in plan.aborted if a.last_offset >= first])
    mapped_offset = first
    for source in [source for group in plan.groups for source in group]:
        if source.next_offset <= first:
            continue
        for header, raw in _batches(disk, plan, source, pace):
            if header.next_offset <= first:
                continue
            if header.attributes & CONTROL:
                transactions.may_drop_marker(header, read_marker(raw))
            elif not transactions.is_aborted(header) and header.record_count:
                payload = payload_of(header, raw[HEADER_SIZE:])
                full_at = offsets.add(header, payload, first)
                if full_at >= 0:
                    return offsets, full_at
            mapped_offset = header.next_offset
        mapped_offset = source.next_offset
    return offsets, mapped_offset


def _batches(
    disk: Disk, plan: CleaningPlan, source: Source, pace: Pace
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch of a segment, its checksum compared."""
    path = f"{plan.folder}/{source.base_offset:020d}{LOG}"
    file = disk.open(path)
    position, wanted = 0, max(plan.limits.io_buffer_bytes, HEADER_SIZE)
    while position < source.size_bytes:
        size = min(wanted, source.size_bytes - position)
        chunk = memoryview(file.read_at(position, size))
        wanted, at = max(plan.limits.io_buffer_bytes, HEADER_SIZE), 0
        while at + HEADER_SIZE <= len(chunk):
            header = BatchHeader.read(chunk, at)
            if header.length < HEADER_SIZE - LOG_OVERHEAD or header.magic != MAGIC:
                raise _damaged(path, position + at, "no batch")
            if at + header.size > len(chunk):
                wanted = max(wanted, header.size)
                break
            if not crc_is_right(header, chunk, at):
                raise _damaged(path, position + at, "a batch with a wrong CRC")
            yield header, chunk[at : at + header.size]
            at += header.size
        if not at and wanted <= len(chunk):
            raise _damaged(path, position, "a batch that is cut off")
        if not at and position + wanted > source.size_bytes:
            raise _damaged(path, position, "a batch that is cut off")
        position += at
        pace(at)


def _damaged(path: str, position: int, what: str) -> RunnelError:
    return RunnelError(ErrorCode.CORRUPT_MESSAGE, f"{path}: {what} at position {position}")


def _rewrite_group(
    disk: Disk, plan: CleaningPlan, group: tuple[Source, ...], by: Round, pace: Pace
) -> Cleaned:
    by.transactions.kept = []
    target = _Target(disk, plan, group[0].base_offset, pace)
    for source in group:
        for header, raw in _batches(disk, plan, source, pace):
            left = left_of(header, raw, by)
            if left is not None:
                target.append(left)
    target.finish(TransactionIndex(by.transactions.kept))
    read_bytes = sum(source.size_bytes for source in group)
    return Cleaned(group[0].base_offset, len(group), target.size, read_bytes, by.mapped_offset)


class _Target:
    """The new segment while it is written."""

    def __init__(self, disk: Disk, plan: CleaningPlan, base_offset: int, pace: Pace) -> None:
        self._disk = disk
        self._paths = cleaned_paths(plan.folder, base_offset)
        for path in self._paths:  # an earlier try may have left them
            with contextlib.suppress(FileNotFoundError):
                disk.remove(path)
        self._interval_bytes = plan.index_interval_bytes
        self._buffer_bytes = plan.limits.io_buffer_bytes
        self._pace = pace
        self._file = disk.open(self._paths[0], create=True)
        self._index = OffsetIndex(base_offset)
        self._time_index = TimeIndex(base_offset)
        self._max_timestamp, self._max_timestamp_offset = self._time_index.last
        self._buffer = bytearray()
        self._written = self._synced = 0
        self.size = 0

    def append(self, left: Left) -> None:
        position, last_offset = self.size, left.header.last_offset
        if position > POSITION_MAX - len(left.raw):
            raise RunnelError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self._paths[0]} grows beyond one segment"
            )
        if left.header.max_timestamp > self._max_timestamp:
            self._max_timestamp = left.header.max_timestamp
            self._max_timestamp_offset = last_offset
        if position - self._index.last_position > self._interval_bytes:
            self._index.append(last_offset, position)
            self._time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
        self._buffer += left.raw
        self.size += len(left.raw)
        if len(self._buffer) >= self._buffer_bytes:
            self._write()

    def _write(self) -> None:
        write_all(self._file, self._written, self._buffer)
        self._written += len(self._buffer)
        self._pace(len(self._buffer))
        self._buffer = bytearray()
        if self._written - self._synced >= SYNC_EVERY_BYTES:
            self._file.sync()
            self._synced = self._written

    def finish(self, transactions: TransactionIndex) -> None:
        self._write()
        self._file.sync()
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
                file.sync()
