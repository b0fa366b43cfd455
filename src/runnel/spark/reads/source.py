"""`format("runnel")`: topics of Runnel and Kafka as a source and sink of Spark.

Spark makes one of these for every load and every start, in a process beside the driver; it pickles
by reference, so executors have this package installed too.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)

from runnel.arrow.ranges import Scan
from runnel.arrow.rows import spark_schema
from runnel.spark.reads.batch import BatchReader
from runnel.spark.reads.columns import all_columns, columns_of, decoding_of
from runnel.spark.reads.options import SourceOptions, any_options, batch_options, stream_options
from runnel.spark.reads.streaming import RefusingReader, StreamReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class RunnelDataSource(DataSource):
    """Its options are those of docs/spark-options.md; they arrive as text, in any case."""

    @classmethod
    def name(cls) -> str:
        return "runnel"

    def schema(self) -> "StructType":
        """Of all columns; not asked for where the user gives a schema. Raises OptionError."""
        options = any_options(self.options)
        return spark_schema(all_columns(options), decoding_of(options))

    def reader(self, schema: "StructType") -> DataSourceReader:
        """Raises OptionError."""
        options = batch_options(self.options)
        scan = _scan(options, schema)
        if options.pushdown:
            from runnel.spark.reads.pushdown import PushdownReader

            return PushdownReader(options, scan)
        return BatchReader(options, scan)

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        """What is wrong with the options is told by the reader: see `RefusingReader`."""
        try:
            options = stream_options(self.options)
            return StreamReader(options, _scan(options, schema))
        except ValueError as error:
            return RefusingReader(error)

    def writer(self, schema: "StructType", overwrite: bool) -> DataSourceArrowWriter:
        """Raises OptionError, and SinkError where the topic cannot be written to."""
        from runnel.spark.writes.topic_sink import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> DataSourceStreamArrowWriter:
        """Raises as `writer` does."""
        from runnel.spark.writes.topic_sink import stream_writer

        return stream_writer(self.options, schema, overwrite)


def _scan(options: SourceOptions, schema: "StructType") -> Scan:
    decode = decoding_of(options)
    return Scan(
        client=options.client,
        columns=columns_of(schema, decode),
        read_committed=options.read_committed,
        fail_on_data_loss=options.fail_on_data_loss,
        poll_timeout_ms=options.poll_timeout_ms,
        read_mode=options.read_mode,
        path=options.path,
        decode=decode,
    )
