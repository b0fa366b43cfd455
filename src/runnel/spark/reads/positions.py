"""Where a read begins or ends, as the options say it: not yet as offsets.

The three ways come in this order, as for Spark's Kafka source: one time for all partitions, a time
for each, then `earliest`, `latest` or an offset for each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from runnel.arrow.errors import OptionError
from runnel.spark.reads.offsets import (
    EARLIEST,
    EXAMPLE,
    LATEST,
    Offsets,
    parse_offsets,
    parse_timestamps,
)
from runnel.spark.reads.option_values import Values
from runnel.types import TopicPartition

STRATEGY: Final = "startingOffsetsByTimestampStrategy"


class Way(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSETS = "offsets"
    TIMESTAMPS = "timestamps"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True)
class Position:
    """One end of a read."""

    option: str  # where it comes from, for errors
    way: Way
    offsets: Offsets = field(default_factory=lambda: Offsets({}))
    timestamps_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp_ms: int = 0
    or_latest: bool = True  # where no record is that new; else it is an error

    def timestamp_of(self, at: TopicPartition) -> int:
        return self.timestamps_ms[at] if self.way == Way.TIMESTAMPS else self.timestamp_ms


def starting(values: Values, default: Way) -> Position:
    """Raises OptionError."""
    or_latest = values.choice(STRATEGY, ("error", "latest"), "error") == "latest"
    return _position(
        values,
        ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"),
        default,
        or_latest=or_latest,
    )


def ending(values: Values) -> Position:
    """Raises OptionError."""
    names = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
    return _position(values, names, Way.LATEST, or_latest=True)


def _position(
    values: Values, names: tuple[str, str, str], default: Way, *, or_latest: bool
) -> Position:
    one_time, times, offsets = names
    if one_time in values:
        timestamp_ms = values.number(one_time, 0)
        return Position(one_time, Way.TIMESTAMP, timestamp_ms=timestamp_ms, or_latest=or_latest)
    if times in values:
        found = parse_timestamps(times, values.text(times))
        return Position(times, Way.TIMESTAMPS, timestamps_ms=found, or_latest=or_latest)
    text = values.text(offsets, default.value)
    if text.lower() in (Way.EARLIEST.value, Way.LATEST.value):
        return Position(offsets, Way(text.lower()))
    if not text.startswith("{"):
        raise OptionError(f"{offsets}={text}: Expected earliest, latest or e.g. {EXAMPLE}")
    return Position(offsets, Way.OFFSETS, offsets=parse_offsets(offsets, text))


def check_batch(start: Position, end: Position) -> None:
    """What a batch read cannot do. Raises OptionError."""
    if start.way == Way.LATEST:
        raise OptionError(
            "starting offset can't be latest for batch queries on Kafka; set startingOffsets to"
            " earliest, to offsets, or use startingTimestamp"
        )
    if end.way == Way.EARLIEST:
        raise OptionError("ending offset can't be earliest for batch queries on Kafka")
    for at, offset in start.offsets.by_partition.items():
        if offset == LATEST:
            raise OptionError(
                f"startingOffsets for {at} can't be latest for batch queries on Kafka"
            )
    for at, offset in end.offsets.by_partition.items():
        if offset == EARLIEST:
            raise OptionError(
                f"ending offset for {at} can't be earliest for batch queries on Kafka"
            )
    if start.way == end.way and start.way in (Way.OFFSETS, Way.TIMESTAMPS):
        _check_pair(start, end)


def _check_pair(start: Position, end: Position) -> None:
    by_offset = start.way == Way.OFFSETS
    starts = start.offsets.by_partition if by_offset else start.timestamps_ms
    ends = end.offsets.by_partition if by_offset else end.timestamps_ms
    if starts.keys() != ends.keys():
        odd = ", ".join(map(str, sorted(starts.keys() ^ ends.keys())))
        raise OptionError(
            "The specified start offset and end offset should have the same topic-partitions."
            f" Only in one of {start.option} and {end.option}: {odd}"
        )
    kind = "offset" if by_offset else "timestamp"
    for at, first in starts.items():
        if 0 <= ends[at] < first:
            raise OptionError(
                f"The specified start {kind} {first} is greater than the end {kind} {ends[at]} for"
                f" topic {at.topic} partition {at.index}."
            )
