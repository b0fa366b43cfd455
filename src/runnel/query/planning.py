"""Which offsets of a topic a query has to read.

A lower bound of time is exact: the log knows the first offset from that time on, and all before it
are older. After an upper bound there may still be older records, as timestamps are those of
producers and in no order. How late they may be is `disorder_ms`; a few records from further on are
looked at, and where they are older than that allows, the partition is read to its end instead. So
it is where little is left.
The default is the longest that a producer with Kafka's settings holds a record before it gives up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from runnel.arrow.errors import SourceError
from runnel.arrow.ranges import Range
from runnel.query.bounds import Bounds
from runnel.spark.reads.assignment import Logs
from runnel.types import TopicPartition

DISORDER_MS: Final = 120_000  # delivery.timeout.ms
LOOKS: Final = 8  # at a partition beyond an upper bound, to see whether times are in order there
LOOK_OFFSETS: Final = 64
FEW_OFFSETS: Final = 20_000  # beyond an upper bound: they are read rather than judged

Look = Callable[[Range], tuple[int, int] | None]  # least and most timestamp in ms of a few records


class Planned(NamedTuple):
    piece: Range
    times_ms: tuple[int, int] | None = None  # what is wanted of a partition found in order


@dataclass(frozen=True)
class Ends:
    """What may be read of a topic, the same for all relations of a statement."""

    starts: Mapping[int, int]
    ends: Mapping[int, int]

    def whole(self, topic: str) -> list[Range]:
        return [
            Range(topic, index, start, self.ends[index])
            for index, start in sorted(self.starts.items())
            if start < self.ends[index]
        ]

    @property
    def offsets(self) -> int:
        return sum(max(0, self.ends[index] - start) for index, start in self.starts.items())


def ends_of(logs: Logs, topic: str) -> Ends:
    """Of the partitions that it has now. Raises SourceError."""
    found = [each for each in logs.topics([topic]) if each.name == topic]
    if not found:
        raise SourceError(f"topic {topic} was deleted")
    places = [TopicPartition(topic, index) for index in sorted(found[0].partitions)]
    starts, ends = logs.earliest(places), logs.latest(places)
    return Ends(
        {at.index: starts[at] for at in places}, {at.index: max(ends[at], 0) for at in places}
    )


def pruned(
    logs: Logs,
    whole: Sequence[Range],
    bounds_of: Callable[[int], Bounds | None],
    disorder_ms: int | None,
    look: Look,
    tell: Callable[[str], None],
) -> list[Planned]:
    """What of these ranges can match. Asks for offsets by time. Raises SourceError."""
    bounded = [(piece, bounds_of(piece.partition)) for piece in whole]
    found = [
        (
            piece._replace(
                start=max(piece.start, bounds.offsets.least),
                end=min(piece.end, bounds.offsets.most + 1),
            ),
            bounds,
        )
        for piece, bounds in bounded
        if bounds is not None
    ]
    found = [(piece, bounds) for piece, bounds in found if piece.start < piece.end]
    found = _from_times(logs, found)
    planned = [Planned(piece) for piece, _ in found]
    if disorder_ms is not None:
        planned = _up_to_times(logs, found, disorder_ms, look, tell)
    return [each for each in planned if each.piece.start < each.piece.end]


_Found = list[tuple[Range, Bounds]]


def _from_times(logs: Logs, found: _Found) -> _Found:
    asked = {
        _at(piece): -(-bounds.times_us.least // 1000)
        for piece, bounds in found
        if bounds.times_us.has_least
    }
    firsts = logs.at_timestamps(asked) if asked else {}
    kept: _Found = []
    for piece, bounds in found:
        if _at(piece) in asked:
            first = firsts[_at(piece)]
            if first is None:  # nothing is that new
                continue
            piece = piece._replace(start=max(piece.start, first))
        kept.append((piece, bounds))
    return kept


def _up_to_times(
    logs: Logs, found: _Found, disorder_ms: int, look: Look, tell: Callable[[str], None]
) -> list[Planned]:
    asked = {
        _at(piece): bounds.times_us.most // 1000 + 1 + disorder_ms
        for piece, bounds in found
        if bounds.times_us.has_most
    }
    lasts = logs.at_timestamps(asked) if asked else {}
    cut: list[Planned] = []
    for piece, bounds in found:
        times_ms: tuple[int, int] | None = None
        last = lasts.get(_at(piece))
        if last is not None and last + FEW_OFFSETS < piece.end:
            if _is_in_order(piece._replace(start=last), disorder_ms, look):
                piece = piece._replace(end=max(piece.start, last))
                times_ms = -(-bounds.times_us.least // 1000), bounds.times_us.most // 1000
            else:
                tell(
                    f"timestamps of {piece.topic}-{piece.partition} are out of order:"
                    " it is read to its end"
                )
        cut.append(Planned(piece, times_ms))
    return cut


def _is_in_order(beyond: Range, disorder_ms: int, look: Look) -> bool:
    """Whether a few records of the range are no older than those before them allow."""
    step = max(1, (beyond.end - beyond.start) // LOOKS)
    latest_ms: int | None = None
    for start in range(beyond.start, beyond.end, step):
        end = min(start + LOOK_OFFSETS, beyond.end)
        found = look(beyond._replace(start=start, end=end))
        if found is None:  # compaction left nothing there: what comes next
            found = look(beyond._replace(start=end, end=min(start + step, beyond.end)))
        if found is None:
            continue
        least_ms, most_ms = found
        if latest_ms is not None and least_ms < latest_ms - disorder_ms:
            return False
        latest_ms = most_ms if latest_ms is None else max(latest_ms, most_ms)
    return True


def _at(piece: Range) -> TopicPartition:
    return TopicPartition(piece.topic, piece.partition)
