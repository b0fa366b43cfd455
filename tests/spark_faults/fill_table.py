"""The program of the runs with tables: takes a topic into one, every row once.

python -m tests.spark_faults.fill_table SERVERS TOPIC TABLE FORMAT MODE CHECKPOINT

MODE is `rows`, which go through Spark, or `direct`.
"""

import sys
from typing import TYPE_CHECKING

from runnel.spark import ingest, session
from runnel.spark.lake.sink import RunnelLake
from runnel.spark.reads.source import RunnelDataSource
from tests.spark_faults.harness import serve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ROWS_PER_BATCH = 700
READ = {
    "maxOffsetsPerTrigger": str(ROWS_PER_BATCH),
    # Segment files outlive a broker: read through it, some rows at a time, so that it dies between.
    "readMode": "broker",
    "kafka.max.partition.fetch.bytes": "2000",
}


def main(servers: str, topic: str, table: str, format_: str, mode: str, checkpoint: str) -> None:
    spark = session("faults", cores=2, memory="1g", log_level="ERROR")
    spark.dataSource.register(RunnelDataSource)
    spark.dataSource.register(RunnelLake)

    def fill() -> None:
        if mode == "direct":
            query = ingest(
                spark,
                topic,
                table,
                bootstrap=servers,
                table_format=format_,
                checkpoint=checkpoint,
                options=READ,
            )
        else:
            query = _through_spark(spark, servers, topic, table, format_, checkpoint)
        try:
            query.awaitTermination()
        finally:
            query.stop()

    serve(spark, fill)


def _through_spark(
    spark: "SparkSession", servers: str, topic: str, table: str, format_: str, checkpoint: str
) -> "StreamingQuery":
    rows = (
        spark.readStream.format("runnel")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .options(**READ)
        .option("queryId", f"{topic}-to-table")
        .load()
    )
    return (
        rows.where("length(value) > 0")
        .writeStream.format("runnel-lake")
        .option("table", table)
        .option("tableFormat", format_)
        .option("queryId", f"{topic}-to-table")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
