"""The program of the runs with topics: copies one to another, every row once.

python -m tests.spark_faults.copy_topic SERVERS SOURCE TARGET CHECKPOINT
"""

import sys

from runnel.spark import session
from runnel.spark.reads.source import RunnelDataSource
from tests.spark_faults.harness import serve

ROWS_PER_BATCH = 700
FETCH_BYTES = 2_000


def main(servers: str, source: str, target: str, checkpoint: str) -> None:
    spark = session("faults", cores=2, memory="1g", log_level="ERROR")
    spark.dataSource.register(RunnelDataSource)

    def copy() -> None:
        rows = (
            spark.readStream.format("runnel")
            .option("kafka.bootstrap.servers", servers)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", ROWS_PER_BATCH)
            # Not its files, and by many requests: the broker dies between two of them.
            .option("readMode", "broker")
            .option("kafka.max.partition.fetch.bytes", FETCH_BYTES)
            .option("queryId", target)
            .load()
        )
        query = (
            rows.select("key", "value")
            .writeStream.format("runnel")
            .option("kafka.bootstrap.servers", servers)
            .option("topic", target)
            .option("exactlyOnce", "true")
            .option("queryId", target)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()

    serve(spark, copy)


if __name__ == "__main__":
    main(*sys.argv[1:])
