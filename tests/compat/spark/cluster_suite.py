"""The same programs on a Spark standalone cluster: executors are processes of two workers.

`python -m tests.compat.spark.cluster_suite runnel`, or `make spark-cluster`. The cases are those
that hold on one machine; beside them a topic goes into a table, directly and through Spark.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from runnel.spark import ingest, session
from tests.compat.checks import Checks
from tests.support import spark_reading_cases, spark_streaming_cases, spark_writing_cases
from tests.support.kafka_tools import ROOT, KafkaBroker
from tests.support.process import PACKAGES, BrokerProcess
from tests.support.spark_cluster import SparkCluster
from tests.support.spark_stage import PATIENCE_S, Case, Stage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

CASES = [*spark_reading_cases.CASES, *spark_streaming_cases.CASES, *spark_writing_cases.CASES]
COUNT = 400


def executors_are_apart(spark: "SparkSession") -> None:
    """Tasks run below two processes, and none of them is the driver's."""

    def parents(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import time

        import psutil
        import pyarrow

        for _ in batches:
            time.sleep(2)  # long enough that both executors get a task
            names = [
                process.pid
                for process in psutil.Process().parents()
                if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline())
            ]
            yield pyarrow.RecordBatch.from_pydict({"pid": names[:1]})

    rows = spark.range(0, 4, 1, 4).mapInArrow(parents, "pid long").collect()
    found = {row.pid for row in rows}
    assert len(found) == 2, f"tasks ran in {len(found)} executors"
    assert os.getpid() not in found


def to_tables(stage: Stage) -> None:
    """Delta directly and Iceberg, both from executors to one folder that all of them see."""
    from deltalake import DeltaTable

    topic = stage.topic("tables", 3)
    stage.send(topic, COUNT, 3)
    for attempt in ("first", "again"):  # the second has nothing left to take in
        query = ingest(
            stage.spark,
            topic,
            str(stage.folder / "delta"),
            bootstrap=stage.bootstrap,
            options={"maxOffsetsPerTrigger": "500"},
        )
        assert query.awaitTermination(round(PATIENCE_S)), f"{attempt}: it did not end"
    assert DeltaTable(str(stage.folder / "delta")).count() == 3 * COUNT
    query = (
        stage.stream(subscribe=topic, startingOffsets="earliest")
        .load()
        .writeStream.format("runnel-lake")
        .option("table", str(stage.folder / "iceberg"))
        .option("tableFormat", "iceberg")
        .option("queryId", f"iceberg-{topic}")
        .option("checkpointLocation", str(stage.folder / "iceberg-checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(round(PATIENCE_S)), "Iceberg: it did not end"
    rows = sum(row["numInputRows"] for row in query.recentProgress)
    assert rows == 3 * COUNT, f"{rows} rows went to the table"


def run(case: Case, stage: Stage) -> None:
    case.run(stage)


def main() -> None:
    checks = Checks((KafkaException, PySparkException, Py4JError, subprocess.SubprocessError))
    path = {"PYTHONPATH": os.pathsep.join([str(PACKAGES), str(ROOT)])}
    os.environ.update(path)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="runnel-cluster-")))
        broker: KafkaBroker | BrokerProcess = BrokerProcess(folder / "data")
        if sys.argv[1] == "kafka":
            broker = KafkaBroker(folder / "data")
        stack.enter_context(broker)
        cluster = stack.enter_context(SparkCluster(folder / "cluster", environ=path))
        spark = session(
            "cluster",
            master=cluster.master,
            memory="1g",
            conf={
                "spark.driver.host": "127.0.0.1",
                "spark.executor.memory": "768m",
                "spark.executor.cores": 1,
                "spark.sql.shuffle.partitions": 2,
            },
        )
        stack.callback(spark.stop)
        checks.check("two executors, apart from the driver", lambda: executors_are_apart(spark))
        stage = Stage(spark, "runnel", broker.bootstrap, folder / "stage")
        for case in CASES:
            checks.check(case.name, partial(run, case, stage))
        checks.check("a topic into tables of Delta and Iceberg", lambda: to_tables(stage))
    checks.end()


if __name__ == "__main__":
    main()
