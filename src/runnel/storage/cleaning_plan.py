"""What to compact, decided from what a log knows of itself; nothing is read or written here.

The range ends before the active segment, the last stable offset, what is not durable yet, and what
is younger than `min.compaction.lag.ms`. It starts at the first dirty offset, up to which the last
compaction came: what lies before it is clean, and is gone over once more with the new keys. The
rules are those of Kafka's `LogCleanerManager`.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

from runnel.config.topic import NEVER
from runnel.storage.index import MAX_RELATIVE_OFFSET
from runnel.storage.log import Log
from runnel.storage.segment import Segment
from runnel.storage.transactions import AbortedTransaction

GROUP_SEGMENTS_MAX = 128  # each is some renames on the loop
ITEMS_PER_STEP = 200  # segments or producers: a millisecond or two


class Source(NamedTuple):
    """A closed segment to be read."""

    base_offset: int
    next_offset: int
    size_bytes: int


class LastRecord(NamedTuple):
    """Of a producer that is known: the last offset of its data, -1 if there is none, its epoch."""

    last_data_offset: int
    producer_epoch: int


class Limits(NamedTuple):
    """What a compaction may use."""

    map_bytes: int
    load_factor: float
    io_buffer_bytes: int
    bytes_per_second: float


class CleaningPlan(NamedTuple):
    """Plain numbers and paths, so that another process can carry it out."""

    folder: str
    groups: tuple[tuple[Source, ...], ...]  # each becomes one segment
    first_dirty_offset: int
    end_offset: int
    now_ms: int
    delete_retention_ms: int
    index_interval_bytes: int
    last_records: tuple[tuple[int, LastRecord], ...]  # by producer id
    aborted: tuple[AbortedTransaction, ...]
    seed: bytes
    limits: Limits


class Planned(NamedTuple):
    """A plan, and the segments that each of its groups is to take the place of."""

    plan: CleaningPlan
    groups: list[list[Segment]]


class Cleanable(NamedTuple):
    """How much of a log there is to do."""

    log: Log
    first_dirty_offset: int
    end_offset: int  # the base of the first segment that must stay as it is
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool  # by `max.compaction.lag.ms`

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        least = self.log.config.min_cleanable_dirty_ratio
        return self.dirty_bytes > 0 and (self.is_overdue or self.dirty_ratio > least)


def cleanable(log: Log, last_stable_offset: int, now_ms: int) -> Cleanable:
    """Raises OSError and RunnelError, as whoever asks a segment for its times may."""
    first_dirty = log.first_dirty_offset
    if not log.log_start_offset <= first_dirty <= log.log_end_offset:
        first_dirty = log.log_start_offset
    config = log.config
    closed = log.segments[:-1]
    end_offset = log.segments[-1].base_offset
    unfinished = log.unflushed_segments
    for segment in closed:
        if (
            segment.next_offset > last_stable_offset
            or segment.next_offset > log.flushed_offset
            or segment in unfinished
            or (
                config.min_compaction_lag_ms > 0
                and segment.next_offset > first_dirty
                and segment.max_timestamp > now_ms - config.min_compaction_lag_ms
            )
        ):
            end_offset = segment.base_offset
            break
    clean_bytes = dirty_bytes = 0
    is_overdue = False
    for segment in closed:
        if segment.base_offset >= end_offset:
            break
        if segment.next_offset <= first_dirty:
            clean_bytes += segment.size
            continue
        dirty_bytes += segment.size
        if config.max_compaction_lag_ms != NEVER and segment.size and not is_overdue:
            since_ms = segment.first_timestamp
            is_overdue = 0 < since_ms < now_ms - config.max_compaction_lag_ms
    return Cleanable(log, first_dirty, end_offset, clean_bytes, dirty_bytes, is_overdue)


def plan_in_steps(
    found: Cleanable, now_ms: int, seed: bytes, limits: Limits
) -> Generator[None, None, Planned]:
    """Others may have a turn where it yields: a log may have ten thousand segments and producers.

    The log may go on meanwhile: what is planned is below its last stable offset and does not change
    but by truncation or retention, which the caller looks for.
    Raises KAFKA_STORAGE_ERROR: the indexes of aborted transactions are read.
    """
    log = found.log
    segments = [segment for segment in log.segments if segment.base_offset < found.end_offset]
    first_offset, end_offset = segments[0].base_offset, found.end_offset
    aborted: list[AbortedTransaction] = []
    for number, segment in enumerate(list(log.segments), 1):
        if log.collect_aborted(segment, first_offset, end_offset, aborted):
            break
        if number % ITEMS_PER_STEP == 0:
            yield
    last_records: list[tuple[int, LastRecord]] = []
    for producer_id, producer in list(log.producers.producers.items()):
        last_offset = producer.batches[-1].last_offset if producer.batches else -1
        last_records.append((producer_id, LastRecord(last_offset, producer.epoch)))
        if len(last_records) % ITEMS_PER_STEP == 0:
            yield
    groups: list[tuple[Source, ...]] = []
    segment_groups: list[list[Segment]] = []
    for group in _grouped(segments, log.segment_bytes_max):
        segment_groups.append(group)
        groups.append(tuple(map(_source, group)))
        if len(groups) % ITEMS_PER_STEP == 0:
            yield
    plan = CleaningPlan(
        folder=log.folder,
        groups=tuple(groups),
        first_dirty_offset=found.first_dirty_offset,
        end_offset=end_offset,
        now_ms=now_ms,
        delete_retention_ms=log.config.delete_retention_ms,
        index_interval_bytes=log.config.index_interval_bytes,
        last_records=tuple(last_records),
        aborted=tuple(aborted),
        seed=seed,
        limits=limits,
    )
    return Planned(plan, segment_groups)


def _source(segment: Segment) -> Source:
    return Source(segment.base_offset, segment.next_offset, segment.size)


def _grouped(segments: Sequence[Segment], size_max: int) -> Iterator[list[Segment]]:
    """Neighbours that fit into one segment become one, so that small ones do not pile up."""
    group: list[Segment] = []
    size = 0
    for segment in segments:
        if group and not (
            size + segment.size <= size_max
            and len(group) < GROUP_SEGMENTS_MAX
            and segment.next_offset - 1 - group[0].base_offset <= MAX_RELATIVE_OFFSET
        ):
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group
