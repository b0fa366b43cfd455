"""How much of what is there a micro-batch takes: at least, and at most in offsets or bytes.

Bytes of a range are not known before it is read. They are taken as offsets times the average size
of a record in the partition's log: its size on disk, by DescribeLogDirs, over the offsets that it
keeps. Both are asked for at most every 30 seconds.
"""

import time
from collections.abc import Mapping
from typing import Final

from runnel.spark.reads.assignment import Logs
from runnel.spark.reads.offsets import OffsetMap
from runnel.spark.reads.options import SourceOptions
from runnel.spark.reads.planning import backlog, limited
from runnel.types import TopicPartition

SIZES_KEPT_S: Final = 30.0


class Admission:
    """One per query, on the driver: it remembers when a batch was last let through."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._passed_at: float | None = None
        self._weights: dict[TopicPartition, float] = {}
        self._weighed_at: float | None = None

    def is_held_back(self, starts: OffsetMap, ends: OffsetMap) -> bool:
        """Until there is enough, or `maxTriggerDelay` is over; the first batch never is."""
        if self._options.min_offsets is None:
            return False
        now = time.monotonic()
        delay_s = self._options.max_trigger_delay_ms / 1000
        is_due = self._passed_at is None or now - self._passed_at >= delay_s
        if is_due or backlog(starts, ends) >= self._options.min_offsets:
            self._passed_at = now
            return False
        return True

    def limited(self, logs: Logs, starts: OffsetMap, ends: OffsetMap) -> OffsetMap:
        """Raises SourceError, where the size of logs may not be asked for."""
        found = ends
        if self._options.max_offsets is not None:
            found = limited(self._options.max_offsets, starts, found)
        if self._options.max_bytes is not None:
            weights = self._record_bytes(logs, ends)
            found = limited(self._options.max_bytes, starts, found, weights)
        return found

    def _record_bytes(self, logs: Logs, ends: OffsetMap) -> Mapping[TopicPartition, float]:
        now = time.monotonic()
        is_stale = self._weighed_at is None or now - self._weighed_at > SIZES_KEPT_S
        if is_stale or ends.keys() - self._weights.keys():
            sizes, firsts = logs.bytes_of(ends), logs.earliest(ends)
            self._weights = {
                at: max(1.0, sizes.get(at, 0) / max(1, end - firsts[at]))
                for at, end in ends.items()
            }
            self._weighed_at = now
        return self._weights
