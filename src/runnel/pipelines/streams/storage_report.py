"""Storage by topic and day: which segments there are, what they hold, what a retention would free.

The driver lists files and asks the broker's own rule about retention; what is in the files is read
by tasks, each with about as many bytes as the others.
"""

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from runnel.inspect.analyzing import AnalyzedSegment
from runnel.inspect.describing import describe_partition
from runnel.inspect.folders import PartitionFiles, look_into
from runnel.inspect.freeing import freed_by
from runnel.pipelines.streams.segment_facts import COUNTS, SCHEMA, Segment, facts
from runnel.storage.files import OsDisk

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

TASKS_PER_CORE: Final = 4
_APPROXIMATELY: Final = "approx_count_distinct({}, 0.02)"
_EXACTLY: Final = "count(distinct {})"


class Retention(NamedTuple):
    ms: int  # -1 for none
    bytes: int

    @property
    def is_asked(self) -> bool:
        return self.ms >= 0 or self.bytes >= 0


@dataclass
class TopicFiles:
    """What the driver knows of a topic."""

    partitions: int = 0
    segments: list[Segment] = field(default_factory=list)
    index_bytes: int = 0
    offsets: int = 0  # no more records than that
    freed_bytes: int = 0
    freed_segments: int = 0


def look(
    folders: Iterable[str], wanted: re.Pattern[str], retention: Retention, now_ms: int
) -> dict[str, TopicFiles]:
    """Topics in whose names it is found. Raises OSError for a folder that cannot be read."""
    disk = OsDisk(read_only=True)
    found: defaultdict[str, TopicFiles] = defaultdict(TopicFiles)
    for folder in folders:
        for files in look_into(disk, folder).partitions:
            topic = files.partition.topic
            if wanted.search(topic):
                _add(disk, found[topic], files, retention, now_ms)
    return dict(sorted(found.items()))


def _add(
    disk: OsDisk, topic: TopicFiles, files: PartitionFiles, retention: Retention, now_ms: int
) -> None:
    topic.partitions += 1
    topic.index_bytes += files.index_bytes
    topic.segments += [
        Segment(segment.path(), files.partition.topic, segment.size) for segment in files.segments
    ]
    described = describe_partition(disk, files)
    topic.offsets += described.log_end_offset - described.log_start_offset
    if retention.is_asked:
        segments = [
            AnalyzedSegment(each.files, each.size, each.next_offset, each.max_timestamp)
            for each in described.segments
        ]
        freed = freed_by(
            segments, retention_ms=retention.ms, retention_bytes=retention.bytes, now_ms=now_ms
        )
        topic.freed_bytes += freed.bytes
        topic.freed_segments += freed.segments


def shared_out(segments: Iterable[Segment], tasks: int) -> list[list[Segment]]:
    """The largest first, each to whoever has least."""
    loads: list[tuple[int, int]] = [(0, task) for task in range(tasks)]
    found: list[list[Segment]] = [[] for _ in range(tasks)]
    for segment in sorted(segments, key=lambda each: -each.size_bytes):
        load, task = heapq.heappop(loads)
        found[task].append(segment)
        heapq.heappush(loads, (load + segment.size_bytes, task))
    return found


def scanned(spark: "SparkSession", segments: list[Segment], tasks: int) -> "DataFrame":
    """Rows of `segment_facts.SCHEMA`, read by so many tasks."""
    shares = shared_out(segments, tasks)

    def read(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from facts(shares[number])

    return spark.range(0, tasks, 1, tasks).mapInArrow(read, SCHEMA)


def summed_up(rows: "DataFrame", *, exact: bool) -> "DataFrame":
    """By topic and day, and by topic, where `day` is null."""
    distinct = _EXACTLY if exact else _APPROXIMATELY
    sums = ", ".join(f"coalesce(sum({name}), 0) as {name}" for name in COUNTS)
    keys = distinct.format("case when what = 'key' then hash end")
    records = distinct.format("case when what = 'record' then hash end")
    return rows.sparkSession.sql(
        f"select topic, date_from_unix_date(day) as day, {sums}, {keys} as keys,"
        f" {records} as different_records, min(first_ms) as first_ms, max(last_ms) as last_ms"
        " from {rows} group by grouping sets ((topic), (topic, day)) order by topic, day",
        rows=rows,
    )
