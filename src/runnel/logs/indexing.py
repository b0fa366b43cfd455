"""Building the index of a topic without Spark: what it does not cover yet is read and added.

Ranges of a partition become segments, several at a time in processes of their own. Each is put into
the index when it is ready, so that an interrupted run keeps what it has done.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

from runnel.client.cluster import Cluster, addresses_of
from runnel.logs.index import SEGMENT_LINES, Index, Span
from runnel.logs.segment import SegmentInfo, SegmentWriter
from runnel.logs.topics import BrokerSource, FolderSource, Source

PROCESSES_MAX: Final = 8
ALONE_LINES: Final = 100_000  # up to which other processes are not worth their start
CLIENT_ID: Final = "runnel-logs-index"


class Where(NamedTuple):
    """From where a topic is read: a broker, or a data folder. Other processes get it, too."""

    topic: str
    bootstrap: str = ""
    path: str = ""

    @contextmanager
    def opened(self) -> "Iterator[Source]":
        """Raises ClientError, OfflineError, SourceError."""
        if self.path:
            yield FolderSource(self.path, self.topic)
            return
        with Cluster(addresses_of(self.bootstrap), client_id=CLIENT_ID) as cluster:
            yield BrokerSource(cluster, self.bootstrap, self.topic)


class Indexed(NamedTuple):
    """What a run did."""

    lines: int
    segments: int
    expired_lines: int
    merged: int


def missing(index: Index, bounds: Mapping[int, Span]) -> list[tuple[int, Span]]:
    """Partitions and ranges that are still to be indexed."""
    listed = index.listed()
    return [
        (partition, Span(start, min(start + SEGMENT_LINES, span.end)))
        for partition, bound in sorted(bounds.items())
        for span in listed.missing(partition, *bound)
        for start in range(span.start, span.end, SEGMENT_LINES)
    ]


def catch_up(
    index: Index,
    where: Where,
    *,
    processes: int | None = None,
    done: Callable[[int], None] = lambda offsets: None,
) -> Indexed:
    """Index all that is there now and is not indexed yet; `done` is told how many offsets are.

    Raises LogIndexError, ClientError, OfflineError, ReadError, OSError.
    """
    with where.opened() as source:
        bounds, topic_id = source.bounds(), source.topic_id
        index.ensure_same(index.listed(), topic_id)
        index.folder.mkdir(parents=True, exist_ok=True)
        index.sweep()
        expired = index.expire({at: span.start for at, span in bounds.items()})
        work = missing(index, bounds)
        total = sum(span.end - span.start for _, span in work)
        count = min(processes or os.cpu_count() or 1, len(work), PROCESSES_MAX)
        lines = segments = offsets = 0
        made: Iterator[tuple[Span, SegmentInfo]]
        if total <= ALONE_LINES or count <= 1:
            made = (
                (span, build(source, index.folder, partition, span)) for partition, span in work
            )
        else:
            made = _made_by_others(where, index.folder, work, count)
        for span, info in made:
            taken = index.commit([info], topic_id=topic_id)
            lines += sum(each.lines for each in taken)
            segments += len(taken)
            offsets += span.end - span.start
            done(offsets)
    merged = 0
    while count_of_one := index.merge():
        merged += count_of_one
    return Indexed(lines, segments, expired, merged)


def build(source: Source, folder: Path, partition: int, span: Span) -> SegmentInfo:
    """One segment, not yet part of the index."""
    with SegmentWriter(folder, partition, span.start) as writer:
        for records in source.records(partition, span):
            writer.add(records)
        return writer.finish(span.end)


def _made_by_others(
    where: Where, folder: Path, work: list[tuple[int, Span]], count: int
) -> Iterator[tuple[Span, SegmentInfo]]:
    """As they are ready. What is not begun when the caller leaves is not begun any more."""
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"))
    try:
        waiting: dict[Future[SegmentInfo], Span] = {
            pool.submit(_build_there, where, folder, partition, span): span
            for partition, span in work
        }
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _build_there(where: Where, folder: Path, partition: int, span: Span) -> SegmentInfo:
    with where.opened() as source:
        return build(source, folder, partition, span)
