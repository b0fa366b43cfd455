"""Filters that become ranges of offsets, with `pushdown=true`, in batch reads.

Only a reader that has `pushFilters` is given filters, and one that has it fails while Spark's
`spark.sql.python.filterPushdown.enabled` is off: so it is a class of its own.

What is exact: `topic`, `partition` and `offset` decide by themselves which ranges are read.
Timestamps are in no order in a log. The first offset with a timestamp of at least T is known
(ListOffsets, from the time index), and everything before it is older: a lower bound cuts there.
After the first record of T or later there may still be older ones, so an upper bound cuts only
where `timestampDisorder` says how much older. Rows outside the bounds that are read all the same
are dropped before they leave the task; Spark need not look at these filters again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from runnel.arrow.interval import Interval
from runnel.arrow.ranges import Range, Scan
from runnel.spark.reads.assignment import Logs
from runnel.spark.reads.batch import BatchReader
from runnel.spark.reads.options import SourceOptions
from runnel.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
NUMBERS: Final = ("partition", "offset", "timestamp")  # the last in microseconds since 1970
_EQUAL: Final = (EqualTo, EqualNullSafe)
_BOUNDS: Final = (GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)


class PushdownReader(BatchReader):
    """Spark calls `pushFilters` once, before `partitions`; `read` runs on copies that know it."""

    def __init__(self, options: SourceOptions, scan: Scan) -> None:
        super().__init__(options, scan)
        self._topics: frozenset[str] | None = None  # None: all
        self._numbers = {name: Interval() for name in NUMBERS}

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Those that Spark has to apply itself."""
        return [each for each in filters if not self._takes(each)]

    def read(self, partition: Any) -> "Iterator[pa.RecordBatch]":  # noqa: ANN401  # Spark's InputPartition
        stamps = self._numbers["timestamp"]
        if stamps.is_everything:
            return super().read(partition)
        limits_ms = stamps.least // 1000, stamps.most // 1000
        self._scan = replace(self._scan, timestamps_ms=limits_ms)
        return _within(super().read(partition), stamps)

    def _takes(self, each: Filter) -> bool:
        """Whether what is read is now exactly what the filter lets through."""
        name = ".".join(getattr(each, "attribute", ()))
        if name not in self._scan.columns:
            return False
        if isinstance(each, IsNotNull):
            return name == "topic" or name in NUMBERS  # no record is without
        if name == "topic":
            return self._takes_topic(each)
        if name not in NUMBERS or not isinstance(each, (*_EQUAL, *_BOUNDS, In)):
            return False
        many = each.value if isinstance(each, In) else (each.value,)
        values = [_number(name, value) for value in many]
        if not values or None in values:
            return False
        wanted = [value for value in values if value is not None]
        if isinstance(each, In):
            self._numbers[name] &= Interval(min(wanted), max(wanted), frozenset(wanted))
            return name == "partition"  # of the others all between the least and the most are read
        self._numbers[name] &= _interval(each, wanted[0])
        return True

    def _takes_topic(self, each: Filter) -> bool:
        if not isinstance(each, (*_EQUAL, In)):
            return False
        values = each.value if isinstance(each, In) else (each.value,)
        if not all(isinstance(value, str) for value in values):
            return False
        here = frozenset(values)
        self._topics = here if self._topics is None else self._topics & here
        return True

    def _ranges(self, logs: Logs) -> list[Range]:
        offsets = self._numbers["offset"]
        found = [
            each._replace(start=max(each.start, offsets.least), end=min(each.end, offsets.most + 1))
            for each in super()._ranges(logs)
            if self._topics is None or each.topic in self._topics
            if each.partition in self._numbers["partition"]
        ]
        return self._between_times(logs, [each for each in found if each.start < each.end])

    def _between_times(self, logs: Logs, ranges: list[Range]) -> list[Range]:
        stamps, disorder_ms = self._numbers["timestamp"], self._options.timestamp_disorder_ms
        least_ms = -(-stamps.least // 1000)
        if least_ms > 0:  # nothing is cut off before 1970, and -1 to -6 ask for other things
            firsts = logs.at_timestamps({_at(each): least_ms for each in ranges})
            kept = [(each, firsts[_at(each)]) for each in ranges]
            ranges = [
                each._replace(start=max(each.start, first))
                for each, first in kept
                if first is not None
            ]
        beyond_ms = stamps.most // 1000 + 1 + (disorder_ms or 0)
        if stamps.has_most and disorder_ms is not None and beyond_ms >= 0:
            lasts = logs.at_timestamps({_at(each): beyond_ms for each in ranges})
            ends = {at: last for at, last in lasts.items() if last is not None}
            ranges = [
                each._replace(end=min(each.end, ends.get(_at(each), each.end))) for each in ranges
            ]
        return ranges


def _at(each: Range) -> TopicPartition:
    return TopicPartition(each.topic, each.partition)


def _interval(each: Filter, value: int) -> Interval:
    if isinstance(each, GreaterThan):
        return Interval(least=value + 1)
    if isinstance(each, GreaterThanOrEqual):
        return Interval(least=value)
    if isinstance(each, LessThan):
        return Interval(most=value - 1)
    if isinstance(each, LessThanOrEqual):
        return Interval(most=value)
    return Interval(value, value)


def _number(name: str, value: object) -> int | None:
    """None for what cannot be compared here: Spark does it then."""
    if name == "timestamp":
        if not isinstance(value, datetime) or value.tzinfo is None:
            return None
        return (value - EPOCH) // MICROSECOND
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _within(batches: "Iterator[pa.RecordBatch]", stamps: Interval) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa
    import pyarrow.compute as pc

    least, most = (
        pa.scalar(value, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        for value in (stamps.least, stamps.most)
    )
    for batch in batches:
        column = batch.column("timestamp")
        is_within = pc.and_(pc.greater_equal(column, least), pc.less_equal(column, most))
        count = pc.sum(is_within).as_py() or 0
        if count == batch.num_rows:
            yield batch
        elif count:
            yield batch.filter(is_within)
