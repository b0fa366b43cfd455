"""One word changed: a query of Spark's Kafka connector goes on with Runnel's source, and back.

`python -m tests.compat.spark.checkpoint_suite runnel`, or `kafka`. The checkpoint stays the same;
every record has to come out once.
"""

import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from runnel.client.admin import create_topic
from runnel.client.cluster import ClientError, Cluster, addresses_of
from runnel.spark import session
from tests.compat.checks import Checks
from tests.compat.spark.connector import connector_jars
from tests.support.kafka_tools import ROOT, KafkaBroker
from tests.support.process import PACKAGES, BrokerProcess

RECORDS = 30
PARTITIONS = 3
# `topicIds=false`: without the ids of topics the connector can read the checkpoint, too.
OURS = {"queryId": "moved", "topicIds": "false"}


class Moving:
    """One topic, one checkpoint; each run says which values it saw."""

    def __init__(self, spark: SparkSession, bootstrap: str, folder: Path) -> None:
        self._spark, self._bootstrap, self._folder = spark, bootstrap, folder
        self._sent = 0

    def send(self, topic: str) -> list[str]:
        producer = Producer({"bootstrap.servers": self._bootstrap})
        values = [str(number) for number in range(self._sent, self._sent + RECORDS)]
        for number, value in enumerate(values):
            producer.produce(topic, value, partition=number % PARTITIONS)
        producer.flush(30)
        self._sent += RECORDS
        return values

    def run(self, form: str, topic: str, **options: str) -> list[str]:
        seen: list[str] = []

        def take(batch: DataFrame, _: int) -> None:
            seen.extend(row[0] for row in batch.selectExpr("cast(value as string)").collect())

        given = {
            "kafka.bootstrap.servers": self._bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
            **options,
        }
        frame = self._spark.readStream.format(form).options(**given).load()
        writer = frame.writeStream.foreachBatch(take).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self._folder / topic)).start()
        assert query.awaitTermination(180), f"{form} does not end"
        return sorted(seen, key=int)

    def check(self, topic: str, runs: list[tuple[str, dict[str, str]]]) -> None:
        with Cluster(addresses_of(self._bootstrap)) as cluster:
            create_topic(cluster, topic, PARTITIONS, 1)
        for form, options in runs:
            sent = self.send(topic)
            seen = self.run(form, topic, **options)
            assert seen == sent, f"{form} was to see {sent[0]} to {sent[-1]}, and saw {seen}"


def main() -> None:
    os.environ["PYTHONPATH"] = os.pathsep.join([str(PACKAGES), str(ROOT)])
    checks = Checks((PySparkException, ClientError))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="runnel-moved-")))
        is_runnel = sys.argv[1] == "runnel"
        broker = BrokerProcess(folder / "data") if is_runnel else KafkaBroker(folder / "data")
        stack.enter_context(broker)
        spark = session("moved", cores=2, memory="1g", spark_jars=connector_jars())
        stack.callback(spark.stop)
        moving = Moving(spark, broker.bootstrap, folder)
        there = [("kafka", {}), ("runnel", {"queryId": "there"}), ("runnel", {"queryId": "there"})]
        checks.check("kafka, then runnel", lambda: moving.check("there", there))
        back = [("runnel", OURS), ("kafka", {}), ("runnel", OURS)]
        checks.check("runnel with topicIds=false, then kafka", lambda: moving.check("back", back))
    checks.end()


if __name__ == "__main__":
    main()
