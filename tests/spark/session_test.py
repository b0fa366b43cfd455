"""The session that `runnel.spark.session` makes, as a program sees it."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyspark
import pytest

from runnel.spark import session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def test_workers_run_in_this_interpreter(spark: "SparkSession") -> None:
    def interpreter(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow
        import pyspark

        for _ in batches:
            found = {"python": [sys.executable], "pyspark": [pyspark.__file__]}
            yield pyarrow.RecordBatch.from_pydict(found)

    columns = "python string, pyspark string"
    (row,) = spark.range(1, numPartitions=1).mapInArrow(interpreter, columns).collect()
    assert (row.python, row.pyspark) == (sys.executable, pyspark.__file__), "not out of a zip"


def test_settings_are_those_for_topics(spark: "SparkSession") -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.master") == "local[2,4]"
    assert conf.get("spark.python.unix.domain.socket.enabled") == "true"
    assert conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"
    assert (spark.conf.get("spark.sql.streaming.stateStore.providerClass") or "").endswith(
        "RocksDBStateStoreProvider"
    )


@pytest.mark.parametrize("as_keyword", [True, False])
def test_any_setting_can_be_set_otherwise(spark: "SparkSession", as_keyword: bool) -> None:
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    try:
        if as_keyword:
            same = session("tests", spark_sql_shuffle_partitions=7)
        else:
            same = session("tests", conf={name: 7})
        assert same.conf.get(name) == "7"
    finally:
        spark.conf.set(name, before or "2")
