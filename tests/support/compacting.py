"""Compaction of one log inline, and what a reader of committed data makes of a log."""

from collections.abc import Iterator
from typing import NamedTuple

from runnel.native.columns import ControlType
from runnel.native.records import decode
from runnel.ports import Disk
from runnel.storage.cleaning_plan import Cleanable, Limits, Planned, cleanable, plan_in_steps
from runnel.storage.log import Log
from runnel.storage.rewriting import rewrite
from runnel.wire.batch import BatchHeader
from tests.support.stores import read_all

LIMITS = Limits(
    map_bytes=24 * 1000, load_factor=0.9, io_buffer_bytes=512, bytes_per_second=float("inf")
)
SEED = bytes(range(16))


class Seen(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


def clean(
    disk: Disk, log: Log, now_ms: int, *, last_stable_offset: int | None = None,
    limits: Limits = LIMITS,
) -> Cleanable:  # fmt: skip
    """All that may be compacted now, however little it is. What there was to do."""
    if last_stable_offset is None:
        unstable = log.first_unstable_offset
        last_stable_offset = log.log_end_offset if unstable is None else unstable
    found = cleanable(log, last_stable_offset, now_ms)
    if not found.dirty_bytes:
        return found
    work, groups = planned(found, now_ms, limits)
    mapped_offset = found.first_dirty_offset
    for old, cleaned in zip(groups, rewrite(disk, work), strict=False):
        assert old[0].base_offset == cleaned.base_offset
        assert log.may_replace(old)
        log.replace_segments(old, cleaned.size_bytes)
        mapped_offset = cleaned.mapped_offset
    disk.sync_dir(log.folder)
    log.first_dirty_offset = mapped_offset
    return found


def planned(found: Cleanable, now_ms: int, limits: Limits = LIMITS) -> Planned:
    """In one go."""
    steps = plan_in_steps(found, now_ms, SEED, limits)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # what a generator returns is not typed


def headers(log: Log) -> list[BatchHeader]:
    data, position, found = read_all(log), 0, []
    while position < len(data):
        found.append(BatchHeader.read(data, position))
        position += found[-1].size
    return found


def committed(log: Log) -> Iterator[Seen]:
    """What a consumer with read_committed gets: markers and aborted data left out."""
    data = read_all(log)
    if not data:
        return
    found = decode(data, max_records=1 << 30, max_bytes=1 << 30, control=True)
    rows = list(found.rows())
    aborted = sorted(
        log.aborted_in(log.log_start_offset, log.log_end_offset), key=lambda a: a.first_offset
    )
    hidden: set[int] = set()
    for batch in found.batches:
        header = batch.header
        while aborted and aborted[0].first_offset <= header.last_offset:
            hidden.add(aborted.pop(0).producer_id)
        if header.is_control:
            if batch.control is ControlType.ABORT:
                hidden.discard(header.producer_id)
            continue
        if header.is_transactional and header.producer_id in hidden:
            continue
        for row in rows[batch.first_row : batch.first_row + batch.row_count]:
            if row.offset >= log.log_start_offset:
                yield Seen(row.offset, row.key, row.value, row.timestamp)


def latest(log: Log) -> dict[bytes, tuple[int, bytes, int]]:
    """The last offset, value and time of each key that has one: what compaction must keep."""
    found: dict[bytes, tuple[int, bytes, int]] = {}
    for seen in committed(log):
        assert seen.key is not None
        found.pop(seen.key, None)
        if seen.value is not None:
            found[seen.key] = (seen.offset, seen.value, seen.timestamp)
    return found
