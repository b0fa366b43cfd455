"""The source in Spark: what only Spark itself can show. The rest is in tests/unit/spark."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import functions as f

from runnel.client.cluster import Cluster, addresses_of
from runnel.client.group_offsets import committed_offsets
from runnel.spark import LagListener
from tests.spark.conftest import PATIENCE_S
from tests.support.command import Runnel
from tests.support.process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from tests.spark.conftest import MakeTopic

T0_MS = 1_700_000_000_000
Read = Callable[..., "DataFrame"]


@pytest.fixture
def read(spark: "SparkSession", broker: BrokerProcess) -> Read:
    """`read("orders", startingOffsets="earliest")`."""

    def batch(topic: str, schema: str | None = None, **options: Any) -> "DataFrame":  # noqa: ANN401
        reader = spark.read.format("runnel").options(
            **{"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **options}
        )
        return (reader.schema(schema) if schema else reader).load()

    return batch


@pytest.fixture
def stream(spark: "SparkSession", broker: BrokerProcess) -> Read:
    """The same, streaming; the topic's name is the query's."""

    def reading(topic: str, **options: Any) -> "DataFrame":  # noqa: ANN401
        given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "queryId": topic}
        return spark.readStream.format("runnel").options(**{**given, **options}).load()

    return reading


@pytest.fixture
def fill(producer: Producer) -> Callable[..., None]:
    def send(topic: str, count: int, partition: int = 0, first: int = 0) -> None:
        for number in range(first, first + count):
            producer.produce(
                topic,
                value=f"v{number}",
                key=f"k{number}",
                partition=partition,
                timestamp=T0_MS + number,
                headers=[("n", str(number).encode())] if number % 2 else None,
            )
        producer.flush(30)

    return send


Fill = Callable[..., None]


def run_to_end(writer: "DataStreamWriter") -> "StreamingQuery":
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return query


def collecting(frame: "DataFrame", rows: list[int], checkpoint: Path) -> "DataStreamWriter":
    """Offsets of rows, batch after batch, in this process."""

    def take(batch: "DataFrame", _: int) -> None:
        rows.extend(row.offset for row in batch.select("offset").collect())

    return frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))


def committed(broker: BrokerProcess, topic: str) -> list[int]:
    with Cluster(addresses_of(broker.bootstrap)) as cluster:
        found = committed_offsets(cluster, f"spark-runnel-{topic}")
    return [row.offset for _, row in sorted(found.items())]


def test_trap_05_all_columns_arrive_as_spark_wants_them(
    read: Read, make_topic: "MakeTopic", fill: Fill
) -> None:
    topic = make_topic("columns", partitions=2)
    fill(topic, 3, partition=1)
    frame = read(topic, includeHeaders="true")
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    rows = frame.orderBy("offset").collect()
    assert [(bytes(r.key), bytes(r.value), r.topic, r.partition, r.offset) for r in rows] == [
        (f"k{n}".encode(), f"v{n}".encode(), topic, 1, n) for n in range(3)
    ]
    stamps = [row.timestamp.astimezone(UTC) for row in rows]
    assert stamps == [datetime.fromtimestamp((T0_MS + n) / 1000, UTC) for n in range(3)]
    assert [row.headers for row in rows] == [None, [("n", b"1")], None]
    assert [row.timestampType for row in rows] == [0, 0, 0]


def test_a_schema_reads_only_its_columns(read: Read, make_topic: "MakeTopic", fill: Fill) -> None:
    topic = make_topic("pruned")
    fill(topic, 3)
    rows = read(topic, schema="offset LONG, partition INT").orderBy("offset").collect()
    assert [tuple(row) for row in rows] == [(0, 0), (1, 0), (2, 0)]
    with pytest.raises(AnalysisException, match=r"there is no column offsets; did you mean offset"):
        read(topic, schema="offsets LONG").collect()


def test_an_empty_topic_has_no_rows(read: Read, make_topic: "MakeTopic") -> None:
    assert read(make_topic("empty", partitions=3)).count() == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"startingOffset": "earliest"}, "unknown option startingoffset; did you mean"),
        ({"subscribe": "no-such-topic"}, "there is no topic no-such-topic"),
        ({"startingOffsets": "latest"}, "starting offset can't be latest"),
    ],
)
def test_what_is_wrong_is_told_on_the_driver(
    read: Read, make_topic: "MakeTopic", options: dict[str, str], says: str
) -> None:
    with pytest.raises(AnalysisException, match=says):
        read(make_topic("wrong"), **options).collect()


def test_a_stream_without_a_name_is_told_why(stream: Read, make_topic: "MakeTopic") -> None:
    frame = stream(make_topic("nameless"), queryId="")
    with pytest.raises(StreamingQueryException) as caught:
        frame.writeStream.format("noop").start().processAllAvailable()
    said = str(caught.value)
    assert "a stream needs the option queryId" in said
    assert "UnboundLocalError" not in said


def test_trap_06_filters_are_pushed_only_where_both_sides_want_it(
    spark: "SparkSession", read: Read, make_topic: "MakeTopic", fill: Fill
) -> None:
    topic = make_topic("filtered", partitions=2)
    fill(topic, 50)
    fill(topic, 50, partition=1)
    late = datetime.fromtimestamp((T0_MS + 45) / 1000, UTC)
    wanted = (f.col("partition") == 1) & (f.col("offset") > 40) & (f.col("timestamp") >= late)
    pushed = read(topic, pushdown="true").where(wanted)
    assert sorted(row.offset for row in pushed.collect()) == [45, 46, 47, 48, 49]
    plan = pushed._jdf.queryExecution().executedPlan().toString()
    assert "Filter (" not in plan, "Spark was to have nothing left to compare"
    conf = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(conf, "false")
    try:
        assert read(topic).where(wanted).count() == 5
        with pytest.raises(AnalysisException, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
            read(topic, pushdown="true").where(wanted).count()
    finally:
        spark.conf.set(conf, "true")


def test_trap_01_the_first_batch_replayed_begins_where_it_began(
    stream: Read, make_topic: "MakeTopic", fill: Fill, tmp_path: Path
) -> None:
    topic = make_topic("replayed")
    fill(topic, 5)

    def fail(batch: "DataFrame", _: int) -> None:
        raise RuntimeError("the sink is down")

    frame = stream(topic)  # from latest: the first batch is planned, and has no rows
    query = frame.writeStream.foreachBatch(fail).option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(StreamingQueryException, match="the sink is down"):
        query.processAllAvailable()
    fill(topic, 3, first=5)
    rows: list[int] = []
    run_to_end(collecting(frame, rows, tmp_path))
    assert sorted(rows) == [5, 6, 7]


def test_trap_02_an_idle_stream_makes_no_batches(
    stream: Read, make_topic: "MakeTopic", fill: Fill, tmp_path: Path
) -> None:
    topic = make_topic("idle", partitions=11)
    fill(topic, 2, partition=10)
    rows: list[int] = []
    query = collecting(stream(topic, startingOffsets="earliest"), rows, tmp_path).start()
    try:
        for _ in range(5):
            query.processAllAvailable()
        assert sorted(path.name for path in (tmp_path / "offsets").glob("[0-9]*")) == ["0"]
    finally:
        query.stop()


def test_trap_03_the_group_has_the_end_of_the_last_batch(
    stream: Read, broker: BrokerProcess, make_topic: "MakeTopic", fill: Fill, tmp_path: Path
) -> None:
    topic = make_topic("last", partitions=2)
    fill(topic, 7)
    fill(topic, 4, partition=1)
    rows: list[int] = []
    run_to_end(collecting(stream(topic, startingOffsets="earliest"), rows, tmp_path))
    assert committed(broker, topic) == [7, 4]
    fill(topic, 3)
    (described,) = Runnel(broker.bootstrap)(
        "group", "describe", f"spark-runnel-{topic}", "--json"
    ).json
    assert [row["lag"] for row in described["partitions"]] == [3, 0]


def test_trap_09_available_now_drains_in_batches_within_the_limit(
    stream: Read, make_topic: "MakeTopic", fill: Fill, tmp_path: Path
) -> None:
    topic = make_topic("drained")
    fill(topic, 25)
    rows: list[int] = []
    frame = stream(
        topic, startingOffsets="earliest", maxOffsetsPerTrigger=10, minOffsetsPerTrigger=10
    )
    query = run_to_end(collecting(frame, rows, tmp_path))
    assert [progress["numInputRows"] for progress in query.recentProgress] == [10, 10, 5]
    assert sorted(rows) == list(range(25))


def test_a_stream_follows_and_its_lag_is_told(
    spark: "SparkSession", stream: Read, make_topic: "MakeTopic", fill: Fill, tmp_path: Path
) -> None:
    topic = make_topic("followed", partitions=2)
    fill(topic, 30)
    told: Queue[int] = Queue()  # Spark tells in a thread of its own, later than a batch ends
    listener = LagListener(lambda state: told.put(state.lag) if state.query == topic else None)
    spark.streams.addListener(listener)
    rows: list[int] = []
    frame = stream(topic, startingOffsets="earliest", maxOffsetsPerTrigger=10)
    query = collecting(frame, rows, tmp_path).queryName(topic).start()
    try:
        query.processAllAvailable()
        assert [told.get(timeout=PATIENCE_S) for _ in range(3)] == [20, 10, 0]
        fill(topic, 5, partition=1)
        query.processAllAvailable()
    finally:
        query.stop()
        spark.streams.removeListener(listener)
    assert sorted(rows) == sorted([*range(30), *range(5)])
