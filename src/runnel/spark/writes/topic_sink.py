"""Rows to topics: the writers behind `df.write` and `df.writeStream` with `format("runnel")`.

At least once: a task's rows are acknowledged before it succeeds, and a task that is run again
writes them again. `exactlyOnce=true` is in `exactly_once`. Spark makes a new writer for every
batch of a stream, and another for its commit; nothing is kept between them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from runnel.arrow import connections
from runnel.arrow.errors import OptionError, SinkError
from runnel.client.cluster import ClientError, Cluster
from runnel.spark.steps import reached
from runnel.spark.tasks import settle, this_task
from runnel.spark.writes.exactly_once import ExactlyOnceBatchWriter, ExactlyOnceStreamWriter
from runnel.spark.writes.producing import Producing
from runnel.spark.writes.sink_options import SinkOptions, sink_options
from runnel.spark.writes.transactional import idempotent_producer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

BATCH_PATIENCE_S: Final = 10.0  # somebody may be waiting for the error


def batch_writer(
    options: Mapping[str, str], schema: "StructType", overwrite: bool
) -> DataSourceArrowWriter:
    """Of `df.write`. Raises OptionError, and SinkError where the topic cannot be written to."""
    if overwrite:
        raise OptionError(
            'rows are only appended to a topic: write with .mode("append"); to begin anew, delete'
            " the topic's records first"
        )
    checked = sink_options(options, schema, streaming=False)
    ensure_topic(checked, BATCH_PATIENCE_S)
    return ExactlyOnceBatchWriter(checked) if checked.exactly_once else BatchWriter(checked)


def stream_writer(
    options: Mapping[str, str], schema: "StructType", overwrite: bool
) -> DataSourceStreamArrowWriter:
    """Of `df.writeStream`; `overwrite` is the output mode complete, whose rows are appended, as by
    Spark's Kafka sink. Raises as `batch_writer` does.
    """
    checked = sink_options(options, schema, streaming=True)
    ensure_topic(checked, checked.delivery_timeout_s)
    return ExactlyOnceStreamWriter(checked) if checked.exactly_once else StreamWriter(checked)


def ensure_topic(options: SinkOptions, patience_s: float) -> None:
    """On the driver, before there are tasks: the topic is there, or made by the broker.

    A broker that is away may come back: a stream waits for it as long as its tasks would.
    """
    if options.topic is None:
        return
    cluster = connections.take(options.client, int(patience_s * 1000))
    try:
        cluster.leaders(options.topic, create=True, reconnect=True)
    except ClientError as error:
        cluster.close()
        raise SinkError(f"cannot write to topic {options.topic}: {error}") from None
    connections.give_back(options.client, cluster)


@dataclass
class Acknowledged(WriterCommitMessage):
    """What one task has written."""

    records: int
    size_bytes: int


class BatchWriter(DataSourceArrowWriter):
    """At least once."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Acknowledged:
        return write_rows(self._options, iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    """At least once: a batch that is run again is written again."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Acknowledged:
        return write_rows(self._options, iterator)


def write_rows(options: SinkOptions, batches: "Iterator[pa.RecordBatch]") -> Acknowledged:
    """In a task. Raises SinkError."""
    cluster = connections.take(options.client, int(options.delivery_timeout_s * 1000))
    try:
        written = _written(cluster, options, batches)
    except ClientError as error:
        cluster.close()
        raise SinkError(f"rows could not be written: {error}") from None
    except BaseException:  # an answer may be left unread
        cluster.close()
        raise
    connections.give_back(options.client, cluster)
    return written


def _written(
    cluster: Cluster, options: SinkOptions, batches: "Iterator[pa.RecordBatch]"
) -> Acknowledged:
    settle()
    producing: Producing | None = None
    for batch in batches:
        if producing is None:
            producer = idempotent_producer(cluster)
            producing = Producing(cluster, options, producer, this_task().partition)
        producing.write(batch)
        reached("writing")
    if producing is None:
        return Acknowledged(0, 0)
    written = producing.finish()
    reached("written")
    return Acknowledged(written.records, written.size_bytes)
