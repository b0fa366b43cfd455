"""Trap 8: Python sinks know the output modes append and complete, and not update."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from runnel.spark.reads.source import RunnelDataSource
from tests.spark.conftest import MakeTopic
from tests.support.process import BrokerProcess
from tests.support.spark_reading import values_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def counted(spark: "SparkSession", tmp_path: Path) -> "DataFrame":
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("x\ny\nx\n")
    rows = spark.readStream.text(str(tmp_path / "in")).groupBy("value").count()
    return rows.selectExpr("value || '=' || count as value")


def test_trap_08_update_is_refused_by_spark_with_a_reason(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    spark.dataSource.register(RunnelDataSource)
    with pytest.raises((PySparkException, StreamingQueryException), match=r"(?i)update"):
        counted(spark, tmp_path).writeStream.format("runnel").outputMode("update").option(
            "kafka.bootstrap.servers", broker.bootstrap
        ).option("topic", make_topic()).option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        ).trigger(availableNow=True).start().awaitTermination()


def test_trap_08_complete_appends_the_whole_result(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    spark.dataSource.register(RunnelDataSource)
    topic = make_topic()
    query = (
        counted(spark, tmp_path)
        .writeStream.format("runnel")
        .outputMode("complete")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("topic", topic)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(values_in(broker, topic)) == [b"x=2", b"y=1"]
