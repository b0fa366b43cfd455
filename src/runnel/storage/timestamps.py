"""Records by their time, for ListOffsets: time index, then headers, then one batch decoded.

Locating a batch reads headers and is quick; decoding it may mean decompressing megabytes. So the
two are apart: candidates are found on the loop, and searched wherever the caller likes.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runnel.native.records import first_at_or_after, max_timestamp
from runnel.storage.segment import Segment


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


class Candidate(NamedTuple):
    """A whole batch that may hold the record. Its methods may take milliseconds."""

    batch: bytes
    leader_epoch: int

    def first_at_or_after(self, timestamp: int, from_offset: int) -> TimestampOffset | None:
        found = first_at_or_after(self.batch, timestamp, from_offset)
        return None if found is None else TimestampOffset(found[1], found[0], self.leader_epoch)

    def latest(self) -> TimestampOffset:
        offset, timestamp = max_timestamp(self.batch)
        return TimestampOffset(timestamp, offset, self.leader_epoch)


def batches_at_or_after(
    segments: Sequence[Segment], timestamp: int, log_start_offset: int
) -> Iterator[Candidate]:
    """In order, the batches whose largest time is not earlier than `timestamp`. Raises OSError.

    The first nearly always has the record; it has not if that lies before the log start.
    """
    for segment in list(segments):
        if segment.next_offset <= log_start_offset or segment.max_timestamp < timestamp:
            continue
        from_offset = max(segment.time_index.offset_before(timestamp), log_start_offset)
        for position, header in segment.headers(segment.index.position_before(from_offset)):
            if header.max_timestamp >= timestamp and header.last_offset >= log_start_offset:
                batch = segment.file.read_at(position, header.size)
                yield Candidate(batch, header.partition_leader_epoch)


def latest_batch(segments: Sequence[Segment]) -> Candidate | None:
    """The batch with the largest time of all, the first of equals. Raises OSError."""
    latest = max(segments, key=lambda segment: segment.max_timestamp)
    if latest.max_timestamp < 0:
        return None
    for start, header in latest.headers(latest.position_of(latest.max_timestamp_offset)):
        batch = latest.file.read_at(start, header.size)
        return Candidate(batch, header.partition_leader_epoch)
    return None
