"""Streams: a topic into a table, latency of small batches, what the driver does for each batch."""

import os
import shutil
import threading
import time
import urllib.request
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from bench.model import Measure
from bench.spark.data import TABLE
from bench.spark.model import FORMATS, RUNNEL, Cell, Stage, timed
from runnel.bench.topics import make_topic, passing_topic
from runnel.client.raw import WireClient
from runnel.spark import ingest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PATIENCE_S = 600
RATE_PER_S, TICK_S = 1000, 0.01
FIRST_S = 5.0  # of a stream, which are none of its latency
PARTITION_COUNTS = (10, 100, 1000)
BUSY_PARTITIONS = 2  # have records; the others only have to be looked at
PER_BATCH = 200
EXPORTED_S = 2.0  # after this all that was asked is counted
RECORD = b"x" * 100


def _to_table(stage: Stage, target: str) -> float:
    """Rows per second until all are committed. Spark has no writer for Delta without a jar that
    does not exist for 4.3: the connector's side writes Parquet, which costs it no table log."""
    topic = stage.topics[TABLE]
    folder = stage.folder / f"table-{os.urandom(4).hex()}"
    with timed() as seconds:
        if target == RUNNEL:
            query = ingest(
                stage.spark,
                topic.name,
                str(folder / "table"),
                bootstrap=stage.broker.bootstrap,
                table_format="delta",
                options={"compression": "snappy"},
            )
        else:
            query = (
                stage.spark.readStream.format(FORMATS[target])
                .option("kafka.bootstrap.servers", stage.broker.bootstrap)
                .option("subscribe", topic.name)
                .option("startingOffsets", "earliest")
                .load()
                .writeStream.format("parquet")
                .option("path", str(folder / "table"))
                .option("compression", "snappy")
                .option("checkpointLocation", str(folder / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
        assert query.awaitTermination(PATIENCE_S), "the table was not written in time"
    written = _rows_of_table(stage, target, str(folder / "table"))
    shutil.rmtree(folder)
    assert written == topic.records, f"{written:,} rows instead of {topic.records:,}"
    return topic.records / seconds[0]


def _rows_of_table(stage: Stage, target: str, folder: str) -> int:
    if target != RUNNEL:
        return stage.spark.read.parquet(folder).count()
    from deltalake import DeltaTable

    return DeltaTable(folder).count()


def _latency(stage: Stage, target: str) -> float:
    """Milliseconds from a record's own timestamp until a batch's function has it, the median."""
    seen_ms: list[float] = []
    started = time.monotonic()

    def take(batch: "DataFrame", number: int) -> None:
        sent = [row[0] for row in batch.selectExpr("unix_millis(timestamp)").collect()]
        if time.monotonic() - started > FIRST_S:
            now_ms = time.time() * 1000
            seen_ms.extend(now_ms - at for at in sent)

    with WireClient(stage.broker.address) as client, passing_topic(client, "latency", 4) as topic:
        reader = (
            stage.spark.readStream.format(FORMATS[target])
            .option("kafka.bootstrap.servers", stage.broker.bootstrap)
            .option("subscribe", topic.name)
            .option("startingOffsets", "earliest")
        )
        if target == RUNNEL:
            reader = reader.option("queryId", topic.name)
        checkpoint = stage.folder / f"latency-{os.urandom(4).hex()}"
        query = (
            reader.load()
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime="0 seconds")
            .start()
        )
        try:
            _send(stage.broker.bootstrap, topic.name, FIRST_S + stage.scale.latency_s)
            query.processAllAvailable()
        finally:
            query.stop()
    shutil.rmtree(checkpoint, ignore_errors=True)
    assert len(seen_ms) > RATE_PER_S, f"only {len(seen_ms)} records were seen in time"
    return median(seen_ms)


def _send(bootstrap: str, topic: str, seconds: float) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})
    wait = threading.Event()  # nobody sets it: it keeps the rate whatever sending takes
    started = time.monotonic()
    sent = 0
    while (passed := time.monotonic() - started) < seconds:
        while sent < passed * RATE_PER_S:
            producer.produce(topic, RECORD, partition=sent % 4)
            sent += 1
        producer.poll(0)
        wait.wait(TICK_S)
    assert producer.flush(30) == 0


def _planning(count: int, stage: Stage, target: str) -> float:
    """Milliseconds of the driver for a batch: offsets asked for, tasks planned; the median."""
    batches = stage.scale.planned_batches
    with WireClient(stage.broker.address) as client, passing_topic(client, "plan", count) as topic:
        producer = Producer({"bootstrap.servers": stage.broker.bootstrap, "log_level": 0})
        for number in range(batches * PER_BATCH):
            producer.produce(topic.name, b"x", partition=number % BUSY_PARTITIONS)
        assert producer.flush(30) == 0
        reader = (
            stage.spark.readStream.format(FORMATS[target])
            .option("kafka.bootstrap.servers", stage.broker.bootstrap)
            .option("subscribe", topic.name)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", str(PER_BATCH))
        )
        if target == RUNNEL:
            reader = reader.option("queryId", topic.name)
        checkpoint = stage.folder / f"plan-{os.urandom(4).hex()}"
        query = (
            reader.load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(checkpoint))
            .start()
        )
        try:
            query.processAllAvailable()
            taken = [
                sum(row["durationMs"].get(part, 0) for part in ("latestOffset", "queryPlanning"))
                for row in query.recentProgress
                if row["numInputRows"]
            ]
        finally:
            query.stop()
        shutil.rmtree(checkpoint, ignore_errors=True)
    assert len(taken) >= 3, f"only {len(taken)} batches"
    return float(median(taken[1:]))


def _list_offsets(stage: Stage, target: str) -> float | None:
    """Requests for one batch of a stream over 1,000 partitions, as the broker counts them."""
    if target != RUNNEL:
        return None
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    from runnel.spark.reads.source import RunnelDataSource

    with WireClient(stage.broker.address) as client:
        topic = make_topic(client, f"offsets-{os.urandom(4).hex()}", PARTITION_COUNTS[-1])
        source = RunnelDataSource(
            {
                "kafka.bootstrap.servers": stage.broker.bootstrap,
                "subscribe": topic.name,
                "startingOffsets": "earliest",
                "queryId": topic.name,
            }
        )
        reader = source.streamReader(source.schema())
        start = reader.initialOffset()
        reader.latestOffset(start, ReadAllAvailable())
        before = _counted(stage, "ListOffsets")
        for _ in range(stage.scale.planned_batches):
            end = reader.latestOffset(start, ReadAllAvailable())
            reader.partitions(start, end)
            reader.reportLatestOffset()
        found = (_counted(stage, "ListOffsets") - before) / stage.scale.planned_batches
        client.delete_topic(topic.name)
    return found


def _counted(stage: Stage, api: str) -> float:
    """What the exporter tells is up to a second old."""
    time.sleep(EXPORTED_S)
    with urllib.request.urlopen(f"http://{stage.broker.http}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = [line for line in text.splitlines() if line.startswith("runnel_requests_total{")]
    return sum(float(line.split()[-1]) for line in found if f'"{api}"' in line)


STREAM_CELLS = (
    Cell(Measure("topic to Delta table", "rows/s"), _to_table, (TABLE,)),
    Cell(Measure("micro-batch latency p50", "ms"), _latency),
    *(
        Cell(
            Measure(f"driver's work per batch, {count:,} partitions", "ms"),
            partial(_planning, count),
        )
        for count in PARTITION_COUNTS
    ),
    Cell(Measure("ListOffsets requests per batch, 1,000 partitions", "requests"), _list_offsets),
)
