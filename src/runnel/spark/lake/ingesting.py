"""`ingest`: a topic into a table, as one call."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from runnel.spark.lake.attempts import FOLDER
from runnel.spark.lake.lake_options import TableError, is_known, parse
from runnel.spark.lake.lake_table import (
    CHECKPOINT,
    NONE_YET,
    OtherCheckpointError,
    Query,
    local_folder,
    open_table,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OBSERVED = "ingested"


def ingest(
    spark: "SparkSession",
    topic: str,
    table: str,
    *,
    bootstrap: str = "localhost:9092",
    table_format: str | None = None,
    partition_by: Sequence[str] = (),
    columns: Sequence[str] = (),
    query_id: str | None = None,
    checkpoint: str | None = None,
    every: str | None = None,
    options: Mapping[str, str] | None = None,
) -> "StreamingQuery":
    """Take a topic's records into a table, each exactly once, without a record in the JVM.

    It goes on where it stopped. What was taken in by a batch is in its progress:
    `query.lastProgress["observedMetrics"]["ingested"]` has `rows`, `bytes` and `files`.

    Args:
        spark: any session; `runnel.spark.session()` gives a good one.
        topic: one, or several with commas between them; made of what is committed only.
        table: a folder, or `namespace.table` with `catalog.*` options.
        bootstrap: the brokers to begin with.
        table_format: `delta`, `iceberg` or `parquet`; what the folder holds, else Delta.
        partition_by: columns of the table by whose values its files are kept apart.
        columns: of the topic, in order; all but the headers unless told.
        query_id: the name of this intake, made of topic and table unless told. It must stay.
        checkpoint: where Spark keeps how far it is; in the table's folder unless told.
        every: how often to look for more, such as `1 minute`; else what is there is taken in, and
            the query ends.
        options: any other of the source and of the table, such as `maxBytesPerTrigger`,
            `startingOffsets` (earliest unless told), `decode`, `compression`, `catalog.uri`.
    """
    more = dict(options or {})
    if checkpoint is None:
        if "/" not in table:
            raise TableError(f"table={table}: with a catalog set checkpoint, a folder to keep")
        checkpoint = f"{table.rstrip('/')}/{FOLDER}/{CHECKPOINT}"
    of_table = {"table": table, "mode": "direct"}
    if table_format is not None:
        of_table["tableFormat"] = table_format
    if partition_by:
        of_table["partitionBy"] = ",".join(partition_by)
    of_lake = of_table | {name: value for name, value in more.items() if is_known(name)}
    of_table["queryId"] = query_id or name_of(topic, of_lake)
    if columns:
        more["columns"] = ",".join(columns)
    return _start(spark, topic, bootstrap, of_table, more, checkpoint, every)


def name_of(topic: str, of_lake: Mapping[str, str]) -> str:
    """Of the intake of these topics into this table, in whatever order and spelling.

    By another name a batch that is repeated would not be known. Earlier versions made the name of
    what was written: where the table knows that one, it stays.
    """
    table = of_lake["table"]
    has_catalog = any(option.lower().startswith("catalog.") for option in of_lake)
    topics = ",".join(sorted({name.strip() for name in topic.split(",")}))
    name = _name(topics, table if has_catalog else str(local_folder(table)))
    as_written = _name(topic, table)
    if name == as_written:
        return name
    return max(name, as_written, key=lambda known: _last_batch(known, of_lake))  # else the first


def _name(topics: str, table: str) -> str:
    where = hashlib.sha256(f"{topics} {table}".encode()).hexdigest()[:8]
    return f"ingest-{topics.split(',')[0]}-{where}"


def _last_batch(name: str, of_lake: Mapping[str, str]) -> int:
    """By whatever checkpoint. What is wrong with the table is told when the query starts."""
    try:
        return open_table(parse(of_lake)).last_batch(Query(name, checkpoint=""))
    except OtherCheckpointError as known:
        return known.last_batch
    except TableError:
        return NONE_YET


def _start(
    spark: "SparkSession",
    topic: str,
    bootstrap: str,
    of_table: Mapping[str, str],
    more: Mapping[str, str],
    checkpoint: str,
    every: str | None,
) -> "StreamingQuery":
    from pyspark.sql import functions as F

    from runnel.spark.lake.sink import NAME

    files = (
        spark.readStream.format(NAME)
        .option("subscribe", topic)
        .option("kafka.bootstrap.servers", bootstrap)
        .option("startingOffsets", "earliest")
        .option("isolation", "read_committed")
        .options(**of_table)
        .options(**more)
        .load()
        .observe(
            OBSERVED,
            F.sum("row_count").alias("rows"),
            F.sum("size_bytes").alias("bytes"),
            F.count("path").alias("files"),
        )
    )
    sink = (
        files.writeStream.format(NAME)
        .option("checkpointLocation", checkpoint)
        .options(**of_table)
        .options(**{name: value for name, value in more.items() if is_known(name)})
    )
    return (
        sink.trigger(availableNow=True) if every is None else sink.trigger(processingTime=every)
    ).start()
