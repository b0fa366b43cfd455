"""What to compact, decided from what a log knows of itself; nothing is read or written here.

The range ends before the active segment, the last stable offset, what is not durable yet, and what
is younger than `min.compaction.lag.ms`. It starts at the first dirty offset, up to which the last
compaction came: what lies before it is clean, and is gone over once more with the new keys. The
rules are those of Kafka's `LogCleanerManager`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from runnel.config.topic import NEVER
from runnel.storage.index import MAX_RELATIVE_OFFSET
from runnel.storage.log import Log
from runnel.storage.segment import Segment
from runnel.storage.transactions import AbortedTransaction

GROUP_SEGMENTS_MAX = 128  # each is some renames on the loop


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


def plan(found: Cleanable, now_ms: int, seed: bytes, limits: Limits) -> CleaningPlan:
    """Raises KAFKA_STORAGE_ERROR: the index of aborted transactions is read."""
    log = found.log
    segments = [segment for segment in log.segments if segment.base_offset < found.end_offset]
    return CleaningPlan(
        folder=log.folder,
        groups=tuple(_grouped(segments, log.segment_bytes_max)),
        first_dirty_offset=found.first_dirty_offset,
        end_offset=found.end_offset,
        now_ms=now_ms,
        delete_retention_ms=log.config.delete_retention_ms,
        index_interval_bytes=log.config.index_interval_bytes,
        last_records=tuple(
            (
                producer_id,
                LastRecord(
                    producer.batches[-1].last_offset if producer.batches else -1, producer.epoch
                ),
            )
            for producer_id, producer in log.producers.producers.items()
        ),
        aborted=tuple(log.aborted_in(segments[0].base_offset, found.end_offset)),
        seed=seed,
        limits=limits,
    )


def _grouped(segments: Sequence[Segment], size_max: int) -> list[tuple[Source, ...]]:
    """Neighbours that fit into one segment become one, so that small ones do not pile up."""
    groups: list[list[Source]] = []
    size = 0
    for segment in segments:
        source = Source(segment.base_offset, segment.next_offset, segment.size)
        if (
            groups
            and size + source.size_bytes <= size_max
            and len(groups[-1]) < GROUP_SEGMENTS_MAX
            and source.next_offset - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET
        ):
            groups[-1].append(source)
            size += source.size_bytes
        else:
            groups.append([source])
            size = source.size_bytes
    return [tuple(group) for group in groups]
