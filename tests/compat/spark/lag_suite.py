"""The lag of a running Spark query, in `runnel group describe` and in Kafka's own group tool.

`python -m tests.compat.spark.lag_suite runnel`, or `kafka`. The query takes ten records a batch and
is held in the middle, so that its lag is known.
"""

import os
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from runnel.client.admin import create_topic
from runnel.client.cluster import ClientError, Cluster, addresses_of
from runnel.spark import session
from tests.compat.checks import Checks, require_soon
from tests.support.command import Runnel
from tests.support.kafka_tools import ROOT, KafkaBroker, run_tool
from tests.support.process import PACKAGES, BrokerProcess

TOPIC, GROUP = "orders", "spark-runnel-lag"
RECORDS, PER_BATCH = 50, 10
TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


class Held:
    """A sink that stops in its third batch until it is let go."""

    def __init__(self) -> None:
        self.stopped, self.go_on = threading.Event(), threading.Event()

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        batch.count()
        if batch_id == 2:
            self.stopped.set()
            self.go_on.wait(300)


def shown_by_kafka(bootstrap: str) -> tuple[int, int, int]:
    """Committed offset, end and lag of the only partition."""
    done = run_tool(TOOL, ["--bootstrap-server", bootstrap, "--describe", "--group", GROUP])
    (row,) = [line.split() for line in done.stdout.splitlines() if TOPIC in line.split()]
    return int(row[3]), int(row[4]), int(row[5])


def shown_by_runnel(bootstrap: str) -> tuple[int, int, int]:
    (group,) = Runnel(bootstrap)("group", "describe", GROUP, "--json").json
    (row,) = group["partitions"]
    return row["committed_offset"], row["end_offset"], row["lag"]


def require(found: tuple[int, int, int], committed: int) -> None:
    wanted = (committed, RECORDS, RECORDS - committed)
    assert found == wanted, f"wanted {wanted}, got {found}"


def main() -> None:
    os.environ["PYTHONPATH"] = os.pathsep.join([str(PACKAGES), str(ROOT)])
    checks = Checks((PySparkException, ClientError))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="runnel-lag-")))
        is_runnel = sys.argv[1] == "runnel"
        broker = BrokerProcess(folder / "data") if is_runnel else KafkaBroker(folder / "data")
        stack.enter_context(broker)
        with Cluster(addresses_of(broker.bootstrap)) as cluster:
            create_topic(cluster, TOPIC, 1, 1)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(RECORDS):
            producer.produce(TOPIC, str(number))
        producer.flush(30)
        spark = session("lag", cores=2, memory="1g")
        stack.callback(spark.stop)
        options: dict[str, str] = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "subscribe": TOPIC,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(PER_BATCH),
            "queryId": "lag",
        }
        frame = spark.readStream.format("runnel").options(**options).load()
        held = Held()
        writer = frame.writeStream.foreachBatch(held)
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        stack.callback(query.stop)
        assert held.stopped.wait(180), query.exception()
        at = broker.bootstrap
        for name, shown in (("runnel group describe", shown_by_runnel), (TOOL, shown_by_kafka)):
            checks.check(f"{name}: while it runs", lambda: require(shown(at), 20))  # noqa: B023
        held.go_on.set()
        query.processAllAvailable()
        caught_up = (RECORDS, RECORDS, 0)
        require_soon(lambda: shown_by_runnel(at) == caught_up, "the last batch is not committed")
        checks.check(f"{TOOL}: caught up", lambda: require(shown_by_kafka(at), RECORDS))
    checks.end()


if __name__ == "__main__":
    main()
