"""Carrying out a plan of compaction: the keys are mapped, then segments are written anew.

Runs in a process of its own, or in a worker, or inline: it reads closed segments and writes files
that nobody else knows of, `<base offset>.log.cleaned` with its indexes, and syncs them. To put them
in the place of the old ones is the log's own work, on the loop (`log_cleaning.py`).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from runnel.errors import ErrorCode, RunnelError
from runnel.native.backend import OffsetMap
from runnel.native.records import payload_of
from runnel.ports import Disk
from runnel.storage.batch_retention import Round, left_of
from runnel.storage.cleaned_segment import CleanedSegment, Pace
from runnel.storage.cleaned_transactions import CleanedTransactions
from runnel.storage.cleaning_plan import CleaningPlan, Source
from runnel.storage.segment import LOG
from runnel.storage.transactions import TransactionIndex, read_marker
from runnel.wire.batch import (
    CONTROL,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    crc32c,
    crc_is_right,
)

MAP_ENTRY_BYTES = 24

Run = Callable[[memoryview, int], int]  # takes plain batches of a chunk, says where it stopped


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


class _FullError(Exception):
    """The map has no room for the key of the record at `offset`."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


def _map_keys(disk: Disk, plan: CleaningPlan, pace: Pace) -> tuple[OffsetMap, int]:
    """The last offsets of the dirty keys, and up to which offset the map knows them all."""
    keys = _Keys(plan)
    mapped_offset = plan.first_dirty_offset
    try:
        for source in [source for group in plan.groups for source in group]:
            if source.next_offset > plan.first_dirty_offset:
                for header, raw in _batches(disk, plan, source, pace, keys.take_run):
                    keys.take(header, raw)
                mapped_offset = source.next_offset
    except _FullError as full:
        mapped_offset = full.offset
    return keys.offsets, mapped_offset


class _Keys:
    """The map while it is filled."""

    def __init__(self, plan: CleaningPlan) -> None:
        self.offsets = OffsetMap(_slots(plan), plan.limits.load_factor, plan.seed)
        self._first = plan.first_dirty_offset
        self._transactions = CleanedTransactions(
            [aborted for aborted in plan.aborted if aborted.last_offset >= self._first]
        )

    def take_run(self, chunk: memoryview, position: int) -> int:
        position, full_at = self.offsets.add_plain(chunk, position, self._first, crc32c)
        if full_at >= 0:
            raise _FullError(full_at)
        return position

    def take(self, header: BatchHeader, raw: memoryview) -> None:
        if header.next_offset <= self._first:
            return
        if header.attributes & CONTROL:
            self._transactions.may_drop_marker(header, read_marker(raw))
        elif not self._transactions.is_aborted(header) and header.record_count:
            payload = payload_of(header, raw[HEADER_SIZE:])
            full_at = self.offsets.add(header, payload, self._first)
            if full_at >= 0:
                raise _FullError(full_at)


def _slots(plan: CleaningPlan) -> int:
    """No more than there can be keys: a small table stays in the caches of the processor."""
    count = max(plan.end_offset - plan.first_dirty_offset, 1)
    enough = max(2 * count, int(count / plan.limits.load_factor)) + 16
    return max(min(plan.limits.map_bytes // MAP_ENTRY_BYTES, enough), 2)


def _batches(
    disk: Disk, plan: CleaningPlan, source: Source, pace: Pace, run: Run
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch of a segment that `run` did not take by itself, its checksum compared."""
    path = f"{plan.folder}/{source.base_offset:020d}{LOG}"
    file = disk.open(path)
    least = max(plan.limits.io_buffer_bytes, HEADER_SIZE)
    position, wanted = 0, least
    while position < source.size_bytes:
        size = min(wanted, source.size_bytes - position)
        chunk = memoryview(file.read_at(position, size))
        wanted, at = least, 0
        while at + HEADER_SIZE <= len(chunk):
            at = run(chunk, at)
            if at + HEADER_SIZE > len(chunk):
                break
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
        if not at and (wanted <= len(chunk) or position + wanted > source.size_bytes):
            raise _damaged(path, position, "a batch that is cut off")
        position += at
        pace(at)


def _damaged(path: str, position: int, what: str) -> RunnelError:
    return RunnelError(ErrorCode.CORRUPT_MESSAGE, f"{path}: {what} at position {position}")


def _rewrite_group(
    disk: Disk, plan: CleaningPlan, group: tuple[Source, ...], by: Round, pace: Pace
) -> Cleaned:
    by.transactions.kept = []
    target = CleanedSegment(
        disk, plan.folder, group[0].base_offset, interval_bytes=plan.index_interval_bytes,
        buffer_bytes=plan.limits.io_buffer_bytes, pace=pace,
    )  # fmt: skip

    def run(chunk: memoryview, position: int) -> int:
        position, left, entries, state = by.offsets.retain_plain(
            chunk, position, by.mapped_offset, by.end_offset, by.now_ms, by.last_records, crc32c,
            plan.index_interval_bytes, target.state,
        )  # fmt: skip
        target.append_run(left, entries, state)
        return position

    for source in group:
        for header, raw in _batches(disk, plan, source, pace, run):
            left = left_of(header, raw, by)
            if left is not None:
                target.append(left)
    target.finish(TransactionIndex(by.transactions.kept))
    read_bytes = sum(source.size_bytes for source in group)
    return Cleaned(group[0].base_offset, len(group), target.size, read_bytes, by.mapped_offset)
