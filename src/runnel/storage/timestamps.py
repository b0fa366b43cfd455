"""Records by their time, for ListOffsets: time index, then headers, then one batch decoded."""

from collections.abc import Iterable
from typing import NamedTuple

from runnel.native.records import first_at_or_after, max_timestamp
from runnel.storage.segment import Segment


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def find_timestamp(
    segments: Iterable[Segment], timestamp: int, log_start_offset: int
) -> TimestampOffset | None:
    """The first record at or after `log_start_offset` that is not earlier than `timestamp`."""
    for segment in segments:
        if segment.next_offset <= log_start_offset or segment.max_timestamp < timestamp:
            continue
        from_offset = max(segment.time_index.offset_before(timestamp), log_start_offset)
        for position, header in segment.headers(segment.index.position_before(from_offset)):
            if header.max_timestamp < timestamp or header.last_offset < log_start_offset:
                continue
            batch = segment.file.read_at(position, header.size)
            found = first_at_or_after(batch, timestamp, log_start_offset)
            if found is not None:
                return TimestampOffset(found[1], found[0], header.partition_leader_epoch)
    return None


def find_latest(segments: Iterable[Segment]) -> TimestampOffset | None:
    latest = max(segments, key=lambda segment: segment.max_timestamp)  # the first of equals
    if latest.max_timestamp < 0:
        return None
    position = latest.position_of(latest.max_timestamp_offset)
    for start, header in latest.headers(position):
        offset, timestamp = max_timestamp(latest.file.read_at(start, header.size))
        return TimestampOffset(timestamp, offset, header.partition_leader_epoch)
    return None
