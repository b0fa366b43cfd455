"""Spark reads the segment files of a broker that runs here, or of one that is down."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from runnel.spark.reads.source import RunnelDataSource
from tests.support.mixed_log import MixedWriter, Row, wanted
from tests.support.process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ("offset", "key", "value", "timestamp", "headers")


def _rows(frame: "DataFrame") -> Counter[str]:
    return Counter(repr(_row(*found)) for found in frame.select(*COLUMNS).collect())


def _row(
    offset: int, key: bytearray | None, value: bytearray | None, stamp: object, headers: object
) -> Row:
    pairs = None
    if headers is not None:
        pairs = [
            (str(each[0]), None if each[1] is None else bytes(each[1]))
            for each in headers  # type: ignore[attr-defined]  # rows of Spark
        ]
    at_ms = round(stamp.timestamp() * 1000)  # type: ignore[attr-defined]
    return (
        offset,
        None if key is None else bytes(key),
        None if value is None else bytes(value),
        at_ms,
        pairs,
    )


def test_up_and_down(spark: "SparkSession", tmp_path: Path) -> None:
    """The rows of a consumer, in several tasks, committed or not; then with the broker killed."""
    spark.dataSource.register(RunnelDataSource)
    with BrokerProcess(tmp_path / "data") as broker:
        writer = MixedWriter(broker.bootstrap, "mixed", seed=4, keyed=False)
        writer.write(60)
        writer.leave_open()
        expected = wanted(broker.bootstrap, "mixed")
        reading = spark.read.format("runnel").option("subscribe", "mixed")
        reading = reading.option("includeHeaders", "true").option("minPartitions", "3")
        here = reading.option("kafka.bootstrap.servers", broker.bootstrap)
        committed = {"kafka.isolation.level": "read_committed"}
        for mode in ("local", "auto", "broker"):
            found = here.option("readMode", mode).options(**committed).load()
            assert _rows(found) == Counter(map(repr, expected.committed)), mode
        broker.kill()
    down = spark.read.format("runnel").option("subscribe", "mixed")
    down = down.option("path", str(tmp_path / "data")).option("includeHeaders", "true")
    assert _rows(down.load()) == Counter(map(repr, expected.all))
    assert _rows(down.options(**committed).load()) == Counter(map(repr, expected.committed))
    with pytest.raises(PySparkException, match="there is no topic nope"):
        spark.read.format("runnel").option("subscribe", "nope").option(
            "path", str(tmp_path / "data")
        ).load().count()
