"""Batches of changes merged into a table, with the tasks' work done here instead of by Spark."""

import datetime
import json
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from runnel.arrow.ddl import struct_type
from runnel.pipelines.cdc_batches import CdcBatches
from runnel.pipelines.cdc_reading import SAID
from tests.support import tables
from tests.support.pipeline_runs import spec_of

RECORDS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,"
    " headers array<struct<key:string,value:binary>>"
)
FILE = "name: c\nkind: cdc\nfrom: {topic: t}\nto: {table: lake/c}\n"
DECLARED = FILE + 'decode: {format: json, schema: "id BIGINT, n BIGINT"}\n'
AT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


class Rows:
    """As much of a DataFrame as is asked of one: each partition is a task, each batch one row."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self._records = records
        self._mapper: Any = None

    def mapInArrow(self, mapper: Any, _: str) -> "Rows":  # noqa: ANN401  # Spark's
        self._mapper = mapper
        return self

    def toArrow(self) -> pa.Table:  # Spark's
        schema = to_arrow_schema(struct_type(RECORDS), timezone="UTC")
        said = []
        for partition in sorted({record["partition"] for record in self._records}):
            own = [record for record in self._records if record["partition"] == partition]
            batches = [pa.RecordBatch.from_pylist([record], schema) for record in own]
            said += list(self._mapper(iter(batches)))
        return pa.Table.from_batches(said, to_arrow_schema(struct_type(SAID), timezone="UTC"))


def record(offset: int, row: Any, *, key: Any = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """A change to that row, or the end of it."""
    envelope = {"op": "d" if row is None else "c", "before": None, "after": row, **more}
    return {
        "key": json.dumps({"id": 1} if key is None else key).encode(),
        "value": json.dumps(envelope).encode(),
        "topic": "t",
        "partition": 0,
        "offset": offset,
        "timestamp": AT,
        "headers": [{"key": "h", "value": b"1"}],
    }


class Pipeline:
    def __init__(self, text: str, folder: Path) -> None:
        self._folder = folder
        self.batches = CdcBatches(spec_of(text, folder), "c", folder, lambda _: None)
        self._number = 0

    def takes(self, *records: dict[str, Any]) -> list[dict[str, Any]]:
        bad = self.batches.merge(cast("Any", Rows(list(records))), "q", self._number)
        self._number += 1
        return bad

    def repeats(self, *records: dict[str, Any]) -> list[dict[str, Any]]:
        self._number -= 1
        return self.takes(*records)

    def rows(self) -> dict[int, Any]:
        return {row["id"]: row["n"] for row in tables.rows("delta", self._folder / "lake/c")}


@pytest.mark.parametrize("more", [{}, {"ts_ms": 5}, {"source": {"ts_ms": 5, "lsn": 7}}])
def test_a_row_that_is_deleted_and_created_again_is_there(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    pipeline = Pipeline(FILE, tmp_path)
    first, gone, again = (
        record(0, {"id": 1, "n": 1}, **more),
        record(1, None, **more),
        record(2, {"id": 1, "n": 2}, **more),
    )
    pipeline.takes(first)
    for take in (pipeline.takes, pipeline.repeats):
        take(gone)
        assert pipeline.rows() == {}
    for take in (pipeline.takes, pipeline.repeats):
        take(again)
        assert pipeline.rows() == {1: 2}
    pipeline.takes(gone)  # the same records once more, as after a reset
    assert pipeline.rows() == {1: 2}


def test_an_old_delete_that_comes_again_lets_no_old_change_pass(tmp_path: Path) -> None:
    pipeline = Pipeline(FILE, tmp_path)
    pipeline.takes(record(0, {"id": 1, "n": 1}, ts_ms=1))
    pipeline.takes(record(1, None, ts_ms=9))
    pipeline.takes(record(2, None, ts_ms=2))
    pipeline.takes(record(3, {"id": 1, "n": 1}, ts_ms=5))
    assert pipeline.rows() == {}


def test_a_change_that_does_not_fit_hides_no_good_one_and_is_put_aside_as_it_was(
    tmp_path: Path,
) -> None:
    pipeline = Pipeline(DECLARED, tmp_path)
    wrong = record(1, {"id": 1, "n": "x"}, ts_ms=2)
    (bad,) = pipeline.takes(record(0, {"id": 1, "n": 1}, ts_ms=1), wrong)
    assert pipeline.rows() == {1: 1}
    assert (bad["raw_key"], bad["raw_value"]) == (wrong["key"], wrong["value"])
    assert (bad["topic"], bad["partition"], bad["offset"]) == ("t", 0, 1)
    assert (bad["timestamp"], bad["headers"]) == (AT, wrong["headers"])
    # Put aside records are sent again when the schema takes them.
    text = Pipeline(DECLARED.replace("n BIGINT", "n STRING"), tmp_path / "text")
    again = wrong | {"key": bad["raw_key"], "value": bad["raw_value"]}
    assert text.takes(again) == [] and text.rows() == {1: "x"}


def test_so_it_is_where_columns_are_told_from_values(tmp_path: Path) -> None:
    pipeline = Pipeline(FILE, tmp_path)
    assert pipeline.takes(record(0, {"id": 1, "n": 1})) == []
    wrong = record(2, {"id": 1, "n": "x"})
    (bad,) = pipeline.takes(record(1, {"id": 1, "n": 2}), wrong)
    assert pipeline.rows() == {1: 2}
    assert bad["raw_value"] == wrong["value"]


def test_a_change_of_another_key_is_put_aside_as_it_was(tmp_path: Path) -> None:
    pipeline = Pipeline(FILE, tmp_path)
    wrong = record(0, {"id": 2, "n": 2}, key={"other": 2}) | {"partition": 1}
    (bad,) = pipeline.takes(record(0, {"id": 1, "n": 1}), wrong)
    assert pipeline.rows() == {1: 1}
    assert "not of id" in bad["error"]
    assert (bad["partition"], bad["raw_key"], bad["raw_value"]) == (
        1,
        wrong["key"],
        wrong["value"],
    )
