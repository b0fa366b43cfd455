"""`format("runnel-lake")`: rows into Delta, Iceberg and Parquet tables, each batch exactly once.

Tasks write Parquet files and hand over what they wrote; the driver publishes all of them in one
commit that names query and batch. Spark makes a new writer for every batch and again for every
commit, so nothing is kept in one: what a commit must know stands in the messages and in the table.

The number of a batch is not among what `write` is given; it stands in the task's properties, next
to the identity that Spark gave the checkpoint.
"""

import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from runnel.spark import lake_options, steps, table_schema
from runnel.spark.attempts import Attempt, Ledger, Sweeper, exclusive
from runnel.spark.lake_options import LakeOptions, TableError
from runnel.spark.lake_table import NONE_YET, LakeTable, Query, open_table
from runnel.spark.part_files import Destination, PartFiles, WrittenFile, write_all

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

NAME: Final = "runnel-lake"
_BATCH_ID: Final = "streaming.sql.batchId"
_CHECKPOINT_ID: Final = "sql.streaming.queryId"


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task has to say: who it wrote for, under which ledger, and its files."""

    query: Query
    attempt: str
    files: tuple[WrittenFile, ...]


class RunnelLake(DataSource):
    """Registered by `pyspark_runnel_lake`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def writer(self, schema: "StructType", overwrite: bool) -> "BatchLakeWriter":
        return BatchLakeWriter(lake_options.parse(self.options), schema, overwrite)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "StreamLakeWriter":
        return StreamLakeWriter(lake_options.parse(self.options), schema, overwrite)


class _LakeWriter:
    """What writers of batches and of streams share. Made on the driver, then sent to executors."""

    def __init__(self, options: LakeOptions, schema: "StructType", overwrite: bool) -> None:
        self._options = options
        self._overwrite = overwrite
        self._rows = table_schema.of_rows(schema)
        self._to: Destination = open_table(options).destination(self._rows)

    def _write(
        self, batches: "Iterator[pa.RecordBatch]", query: Query, batch: int, task: int
    ) -> Written:
        attempt = Attempt.new(query.name, batch)
        files = PartFiles(self._to, attempt, query.checkpoint, task)
        return Written(query, attempt.id, tuple(write_all(files, batches)))

    def _publish(self, written: Sequence[Written], query: Query | None, batch: int) -> None:
        """One commit, unless it is there already; what other attempts left goes."""
        who = written[0].query
        with exclusive(open_table(self._options).ledgers):
            table = open_table(self._options)
            last_batch = table.last_batch(query) if query else NONE_YET
            if batch <= last_batch:
                self._sweep(table, who, last_batch, keep=[])
                return
            ids = [message.attempt for message in written]
            files = [file for message in written for file in message.files]
            if table.listed:
                self._sweep(table, who, last_batch, keep=ids)
            if files or self._overwrite:
                table.publish(self._rows, files, query, batch, overwrite=self._overwrite)
                steps.reached("table committed")
            self._sweep(table, who, last_batch, keep=ids)
            for id_ in ids:
                Ledger(table.ledgers, Attempt(who.name, batch, id_)).close()

    def _discard(self, query: Query) -> None:
        """After a failure, which may have come after the commit: the table is asked about each."""
        all_of_them = sys.maxsize
        with exclusive(open_table(self._options).ledgers):
            self._sweep(open_table(self._options), query, all_of_them, keep=[])

    def _sweep(self, table: LakeTable, query: Query, last_batch: int, keep: list[str]) -> None:
        sweeper = Sweeper(table.ledgers, table.remove, table.referenced)
        sweeper.sweep(query.name, last_batch, keep, self._options.orphan_age_ms)


class StreamLakeWriter(_LakeWriter, DataSourceStreamArrowWriter):
    """A new one for each batch, and another for its commit."""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None, "write is called in a task"
        batch = task.getLocalProperty(_BATCH_ID)
        checkpoint = task.getLocalProperty(_CHECKPOINT_ID)
        if batch is None or checkpoint is None:
            raise TableError(
                "this Spark does not tell tasks which batch they work on, and without that a"
                " repeated batch could not be seen; PySpark 4.1 and later do"
            )
        query = Query(self._options.query_id or checkpoint, checkpoint)
        return self._write(iterator, query, int(batch), task.partitionId())

    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:
        written = _said(messages)
        if written:
            self._publish(written, written[0].query, batchId)

    def abort(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:
        for message in _said(messages)[:1]:  # without any, the batch's next try does it
            self._discard(message.query)


class BatchLakeWriter(_LakeWriter, DataSourceArrowWriter):
    """One write of a DataFrame: all of it in one commit.

    With `queryId` and `batchId` it can be repeated, as `foreachBatch` may do, and counts once.
    """

    def __init__(self, options: LakeOptions, schema: "StructType", overwrite: bool) -> None:
        super().__init__(options, schema, overwrite)
        self._once = options.batch_id is not None and options.query_id is not None
        name = options.query_id if self._once and options.query_id else f"batch-{uuid.uuid4().hex}"
        self._query = Query(name, "batch")
        self._batch = options.batch_id or 0

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        from pyspark import TaskContext

        task = TaskContext.get()
        return self._write(iterator, self._query, self._batch, task.partitionId() if task else 0)

    def commit(self, messages: "list[WriterCommitMessage | None]") -> None:
        written = _said(messages) or [Written(self._query, "", ())]
        self._publish(written, self._query if self._once else None, self._batch)

    def abort(self, messages: "list[WriterCommitMessage | None]") -> None:
        self._discard(self._query)


def _said(messages: "list[WriterCommitMessage | None]") -> list[Written]:
    return [message for message in messages if isinstance(message, Written)]
