"""Rows of a table changed by a function: batches are known afterwards as they were before."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from runnel.spark.lake import lake_options
from runnel.spark.lake.lake_options import TableError
from runnel.spark.lake.lake_table import Query, open_table
from runnel.spark.lake.maintenance import maintain
from runnel.spark.lake.overwriting import overwrite
from runnel.spark.lake.sink import RunnelLake
from tests.support import tables

SCHEMA = StructType([StructField("id", LongType()), StructField("kind", StringType())])


@pytest.fixture(params=tables.FORMATS)
def table_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def write(folder: Path, format_: str, batch: int, query: str = "q", **more: str) -> None:
    options = {"table": str(folder), "tableFormat": format_, "queryId": query, **more}
    ids = [batch * 10, batch * 10 + 1]
    rows = pa.record_batch({"id": pa.array(ids, pa.int64()), "kind": ["a", "b"]})
    lake = RunnelLake({**options, "batchId": str(batch)}).writer(SCHEMA, overwrite=False)
    lake.commit([lake.write(iter([rows]))])


def only(folder: Path, format_: str, *wanted: int) -> int:
    def changed(rows: pa.Table) -> pa.Table:
        return rows.filter(pc.is_in(rows["id"], pa.array(wanted, pa.int64())))

    return overwrite(options_of(folder, format_), changed)


def options_of(folder: Path, format_: str) -> lake_options.LakeOptions:
    return lake_options.parse({"table": str(folder), "tableFormat": format_})


def ids(format_: str, folder: Path) -> list[int]:
    return sorted(row["id"] for row in tables.rows(format_, folder))


@pytest.mark.parametrize("partition_by", ["", "kind"])
@pytest.mark.parametrize("wanted", [(1, 10), ()])
def test_a_batch_that_is_repeated_afterwards_stays_out(
    tmp_path: Path, table_format: str, partition_by: str, wanted: tuple[int, ...]
) -> None:
    more: dict[str, Any] = {"partitionBy": partition_by}
    table = tmp_path / "t"
    for batch, query in ((0, "q"), (1, "q"), (3, "other")):
        write(table, table_format, batch, query, **more)
    assert only(table, table_format, *wanted) == 6 - len(wanted)
    for batch, query in ((1, "q"), (3, "other")):
        write(table, table_format, batch, query)
    assert ids(table_format, table) == list(wanted)
    with pytest.raises(TableError, match="up to 3, written with"):
        open_table(options_of(table, table_format)).last_batch(Query("other", "a new one"))

    assert only(table, table_format) == len(wanted)
    maintain(options_of(table, table_format), expire_after_ms=0)
    write(table, table_format, 1)
    write(table, table_format, 2)
    assert ids(table_format, table) == [20, 21]
    assert tables.ledgers(table) == []


def test_what_stays_of_it_is_one_small_file_for_each_query(tmp_path: Path) -> None:
    for batch in range(4):
        write(tmp_path / "t", "parquet", batch)
        only(tmp_path / "t", "parquet")
    assert tables.data_files(tmp_path / "t") == tables.committed_files("parquet", tmp_path / "t")
    assert len(tables.data_files(tmp_path / "t")) == 1


def test_who_overwrites_with_each_batch_leaves_nothing_else(tmp_path: Path) -> None:
    options = {"table": str(tmp_path / "t"), "tableFormat": "parquet", "queryId": "q"}
    for batch in range(3):
        lake = RunnelLake({**options, "batchId": str(batch)}).writer(SCHEMA, overwrite=True)
        rows = pa.record_batch({"id": pa.array([batch], pa.int64()), "kind": ["a"]})
        lake.commit([lake.write(iter([rows]))])
    assert len(tables.data_files(tmp_path / "t")) == 1
    assert ids("parquet", tmp_path / "t") == [2]
