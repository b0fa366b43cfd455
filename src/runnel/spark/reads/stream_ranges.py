"""From the start and end of a micro-batch to ranges: partitions that came, went or were made anew.

Partitions that came since are read from their beginning, which is asked for once and remembered.
Whether offsets have expired, or a planned batch is of a topic that was made anew, is asked at the
first batch of a run, when a query may have been down for long; later on the tasks notice it
themselves.
"""

from collections.abc import Mapping

from runnel.arrow.ranges import Range
from runnel.spark.reads.assignment import Logs
from runnel.spark.reads.offsets import OffsetMap, Offsets, listed
from runnel.spark.reads.planning import Splitting, ranges_between
from runnel.spark.reads.resolving import check_kept, recreated, report_loss
from runnel.types import TopicPartition


class StreamRanges:
    """Remembers the beginnings of new partitions, and the last answer."""

    def __init__(self, logs: Logs, splitting: Splitting, *, fails: bool) -> None:
        self._logs = logs
        self._splitting = splitting
        self._fails = fails
        self._firsts: dict[tuple[TopicPartition, str], int] = {}
        self._last: tuple[Offsets, Offsets, list[Range]] | None = None
        self._is_checked = False

    def starts(self, start: Offsets, end: Offsets) -> OffsetMap:
        """Where each partition of `end` begins. Raises DataLossError."""
        anew = self._made_anew(start, end.topic_ids)
        gone = start.by_partition.keys() - end.by_partition.keys()
        if gone:
            report_loss(self._fails, f"{listed(gone)} have been deleted")
        fresh = {at for at in end.by_partition if at not in start.by_partition or at.topic in anew}
        firsts = self._beginnings(fresh, end)
        if fresh and not anew:
            odd = [at for at in fresh if firsts[at]]
            for at in sorted(odd)[:1]:
                report_loss(
                    self._fails, f"Added partition {at} starts from {firsts[at]} instead of 0."
                )
        starts = {
            at: firsts[at] if at in fresh else start.by_partition[at] for at in end.by_partition
        }
        for at, offset in starts.items():
            if offset > end.by_partition[at]:
                report_loss(
                    self._fails,
                    f"Partition {at} offset was changed from {offset} to {end.by_partition[at]}."
                    " This could be either 1) a user error that the start offset is set beyond"
                    " available offset when starting query, or 2) the kafka topic-partition is"
                    " deleted and re-created.",
                )
        return starts

    def between(self, start: Offsets, end: Offsets) -> list[Range]:
        """What tasks read. Raises DataLossError."""
        if self._last is not None and self._last[:2] == (start, end):
            return self._last[2]
        planned = end if self._is_checked else self._still_there(end)
        starts, ends = self.starts(start, planned), planned.by_partition
        if not self._is_checked:
            read = {at: starts[at] for at in ends if starts[at] < ends[at]}
            kept = check_kept(self._logs, read, "offsets to go on from", fails=self._fails)
            starts = {**starts, **kept}
            self._is_checked = True
        found = self._splitting.split(ranges_between(starts, ends, end.topic_ids))
        self._last = (start, end, found)
        return found

    def _still_there(self, end: Offsets) -> Offsets:
        """Without what a planned batch can be read from no more. Raises DataLossError."""
        found = self._logs.topics(sorted({at.topic for at in end.by_partition}))
        there = {TopicPartition(topic.name, index) for topic in found for index in topic.partitions}
        anew = self._made_anew(end, {topic.name: topic.topic_id for topic in found})
        gone = end.by_partition.keys() - there
        if gone:
            report_loss(self._fails, f"{listed(gone)} have been deleted")
        kept = {
            at: offset
            for at, offset in end.by_partition.items()
            if at in there and at.topic not in anew
        }
        return Offsets(kept, end.topic_ids)

    def _made_anew(self, was: Offsets, now: Mapping[str, str]) -> set[str]:
        found = recreated(was.topic_ids, now)
        for topic in found:
            report_loss(
                self._fails,
                f"topic {topic} was deleted and made anew: its id was {was.topic_ids[topic]} and is"
                f" {now[topic]}, the offsets of the checkpoint mean nothing in it",
                "to read it from its beginning, start the query with a new checkpoint and queryId",
            )
        return set(found)

    def _beginnings(self, fresh: set[TopicPartition], end: Offsets) -> OffsetMap:
        keys = {at: (at, end.topic_ids.get(at.topic, "")) for at in fresh}
        unknown = [at for at in fresh if keys[at] not in self._firsts]
        if unknown:
            for at, offset in self._logs.earliest(unknown).items():
                self._firsts[keys[at]] = offset
        return {at: self._firsts[keys[at]] for at in fresh}
