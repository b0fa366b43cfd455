"""Rows merged by key, deletes remembered, dead letters purged: without Spark."""

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.pandas.types import to_arrow_schema

from runnel.arrow.ddl import struct_type
from runnel.pipelines import dlq
from runnel.pipelines.changes import DELETE, UPSERT, Change, Order
from runnel.pipelines.deleted_keys import DeletedKeys
from runnel.spark.lake import lake_options
from runnel.spark.lake.lake_options import TableError
from runnel.spark.lake.lake_table import Query, open_table
from runnel.spark.lake.sink import RunnelLake
from runnel.spark.lake.upserting import Merged, UpsertTable
from tests.support import tables
from tests.support.pipeline_runs import spec_of

QUERY = Query("q", "batch")


def changes(*rows: tuple[int, str | None, str, int]) -> pa.Table:
    """Id, name, op and time."""
    return pa.table(
        {
            "id": pa.array([row[0] for row in rows], pa.int64()),
            "name": pa.array([row[1] for row in rows], pa.string()),
            "_op": [row[2] for row in rows],
            "_source_ts_ms": pa.array([row[3] for row in rows], pa.int64()),
            "_source_position": pa.array([""] * len(rows), pa.string()),
            "_offset": pa.array([row[3] for row in rows], pa.int64()),
        }
    )


def upserts(folder: Path, **more: Any) -> UpsertTable:  # noqa: ANN401  # of `UpsertTable`
    options = lake_options.parse({"table": str(folder), "mergeSchema": "true"})
    return UpsertTable(options, ["id"], marks_deletes=False, **more)


def names(folder: Path) -> dict[int, str]:
    return {row["id"]: row["name"] for row in tables.rows("delta", folder)}


def test_only_later_changes_touch_a_row(tmp_path: Path) -> None:
    table = upserts(tmp_path / "t")
    first = changes((1, "a", "u", 10), (2, "b", "u", 10), (3, "c", "u", 10), (4, None, "d", 10))
    assert table.merge(first, QUERY, 0) == Merged(3, 0, 0)
    assert table.merge(first, QUERY, 0).repeated
    second = changes((1, "old", "u", 9), (2, None, "d", 11), (3, None, "d", 9), (5, None, "t", 1))
    table.merge(second, QUERY, 1)
    assert names(tmp_path / "t") == {1: "a", 3: "c"}
    table.merge(changes((3, None, "t", 11)), QUERY, 2)
    assert names(tmp_path / "t") == {1: "a"}


def test_deleted_rows_can_be_marked(tmp_path: Path) -> None:
    options = lake_options.parse({"table": str(tmp_path / "t")})
    table = UpsertTable(options, ["id"], marks_deletes=True)
    table.merge(changes((1, "a", "u", 1), (2, "b", "u", 1)), QUERY, 0)
    table.merge(changes((1, None, "d", 2), (3, None, "d", 2)), QUERY, 1)
    table.merge(changes((3, "late", "u", 1)), QUERY, 2)
    found = {row["id"]: row["_deleted"] for row in tables.rows("delta", tmp_path / "t")}
    assert found == {1: True, 2: False, 3: True}


def test_another_table_is_not_merged_into(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    with pytest.raises(TableError, match="no column _source_ts_ms"):
        upserts(tmp_path / "t").merge(changes((1, "a", "u", 1)), QUERY, 0)


def test_deletes_are_remembered_and_forgotten(tmp_path: Path) -> None:
    def change(key: str, op: str, ts_ms: int) -> Change:
        return Change(key, op, Order(ts_ms, "", 0 if op == UPSERT else 1), "")

    deleted = DeletedKeys(tmp_path, remember_ms=10_000)
    deleted.note([change("a", DELETE, 5), change("b", UPSERT, 5)])
    with (tmp_path / "deleted.jsonl").open("a") as file:
        file.write('["c", 1')  # a line that a kill has cut short
    again = DeletedKeys(tmp_path, remember_ms=10_000)
    assert again.is_older(change("a", UPSERT, 5)) and not again.is_older(change("a", UPSERT, 6))
    assert not again.is_older(change("b", UPSERT, 1))
    assert not again.is_older(change("a", DELETE, 1))
    assert len(DeletedKeys(tmp_path, remember_ms=-1, keys_max=1)) == 0


def test_dead_letters_are_counted_and_purged(tmp_path: Path) -> None:
    spec = spec_of("name: p\nfrom: {topic: t}\nto: {table: lake/t}\n", tmp_path)
    assert (dlq.letters(spec), dlq.purge(spec, None, None)) == ([], 0)
    fields = "topic string, partition int, offset long, timestamp timestamp, key binary,"
    fields += " value binary, error string, batch long, failed_at timestamp"
    schema = struct_type(fields)
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    rows = [
        {"topic": "t", "partition": 0, "offset": n, "error": error, "failed_at": at, "batch": 0}
        for n, error in enumerate(["not JSON: line 1", "not JSON: line 2", 'id is "x"'])
    ]
    lake = RunnelLake({"table": str(tmp_path / "lake/t__dlq")}).writer(schema, False)
    batch = pa.RecordBatch.from_pylist(rows, to_arrow_schema(schema, timezone="UTC"))
    lake.commit([lake.write(iter([batch]))])
    assert dlq.reasons(dlq.letters(spec)) == {"not JSON: line N": 2, "id is ...": 1}
    assert dlq.purge(spec, before_ms=0, containing=None) == 0
    assert dlq.purge(spec, None, "not JSON") == 2
    assert [row["offset"] for row in dlq.letters(spec)] == [2]
    assert dlq.purge(spec, None, None) == 1
    kept = open_table(lake_options.parse({"table": str(tmp_path / "lake/t__dlq")})).kept()
    assert kept is not None and kept.files == ()
