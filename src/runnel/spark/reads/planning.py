"""Ranges of offsets for tasks: from start and end to what each task reads. No IO.

Splitting follows Spark's Kafka source: a range per partition, unless `maxRecordsPerPartition` or
`minPartitions` asks for more; then large ranges are split in proportion to their size.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, floor

from runnel.arrow.errors import SourceError
from runnel.arrow.ranges import Range
from runnel.spark.reads.offsets import OFFSET_MAX, OffsetMap
from runnel.storage.checkpoints import decode_id
from runnel.types import NO_TOPIC_ID, TopicPartition


@dataclass(frozen=True)
class Splitting:
    min_partitions: int | None = None
    max_records_per_partition: int | None = None

    def split(self, ranges: Iterable[Range]) -> list[Range]:
        """In the order of topics, partitions and offsets; those without offsets are left out."""
        found = sorted(each for each in ranges if each.end > each.start)
        if self.max_records_per_partition is not None:
            most = self.max_records_per_partition
            found = [part for each in found for part in _divided(each, ceil(_size(each) / most))]
        if self.min_partitions is not None and self.min_partitions > len(found):
            found = _spread(found, self.min_partitions)
        return found


def ranges_between(starts: OffsetMap, ends: OffsetMap, topic_ids: Mapping[str, str]) -> list[Range]:
    """Of the partitions that have both; a start beyond its end is left to the caller."""
    topics = {at.topic for at in ends if at in starts}
    ids = {topic: decode_id(topic_ids[topic]) for topic in topics if topic_ids.get(topic)}
    return [
        Range(at.topic, at.index, starts[at], ends[at], topic_id=ids.get(at.topic, NO_TOPIC_ID))
        for at in sorted(ends)
        if at in starts
    ]


def check_resolved(starts: OffsetMap, ends: OffsetMap) -> None:
    """Raises SourceError for a batch read that ends before it begins."""
    for at, start in starts.items():
        if start > ends[at]:
            raise SourceError(
                f"The resolved start offset {start} is greater than the resolved end offset"
                f" {ends[at]} for topic {at.topic} partition {at.index}. Check that the starting"
                " option is not beyond the ending one or the end of the log, and that the topic"
                " was not deleted and made anew."
            )


def limited(
    limit: float,
    starts: OffsetMap,
    ends: OffsetMap,
    weights: Mapping[TopicPartition, float] | None = None,
) -> dict[TopicPartition, int]:
    """Ends such that about `limit` offsets are read, by partition in proportion to its backlog.

    With `weights` an offset of a partition counts for so much, in bytes. Where there is anything
    to read, at least one offset is read.
    """
    weight = weights or {}
    sizes = {
        at: (end - starts[at]) * weight.get(at, 1.0)
        for at, end in ends.items()
        if at in starts and end > starts[at]
    }
    total = sum(sizes.values())
    if total <= limit:
        return dict(ends)
    found = dict(ends)
    for at, size in sizes.items():
        share = limit * (size / total) / weight.get(at, 1.0)
        offsets = ceil(share) if share < 1 else floor(share)
        found[at] = min(ends[at], starts[at] + max(1, offsets), OFFSET_MAX)
    return found


def backlog(starts: OffsetMap, ends: OffsetMap) -> int:
    return sum(max(0, end - starts.get(at, 0)) for at, end in ends.items())


def _size(each: Range) -> int:
    return each.end - each.start


def _spread(ranges: list[Range], min_partitions: int) -> list[Range]:
    """Ranges too small to be split are taken out before the others are shared out."""
    total = sum(map(_size, ranges))
    unsplit = [each for each in ranges if _part_count(_size(each), total, min_partitions) == 1]
    names = {each[:2] for each in unsplit}
    split_total = total - sum(map(_size, unsplit))
    left = max(min_partitions - len(unsplit), 1)
    return [
        part
        for each in ranges
        for part in _divided(
            each,
            1 if each[:2] in names else _part_count(_size(each), split_total, left),
        )
    ]


def _part_count(size: int, total: int, min_partitions: int) -> int:
    return max(floor(size / total * min_partitions + 0.5), 1)


def _divided(each: Range, parts: int) -> list[Range]:
    found: list[Range] = []
    start, remaining = each.start, _size(each)
    for part in range(parts):
        count = remaining // (parts - part)
        remaining -= count
        if count:
            found.append(each._replace(start=start, end=start + count))
        start += count
    return found
