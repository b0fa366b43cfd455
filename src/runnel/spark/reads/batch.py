"""A batch read: offsets are settled once, on the driver, and every task gets its range."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from runnel.arrow.locating import Locator
from runnel.arrow.ranges import Range, Scan
from runnel.spark.reads.assignment import Assignment, Logs, assignment
from runnel.spark.reads.logs import open_logs_of_batch
from runnel.spark.reads.offsets import OffsetMap
from runnel.spark.reads.options import SourceOptions
from runnel.spark.reads.planning import Splitting, check_resolved, ranges_between
from runnel.spark.reads.positions import Way
from runnel.spark.reads.resolving import check_kept, check_written, resolve
from runnel.spark.tasks import settle

if TYPE_CHECKING:
    import pyarrow as pa


class OffsetRange(InputPartition):
    """What one task reads. Spark pickles it."""

    def __init__(self, piece: Range) -> None:
        self.piece = piece

    def __repr__(self) -> str:
        return f"OffsetRange({self.piece!r})"


class BatchReader(DataSourceReader):
    """`partitions` runs on the driver, `read` in the tasks, on a pickled copy."""

    def __init__(self, options: SourceOptions, scan: Scan) -> None:
        self._options = options
        self._scan = scan

    def partitions(self) -> list[InputPartition]:  # Spark wants a list, nothing else
        """Raises OptionError, SourceError."""
        logs = open_logs_of_batch(self._options)
        try:
            ranges = Locator(self._scan).placed(self._ranges(logs), logs.cluster)
        finally:
            logs.close()
        splitting = Splitting(self._options.min_partitions, self._options.max_records_per_partition)
        return [OffsetRange(piece) for piece in splitting.split(ranges)]

    def read(self, partition: Any) -> "Iterator[pa.RecordBatch]":  # noqa: ANN401  # None of Spark's own if there are no ranges
        from runnel.arrow import scan

        if not isinstance(partition, OffsetRange):
            return iter(())
        settle()
        return scan.read(self._scan, partition.piece)

    def _ranges(self, logs: Logs) -> list[Range]:
        assigned = assignment(logs, self._options.subscription, must_exist=True)
        starts = self._starts(logs, assigned)
        ends = self._ends(logs, assigned)  # after the starts: what is written meanwhile lies beyond
        if not self._options.fail_on_data_loss:
            starts = {at: min(offset, ends[at]) for at, offset in starts.items()}
        check_resolved(starts, ends)
        return ranges_between(starts, ends, assigned.topic_ids)

    def _starts(self, logs: Logs, assigned: Assignment) -> OffsetMap:
        position = self._options.start
        found = resolve(logs, position, assigned)
        if position.way != Way.OFFSETS:
            return found
        fails = self._options.fail_on_data_loss
        return check_kept(logs, found, position.option, fails=fails)

    def _ends(self, logs: Logs, assigned: Assignment) -> OffsetMap:
        position = self._options.end
        found = resolve(logs, position, assigned)
        if position.way != Way.OFFSETS:
            return found
        fails = self._options.fail_on_data_loss
        return check_written(logs, found, position.option, fails=fails)
