"""Streams and batches into tables through Spark itself."""

import datetime
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from tests.support import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "id bigint, name string, at timestamp"


@pytest.fixture(params=tables.FORMATS)
def table_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def put(folder: Path, first: int, count: int) -> None:
    """A file for the stream to find, as a topic would grow."""
    folder.mkdir(exist_ok=True)
    at = datetime.datetime(2026, 11, 15, tzinfo=datetime.UTC).isoformat()
    lines = [f'{{"id":{n},"name":"n{n % 3}","at":"{at}"}}' for n in range(first, first + count)]
    (folder / f"{first}.json").write_text("\n".join(lines))


def stream(spark: "SparkSession", folder: Path) -> "DataFrame":
    return spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(folder / "in"))


def drain(spark: "SparkSession", folder: Path, format_: str, **more: str) -> None:
    run(stream(spark, folder), folder, format_, **more)


def run(rows: "DataFrame", folder: Path, format_: str, mode: str = "append", **more: str) -> None:
    query = (
        rows.writeStream.format("runnel-lake")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .options(table=str(folder / "table"), tableFormat=format_, **more)
        .outputMode(mode)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def ids(format_: str, folder: Path) -> list[int]:
    return sorted(row["id"] for row in tables.rows(format_, folder / "table"))


def test_a_stream_goes_on_where_it_stopped(
    spark: "SparkSession", tmp_path: Path, table_format: str
) -> None:
    put(tmp_path / "in", 0, 100)
    put(tmp_path / "in", 100, 50)
    drain(spark, tmp_path, table_format, queryId="orders")
    put(tmp_path / "in", 150, 10)
    drain(spark, tmp_path, table_format, queryId="orders")
    assert ids(table_format, tmp_path) == list(range(160))

    # A driver that died between the table's commit and its own: Spark runs the batch again.
    (tmp_path / "checkpoint/commits/2").unlink()
    (tmp_path / "checkpoint/commits/.2.crc").unlink(missing_ok=True)
    drain(spark, tmp_path, table_format, queryId="orders")
    assert ids(table_format, tmp_path) == list(range(160))
    assert len(tables.data_files(tmp_path / "table")) == 3
    assert tables.ledgers(tmp_path / "table") == []

    # Batch 0 of a new checkpoint is not the batch 0 that the table has.
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(PySparkException, match="another checkpoint"):
        drain(spark, tmp_path, table_format, queryId="orders")
    assert ids(table_format, tmp_path) == list(range(160))


def test_a_new_checkpoint_is_refused_within_foreach_batch(
    spark: "SparkSession", tmp_path: Path
) -> None:
    def write(rows: "DataFrame", number: int) -> None:
        once = {"queryId": "orders", "batchId": str(number)}
        to = rows.write.format("runnel-lake").options(**once).mode("append")
        to.save(str(tmp_path / "table"))

    def drain_each() -> None:
        to = stream(spark, tmp_path).writeStream.foreachBatch(write)
        to = to.option("checkpointLocation", str(tmp_path / "checkpoint"))
        to.trigger(availableNow=True).start().awaitTermination()

    for first in (0, 10):
        put(tmp_path / "in", first, 10)
        drain_each()
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(PySparkException, match="another checkpoint"):
        drain_each()
    assert ids("delta", tmp_path) == list(range(20))


def test_spark_reads_of_a_parquet_table_only_what_is_committed(
    spark: "SparkSession", tmp_path: Path
) -> None:
    for n in range(12):  # past the entry of the log that repeats all others
        put(tmp_path / "in", n * 10, 10)
    drain(spark, tmp_path, "parquet", partitionBy="name")
    folder = str(tmp_path / "table")
    some = next((tmp_path / "table/name=n1").glob("*.parquet"))
    shutil.copy(some, some.with_name("uncommitted.parquet"))
    rows = spark.read.parquet(folder)
    assert sorted(row.id for row in rows.select("id").collect()) == list(range(120))
    assert rows.where("name = 'n2'").count() == sum(n % 3 == 2 for n in range(120))

    lake = spark.range(3).selectExpr("id", "'n1' as name", "timestamp'2026-01-01' as at")
    lake.write.format("runnel-lake").mode("append").save(folder)
    assert spark.read.parquet(folder).count() == 123
    lake.write.format("runnel-lake").mode("overwrite").save(folder)
    assert spark.read.parquet(folder).count() == 3
    lake.write.format("runnel-lake").mode("append").save(folder)
    assert spark.read.parquet(folder).count() == 6


def test_batches_append_and_overwrite(
    spark: "SparkSession", tmp_path: Path, table_format: str
) -> None:
    rows = spark.range(0, 1_000, numPartitions=4).selectExpr("id", "cast(id % 2 as string) as odd")
    to = rows.write.format("runnel-lake").option("tableFormat", table_format)
    folder = str(tmp_path / "table")
    to.option("partitionBy", "odd").mode("append").save(folder)
    to.mode("append").save(folder)
    assert len(ids(table_format, tmp_path)) == 2_000
    to.mode("overwrite").save(folder)
    assert ids(table_format, tmp_path) == list(range(1_000))


def test_a_complete_result_replaces_the_one_before(
    spark: "SparkSession", tmp_path: Path, table_format: str
) -> None:
    put(tmp_path / "in", 0, 30)
    put(tmp_path / "in", 30, 30)
    run(stream(spark, tmp_path).groupBy("name").count(), tmp_path, table_format, mode="complete")
    found = {row["name"]: row["count"] for row in tables.rows(table_format, tmp_path / "table")}
    assert found == {"n0": 20, "n1": 20, "n2": 20}


def test_errors_name_the_option_or_the_column(spark: "SparkSession", tmp_path: Path) -> None:
    rows = spark.range(3)
    to = rows.write.format("runnel-lake").mode("append")
    to.save(str(tmp_path / "t"))
    for options, message in (
        ({"tabel": "x"}, "no option tabel; did you mean table"),
        ({}, "option table is missing"),
        ({"table": "s3://bucket/t"}, "only folders are written to"),
    ):
        with pytest.raises(PySparkException, match=message):
            rows.write.format("runnel-lake").mode("append").options(**options).save()
    other = rows.selectExpr("cast(id as string) as id").write.format("runnel-lake").mode("append")
    with pytest.raises(PySparkException, match="id is string in the rows but int64 in Delta table"):
        other.save(str(tmp_path / "t"))
