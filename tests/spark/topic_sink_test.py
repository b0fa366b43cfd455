"""Rows to topics, by Spark itself: batch and stream, at least once and exactly once."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from runnel.client.partitioner import partition_of
from runnel.spark.reads.source import RunnelDataSource
from tests.spark.conftest import MakeTopic
from tests.support.process import BrokerProcess
from tests.support.spark_reading import messages_in, values_in

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module", autouse=True)
def registered(spark: "SparkSession") -> None:
    spark.dataSource.register(RunnelDataSource)


def to_topic(
    rows: "DataFrame", broker: BrokerProcess, topic: str, checkpoint: Path, **options: str
) -> StreamingQuery:
    return (
        rows.writeStream.format("runnel")
        .options(**{"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, **options})
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )


def test_a_batch_of_all_columns(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    spark.range(2000).selectExpr(
        "cast(id as string) key",
        "encode('v' || id, 'utf-8') value",
        "array(struct('n' as key, encode(cast(id as string), 'utf-8') as value)) headers",
    ).write.format("runnel").option("kafka.bootstrap.servers", broker.bootstrap).option(
        "topic", topic
    ).option("kafka.compression.type", "lz4").mode("append").save()
    found = messages_in(broker, topic)
    assert sorted(message.value() or b"" for message in found) == sorted(
        b"v%d" % number for number in range(2000)
    )
    for message in found:
        key = message.key() or b""
        assert message.value() == b"v" + key
        assert message.headers() == [("n", key)]
        assert message.partition() == partition_of(key, 3)


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ("id", {}, "Required attribute 'value' not found"),
        ("id as value", {}, "value attribute unsupported type bigint"),
        ("'x' as value", {"topic": ""}, "topic option required"),
        ("'x' as value", {"exactlyOnce": "true"}, "needs the option queryId"),
        ("'x' as value", {"kafka.akcs": "all"}, "did you mean kafka.acks"),
        ("'x' as value", {"topic": "no/such"}, "cannot write to topic no/such"),
    ],
)
def test_errors_on_the_driver(
    spark: "SparkSession",
    broker: BrokerProcess,
    make_topic: MakeTopic,
    columns: str,
    options: dict[str, str],
    words: str,
) -> None:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "topic": make_topic(), **options}
    rows = spark.range(1).selectExpr(columns)
    with pytest.raises(PySparkException) as refused:
        rows.write.format("runnel").options(**given).mode("append").save()
    assert words in str(refused.value)


@pytest.mark.parametrize("exactly_once", ["true", "false"])
def test_a_stream_goes_on_where_it_was(
    spark: "SparkSession",
    broker: BrokerProcess,
    make_topic: MakeTopic,
    tmp_path: Path,
    exactly_once: str,
) -> None:
    topic = make_topic(partitions=2)
    (tmp_path / "in").mkdir()
    wanted: list[bytes] = []
    for part in range(3):
        lines = [f"{part}-{number}" for number in range(100)]
        (tmp_path / "in" / f"{part}.txt").write_text("\n".join(lines))
        wanted += [line.encode() for line in lines]
        rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))
        options = {"exactlyOnce": exactly_once, "queryId": topic}
        to_topic(rows, broker, topic, tmp_path / "checkpoint", **options).awaitTermination()
    assert sorted(values_in(broker, topic)) == sorted(wanted)


def test_a_batch_that_was_decided_is_not_written_again(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Spark died after the sink's commit: its own note of the batch is missing."""
    topic, checkpoint = make_topic(partitions=2), tmp_path / "checkpoint"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.txt").write_text("a\nb\nc\n")
    rows = spark.readStream.text(str(tmp_path / "in"))
    options = {"exactlyOnce": "true", "queryId": topic}
    to_topic(rows, broker, topic, checkpoint, **options).awaitTermination()
    for path in (checkpoint / "commits").iterdir():
        path.unlink()
    (tmp_path / "in" / "1.txt").write_text("d\n")
    to_topic(rows, broker, topic, checkpoint, **options).awaitTermination()
    assert sorted(values_in(broker, topic)) == [b"a", b"b", b"c", b"d"]


def test_a_task_that_fails_and_is_tried_again_writes_once(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic, marker = make_topic(partitions=2), str(tmp_path / "failed")

    def fails_once(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        from pathlib import Path

        for number, batch in enumerate(batches):
            if number == 1 and not Path(marker).exists():
                Path(marker).touch()
                raise RuntimeError("the first try fails")
            yield batch

    rows = spark.range(100_000, numPartitions=1).selectExpr("cast(id as string) value")
    rows.mapInArrow(fails_once, rows.schema).write.format("runnel").options(
        **{
            "kafka.bootstrap.servers": broker.bootstrap,
            "topic": topic,
            "exactlyOnce": "true",
            "queryId": topic,
        }
    ).mode("append").save()
    assert Path(marker).exists()
    to_again = {"kafka.bootstrap.servers": broker.bootstrap, "exactlyOnce": "true"}
    spark.range(1).selectExpr("'end' value").write.format("runnel").options(
        **to_again, topic=topic, queryId=topic
    ).mode("append").save()
    assert sorted(values_in(broker, topic)) == sorted(
        [b"end", *(b"%d" % number for number in range(100_000))]
    )
