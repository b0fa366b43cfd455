"""A topic into a table in one call, with no record in the JVM."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException

from runnel.spark import ingest
from tests.support import tables
from tests.support.process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=tables.FORMATS)
def table_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def send(producer: Producer, topic: str, numbers: range) -> None:
    for n in numbers:
        producer.produce(topic, b"v%d" % n, b"k%d" % n)
    producer.flush()


def test_a_topic_becomes_a_table_and_goes_on(
    spark: "SparkSession",
    broker: BrokerProcess,
    make_topic: Callable[..., str],
    producer: Producer,
    tmp_path: Path,
    table_format: str,
) -> None:
    topic = make_topic("orders", partitions=3)
    send(producer, topic, range(1_000))

    def take_in() -> dict[str, int]:
        query = ingest(
            spark,
            topic,
            str(tmp_path / "table"),
            bootstrap=broker.bootstrap,
            table_format=table_format,
            options={"maxOffsetsPerTrigger": "600"},
        )
        query.awaitTermination()
        found = [p["observedMetrics"].get("ingested") for p in query.recentProgress]
        return {
            name: sum(batch[name] or 0 for batch in found if batch) for name in ("rows", "files")
        }

    assert take_in()["rows"] == 1_000
    assert take_in() == {"rows": 0, "files": 0}
    send(producer, topic, range(1_000, 1_100))
    assert take_in()["rows"] == 100

    found = tables.rows(table_format, tmp_path / "table")
    assert sorted(found[0]) == sorted(
        ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    )
    assert sorted(row["value"] for row in found) == sorted(b"v%d" % n for n in range(1_100))
    assert len({(row["partition"], row["offset"]) for row in found}) == 1_100
    assert tables.ledgers(tmp_path / "table") == []


def test_some_columns_in_partitions(
    spark: "SparkSession",
    broker: BrokerProcess,
    make_topic: Callable[..., str],
    producer: Producer,
    tmp_path: Path,
) -> None:
    topic = make_topic("orders", partitions=2)
    send(producer, topic, range(100))
    ingest(
        spark,
        topic,
        str(tmp_path / "table"),
        bootstrap=broker.bootstrap,
        columns=["value", "partition", "offset"],
        partition_by=["partition"],
    ).awaitTermination()
    found = tables.rows("delta", tmp_path / "table")
    assert sorted(found[0]) == ["offset", "partition", "value"]
    assert len(found) == 100


def test_what_is_wrong_is_told(
    spark: "SparkSession",
    broker: BrokerProcess,
    make_topic: Callable[..., str],
    producer: Producer,
    tmp_path: Path,
) -> None:
    topic = make_topic("orders")
    send(producer, topic, range(1))
    (tmp_path / "table").mkdir()
    (tmp_path / "table/holiday.jpg").touch()
    where = str(tmp_path / "table")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"options": {"maxOffsetPerTrigger": "1"}}, "did you mean maxOffsetsPerTrigger"),
        ({"columns": ["valeu"]}, "no column valeu"),
    ]
    cases.append(({}, r"but has holiday\.jpg in it"))
    for more, message in cases:
        with pytest.raises(PySparkException, match=message):
            ingest(spark, topic, where, bootstrap=broker.bootstrap, **more).awaitTermination()
