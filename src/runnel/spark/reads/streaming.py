"""A streaming read: one object on the driver for as long as the query runs; tasks get copies.

Spark calls `latestOffset(start)` before every batch, and then everything before `start` is in the
checkpoint as done. So that is when the group learns of it, not a batch later in `commit`.

Offsets are compared as text: nothing new means giving back the very `start`.
"""

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from runnel.arrow.errors import GoneError
from runnel.arrow.locating import Locator
from runnel.arrow.ranges import Range, Scan
from runnel.spark.reads.admission import Admission
from runnel.spark.reads.assignment import Assignment, Logs, assignment
from runnel.spark.reads.batch import OffsetRange
from runnel.spark.reads.group import QueryGroup
from runnel.spark.reads.logs import open_logs
from runnel.spark.reads.offsets import OffsetDict, Offsets
from runnel.spark.reads.options import SourceOptions
from runnel.spark.reads.planning import Splitting
from runnel.spark.reads.resolving import recreated, resolve
from runnel.spark.reads.stream_ranges import StreamRanges
from runnel.spark.tasks import settle

if TYPE_CHECKING:
    import pyarrow as pa


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Connects when it is first asked: the copies in tasks never do."""

    def __init__(self, options: SourceOptions, scan: Scan) -> None:
        self._options = options
        self._scan = scan
        self._driver: _Driver | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_driver": None}

    @property
    def _driving(self) -> "_Driver":
        if self._driver is None:
            self._driver = _Driver(self._options, self._scan)
        return self._driver

    def initialOffset(self) -> OffsetDict:
        """Asked for more than once, also after a crash: always the same. Raises SourceError."""
        return self._driving.initial().as_dict()

    def latestOffset(self, start: OffsetDict, limit: ReadLimit) -> OffsetDict:
        """Where the next batch ends; `start` if there is to be none. Raises SourceError."""
        begun = Offsets.of(start)
        end = self._driving.end(begun, is_limited=not isinstance(limit, ReadAllAvailable))
        is_same = end.by_partition == begun.by_partition
        if is_same and not recreated(begun.topic_ids, end.topic_ids):
            return start
        return end.as_dict()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark hands it back as it is, or asks for everything; the options say the rest."""
        options = self._options
        if options.max_offsets is not None:
            return ReadMaxRows(options.max_offsets)
        if options.max_bytes is not None:
            return ReadMaxBytes(options.max_bytes)
        if options.min_offsets is not None:
            return ReadMinRows(options.min_offsets)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> OffsetDict | None:
        """As of the last question: progress shows how far the query is behind."""
        latest = self._driving.latest
        return latest.as_dict() if latest is not None and latest.by_partition else None

    def prepareForTriggerAvailableNow(self) -> None:
        self._driving.stop_at_what_is_there()

    def partitions(self, start: OffsetDict, end: OffsetDict) -> list[InputPartition]:
        """Several times per batch, always with the same answer. Raises SourceError."""
        ranges = self._driving.ranges(Offsets.of(start), Offsets.of(end))
        return [OffsetRange(piece) for piece in ranges]

    def read(self, partition: Any) -> "Iterator[pa.RecordBatch]":  # noqa: ANN401  # Spark's InputPartition
        from runnel.arrow import scan

        settle()
        return scan.read(self._scan, partition.piece)

    def commit(self, end: OffsetDict) -> None:
        """Comes a batch late; the group mostly knows already."""
        self._driving.done(Offsets.of(end))

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.close()
            self._driver = None


class RefusingReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says why there is no reader as soon as it is asked for anything.

    Raised in `streamReader` itself, the reason would be hidden in PySpark behind an error of its
    own: it stops the reader that it never got.
    """

    def __init__(self, why: Exception) -> None:
        self._why = why

    def initialOffset(self) -> OffsetDict:
        raise self._why

    def latestOffset(self, start: OffsetDict, limit: ReadLimit) -> OffsetDict:
        raise self._why

    def getDefaultReadLimit(self) -> ReadLimit:
        raise self._why

    def prepareForTriggerAvailableNow(self) -> None:
        raise self._why

    def partitions(self, start: OffsetDict, end: OffsetDict) -> list[InputPartition]:
        raise self._why

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        raise self._why


class _Driver:
    """What only the driver has: connections, and what it knows of the last batch."""

    def __init__(self, options: SourceOptions, scan: Scan) -> None:
        self._options = options
        self._logs: Logs = open_logs(options)
        self._locator = Locator(scan)
        self._group = QueryGroup(
            options.client, options.group, options.fingerprint, commits=options.commit_group
        )
        splitting = Splitting(options.min_partitions, options.max_records_per_partition)
        self._ranges = StreamRanges(self._logs, splitting, fails=options.fail_on_data_loss)
        self._admission = Admission(options)
        self._initial: Offsets | None = None
        self._is_draining = False
        self._target: Offsets | None = None
        self._assigned: tuple[float, Assignment] | None = None
        self.latest: Offsets | None = None

    def close(self) -> None:
        self._logs.close()
        self._group.close()

    def stop_at_what_is_there(self) -> None:
        self._is_draining = True

    def initial(self) -> Offsets:
        if self._initial is None:
            assigned = self._assignment(must_exist=False)  # first: whether any broker answers
            kept = self._group.initial()
            if kept is None:
                assigned = self._assignment(must_exist=True)
                offsets = resolve(self._logs, self._options.start, assigned)
                kept = Offsets(offsets, self._ids(assigned))
                self._group.keep_initial(kept)
            self._initial = kept if self._options.topic_ids else Offsets(kept.by_partition)
        return self._initial

    def end(self, start: Offsets, *, is_limited: bool) -> Offsets:
        self.done(start)
        if self._is_draining:
            if self._target is None:
                self._target = self._latest(start)
            latest = self._target
        else:
            latest = self._latest(start)
        self.latest = latest
        begun = self._ranges.starts(start, latest)
        if not is_limited:
            return latest
        if not self._is_draining and self._admission.is_held_back(begun, latest.by_partition):
            return start
        ends = self._admission.limited(self._logs, begun, latest.by_partition)
        return Offsets(ends, latest.topic_ids)

    def ranges(self, start: Offsets, end: Offsets) -> list[Range]:
        return self._locator.placed(self._ranges.between(start, end), self._logs.cluster)

    def done(self, end: Offsets) -> None:
        """Not for where the first batch begins: that is kept until the batch is done."""
        if self._initial is None or end.by_partition != self._initial.by_partition:
            self._group.advance(end)

    def _latest(self, start: Offsets) -> Offsets:
        """Asked again a few times where a log ends before what was read of it."""
        attempts = self._options.retries + 1
        while True:
            attempts -= 1
            try:
                assigned = self._assignment(must_exist=False)
                found = self._logs.latest(assigned.partitions)
            except GoneError:
                self._assigned = None
                if not attempts:
                    raise
            else:
                is_behind = any(
                    offset < start.by_partition.get(at, 0) for at, offset in found.items()
                )
                if not attempts or not is_behind:
                    return Offsets(dict(found), self._ids(assigned))
            time.sleep(self._options.retry_interval_ms / 1000)

    def _assignment(self, *, must_exist: bool) -> Assignment:
        now, ttl_ms = time.monotonic(), self._options.metadata_ttl_ms
        if self._assigned is not None and ttl_ms > 0 and not must_exist:
            since, known = self._assigned
            if (now - since) * 1000 < ttl_ms:
                return known
        found = assignment(self._logs, self._options.subscription, must_exist=must_exist)
        self._assigned = (now, found)
        return found

    def _ids(self, assigned: Assignment) -> Mapping[str, str]:
        return assigned.topic_ids if self._options.topic_ids else {}
