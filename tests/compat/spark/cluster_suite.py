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

from confluent_kafka import KafkaException, Producer
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from runnel.spark import ingest, session
from tests.compat.checks import Checks
from tests.support import spark_reading_cases, spark_streaming_cases, spark_writing_cases
from tests.support.blocks import blocks_of
from tests.support.kafka_tools import ROOT, KafkaBroker
from tests.support.process import PACKAGES, BrokerProcess
from tests.support.search_path import search_path as commands_in
from tests.support.spark_cluster import SparkCluster
from tests.support.spark_stage import PATIENCE_S, Case, Stage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

CASES = [*spark_reading_cases.CASES, *spark_streaming_cases.CASES, *spark_writing_cases.CASES]
COUNT = 400
GUIDES_MASTER = "spark://127.0.0.1:7077"


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


def as_the_guide_says(folder: Path, bootstrap: str, master: str) -> None:
    """The file and the command of docs/pipelines/guide.md, with the address of this cluster."""
    from deltalake import DeltaTable

    blocks = list(blocks_of(ROOT / "docs/pipelines/guide.md"))
    (file,) = (block for block in blocks if block.title)
    (shown,) = (block for block in blocks if block.run_by == "spark-cluster")
    command, expected = shown.body.removeprefix("$ ").split("\n", 1)
    assert file.title is not None and GUIDES_MASTER in command, "the page has changed: look here"
    (folder / file.title).parent.mkdir(parents=True)
    (folder / file.title).write_text(file.body)
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(1000):
        producer.produce("orders", f'{{"id": {number}, "city": "Porto", "amount": 1.5}}')
    for _ in range(2):
        producer.produce("orders", "no order")
    assert producer.flush(30) == 0
    search_path = commands_in(folder / "bin")
    done = subprocess.run(
        ["bash", "-c", command.replace(GUIDES_MASTER, master)],
        cwd=folder,
        env={**os.environ, "RUNNEL_BOOTSTRAP_SERVER": bootstrap, "PATH": search_path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S * 4,
    )
    assert done.returncode == 0 and done.stdout == expected, f"{done.stdout}\n{done.stderr}"
    table = DeltaTable(str(folder / "lake/orders")).to_pyarrow_table()
    assert sorted(table["id"].to_pylist()) == list(range(1000))


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
        # First: an application takes all cores of this cluster as long as it runs.
        checks.check(
            "a pipeline, as docs/pipelines/guide.md has it",
            lambda: as_the_guide_says(folder / "guide", broker.bootstrap, cluster.master),
        )
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
