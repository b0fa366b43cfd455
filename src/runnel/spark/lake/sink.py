"""`format("runnel-lake")`: rows into Delta, Iceberg and Parquet tables, each batch exactly once.

Tasks write Parquet files and hand over what they wrote; the driver publishes all of them in one
commit that names query and batch. Spark makes a new writer for every batch and again for every
commit, so nothing is kept in one: what a commit must know stands in the messages and in the table.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    WriterCommitMessage,
)

from runnel.spark import steps, tasks
from runnel.spark.lake import lake_options, table_schema
from runnel.spark.lake.attempts import Attempt, Ledger, Sweeper, exclusive
from runnel.spark.lake.lake_options import LakeOptions
from runnel.spark.lake.lake_table import NONE_YET, LakeTable, Query, check_there, open_table
from runnel.spark.lake.lake_task import this_task
from runnel.spark.lake.part_files import NO_BATCHES, NO_STREAM, PartFiles, WrittenFile, write_all

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

NAME: Final = "runnel-lake"


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task has to say: who it wrote for, under which ledgers, its files, their schema."""

    query: Query
    attempts: tuple[str, ...]
    files: tuple[WrittenFile, ...]
    schema: bytes | None


class RunnelLake(DataSource):
    """Registered by `pyspark_runnel_lake`. Reading is for direct mode only: see `direct`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> "StructType":
        from runnel.spark.lake.direct import FILES

        return FILES

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        """What is wrong with the options is told by the reader: see `RefusingReader`."""
        from runnel.spark.lake.direct import direct_reader
        from runnel.spark.reads.streaming import RefusingReader

        try:
            return direct_reader(self.options)
        except ValueError as error:
            return RefusingReader(error)

    def writer(self, schema: "StructType", overwrite: bool) -> "BatchLakeWriter":
        return BatchLakeWriter(lake_options.parse(self.options), schema, overwrite)

    def streamWriter(
        self, schema: "StructType", overwrite: bool
    ) -> "StreamLakeWriter | DirectLakeWriter":
        steps.reached("planned")
        options = lake_options.parse(self.options)
        if options.direct:
            return DirectLakeWriter(options, schema)
        return StreamLakeWriter(options, schema, overwrite)


class _Publisher:
    """What all writers do on the driver, with nothing but options and messages."""

    def __init__(self, options: LakeOptions, overwrite: bool) -> None:
        self._options = options
        self._overwrite = overwrite

    def _publish(self, written: Sequence[Written], query: Query | None, batch: int) -> None:
        """One commit, unless it is there already; what other attempts left goes."""
        who = written[0].query
        with exclusive(open_table(self._options).ledgers):
            table = open_table(self._options)
            last_batch = table.last_batch(query) if query else NONE_YET
            ids = [id_ for message in written for id_ in message.attempts]
            if batch <= last_batch:
                self._sweep(table, who, last_batch, keep=[], lost=ids)
                return
            if table.listed:
                self._sweep(table, who, last_batch, keep=ids)
            self._commit(table, written, query, batch)
            self._sweep(table, who, last_batch, keep=ids)
            for id_ in ids:
                Ledger(table.ledgers, Attempt(who.name, batch, id_)).close()

    def _commit(
        self, table: LakeTable, written: Sequence[Written], query: Query | None, batch: int
    ) -> None:
        files = [file for message in written for file in message.files]
        schema = next((message.schema for message in written if message.schema), None)
        if schema is None or not (files or self._overwrite):
            return
        check_there(table, files)
        rows = table_schema.read(schema)
        table.publish(rows, files, query, batch, overwrite=self._overwrite)
        steps.reached("table committed")

    def _discard(self, query: Query) -> None:
        """After a failure, which may have come after the commit: the table is asked about each."""
        with exclusive(open_table(self._options).ledgers):
            self._sweep(open_table(self._options), query, None, keep=[])

    def _sweep(
        self,
        table: LakeTable,
        query: Query,
        last_batch: int | None,
        keep: Sequence[str],
        lost: Sequence[str] = (),
    ) -> None:
        sweeper = Sweeper(table.ledgers, table.remove, table.referenced)
        sweeper.sweep(query.name, last_batch, keep, self._options.orphan_age_ms, lost)


class _StreamPublisher(_Publisher):
    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:
        written = _said(messages)
        if written:
            self._publish(written, written[0].query, batchId)

    def abort(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:
        for message in _said(messages)[:1]:  # without any, the batch's next try does it
            self._discard(message.query)


class StreamLakeWriter(_StreamPublisher, DataSourceStreamArrowWriter):
    """Rows of a stream. A new one for each batch, and another for its commit."""

    def __init__(self, options: LakeOptions, schema: "StructType", overwrite: bool) -> None:
        super().__init__(options, overwrite)
        self._to = open_table(options).destination(table_schema.of_rows(schema))

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        task = this_task(self._options.query_id)
        attempt = Attempt.new(task.query.name, task.batch)
        files = PartFiles(self._to, attempt, task.query.checkpoint, task.number)
        written = tuple(write_all(files, iterator))
        return Written(task.query, (attempt.id,), written, self._to.schema)


@dataclass(frozen=True)
class WrittenWithDead(Written):
    """The same of files that the source has written, and of those of dead letters."""

    dead: Written | None


class DirectLakeWriter(_StreamPublisher, DataSourceStreamArrowWriter):
    """Files of a stream, which tasks of the direct source have written.

    Dead letters have a table of their own, committed after the other under the same number.
    """

    def __init__(self, options: LakeOptions, schema: "StructType") -> None:
        from runnel.spark.lake.direct import check_files

        super().__init__(options, overwrite=False)
        letters = lake_options.dead_letters(options)
        self._dead = None if letters is None else _StreamPublisher(letters, overwrite=False)
        check_files(schema)

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        from runnel.spark.lake.direct import from_rows

        alive, dead = from_rows(iterator)
        query = this_task(self._options.query_id).query
        letters = Written(query, *dead) if dead.files else None
        return WrittenWithDead(query, *alive, letters)

    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:
        super().commit(messages, batchId)
        if self._dead is not None:
            self._dead.commit(_dead(messages), batchId)

    def abort(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:
        super().abort(messages, batchId)
        if self._dead is not None:
            self._dead.abort(_dead(messages), batchId)


def _dead(messages: "list[WriterCommitMessage | None]") -> "list[WriterCommitMessage | None]":
    found = [message.dead for message in messages if isinstance(message, WrittenWithDead)]
    return [message for message in found if message is not None]


class BatchLakeWriter(_Publisher, DataSourceArrowWriter):
    """One write of a DataFrame: all of it in one commit.

    With `queryId` and `batchId` it can be repeated, as `foreachBatch` may do, and counts once.
    There tasks are told the stream's checkpoint, and another one is refused as streams do.
    """

    def __init__(self, options: LakeOptions, schema: "StructType", overwrite: bool) -> None:
        super().__init__(options, overwrite)
        self._to = open_table(options).destination(table_schema.of_rows(schema))
        self._once = options.batch_id is not None and options.query_id is not None
        name = options.query_id if self._once and options.query_id else f"batch-{uuid.uuid4().hex}"
        self._query = Query(name, NO_STREAM if self._once else NO_BATCHES)
        self._batch = options.batch_id or 0

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        task = tasks.this_task()
        query = self._query
        if self._once and task.query:
            query = Query(query.name, task.query, formerly=NO_STREAM)
        attempt = Attempt.new(query.name, self._batch)
        files = PartFiles(self._to, attempt, query.checkpoint, task.partition)
        written = tuple(write_all(files, iterator))
        return Written(query, (attempt.id,), written, self._to.schema)

    def commit(self, messages: "list[WriterCommitMessage | None]") -> None:
        written = _said(messages) or [Written(self._query, (), (), self._to.schema)]
        self._publish(written, written[0].query if self._once else None, self._batch)

    def abort(self, messages: "list[WriterCommitMessage | None]") -> None:
        self._discard(self._query)


def _said(messages: "list[WriterCommitMessage | None]") -> list[Written]:
    return [message for message in messages if isinstance(message, Written)]
