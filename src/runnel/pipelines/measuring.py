"""A batch of a streaming query as figures, out of the progress that Spark reports."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runnel.spark.reads.offsets import Offsets

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

NO_START = (None, "", "None", "null")  # by way of PySpark


@dataclass(frozen=True)
class Batch:
    number: int
    rows: int
    rows_per_second: float
    seconds: float
    lag: int | None
    lag_by_partition: dict[str, int]
    state_rows: int
    state_bytes: int
    watermark: str
    at: str


class Batches:
    """The batches of one query, each given once."""

    def __init__(
        self, query: "StreamingQuery", rows_of: Callable[[int], int | None] | None = None
    ) -> None:
        self._query = query
        self._rows_of = rows_of
        self._last = ("", -1)

    def new(self) -> list[Batch]:
        last = self._query.lastProgress
        if last is None or (last.timestamp, last.batchId) == self._last:
            return []
        found = [last]
        if last.batchId > self._last[1] + 1:  # more than one since we last looked
            found = [each for each in self._query.recentProgress if self._is_new(each)] or [last]
        self._last = (last.timestamp, last.batchId)
        return [batch_of(each, self._rows_of) for each in found]

    def _is_new(self, progress: "StreamingQueryProgress") -> bool:
        return (progress.timestamp, progress.batchId) > self._last


def batch_of(
    progress: "StreamingQueryProgress", rows_of: Callable[[int], int | None] | None = None
) -> Batch:
    from runnel.spark.lag import state_of

    state = state_of(progress)
    told = rows_of(progress.batchId) if rows_of and progress.numInputRows else None
    rows = _rows(progress) if told is None else told
    return Batch(
        number=progress.batchId,
        rows=rows,
        rows_per_second=rows / state.batch_seconds if state.batch_seconds else 0.0,
        seconds=state.batch_seconds,
        lag=state.lag if state.lag_by_partition else None,
        lag_by_partition={str(at): lag for at, lag in sorted(state.lag_by_partition.items())},
        state_rows=sum(each.numRowsTotal for each in progress.stateOperators),
        state_bytes=sum(each.memoryUsedBytes for each in progress.stateOperators),
        watermark=str(progress.eventTime.get("watermark", "")),
        at=progress.timestamp,
    )


def _rows(progress: "StreamingQueryProgress") -> int:
    """Of a direct intake Spark counts files; the records are observed."""
    observed: Any = progress.observedMetrics.get("ingested")
    if observed is not None:
        return int(observed.rows or 0)
    span = _span(progress)
    return int(progress.numInputRows) if span is None else min(span, int(progress.numInputRows))


def _span(progress: "StreamingQueryProgress") -> int | None:
    """At most so many by offsets: what is read twice, as for dead letters, is not counted twice.

    The first batch has no start, nor has a partition that is new: those count from 0.
    """
    total = 0
    for source in progress.sources:
        try:
            start = source.startOffset if source.startOffset not in NO_START else "{}"
            first = Offsets.of(json.loads(start)).by_partition
            end = Offsets.of(json.loads(source.endOffset or "")).by_partition
        except (ValueError, TypeError, AttributeError):
            return None
        total += sum(max(0, offset - first.get(at, 0)) for at, offset in end.items())
    return total
