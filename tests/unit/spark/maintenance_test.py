"""Compaction and expiry by all formats: the same rows, few files; writers go on exactly once."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from runnel.spark import steps
from runnel.spark.lake import lake_options, maintenance
from runnel.spark.lake.kept_files import read_all
from runnel.spark.lake.lake_options import LakeOptions, TableError
from runnel.spark.lake.lake_table import open_table
from runnel.spark.lake.maintenance import Progress, maintain
from runnel.spark.lake.sink import RunnelLake
from tests.support import tables

SCHEMA = StructType([StructField("id", LongType()), StructField("kind", StringType())])
WIDER = StructType([*SCHEMA.fields, StructField("more", StringType())])


@pytest.fixture(params=tables.FORMATS)
def table_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def write(folder: Path, format_: str, ids: range, schema: StructType = SCHEMA, **more: str) -> None:
    options = {"table": str(folder), "tableFormat": format_, "mergeSchema": "true", **more}
    data: dict[str, list[Any]] = {
        "id": list(ids),
        "kind": [None if n % 3 == 0 else f"k{n % 3}" for n in ids],
        "more": [f"text {n}" for n in ids],
    }
    batch = pa.record_batch({f.name: data[f.name] for f in schema.fields})
    lake = RunnelLake(options).writer(schema, False)
    lake.commit([lake.write(iter([batch]))])


def options_of(folder: Path, format_: str, **more: str) -> LakeOptions:
    return lake_options.parse({"table": str(folder), "tableFormat": format_, **more})


def ids(format_: str, folder: Path) -> list[int]:
    return sorted(row["id"] for row in tables.rows(format_, folder))


def in_order(format_: str, folder: Path) -> list[tuple[Any, ...]]:
    """A reader of plain Parquet takes the first file's columns for those of all."""
    names = ["id", "kind"] if format_ == "parquet" else ["id", "kind", "more"]
    rows = tables.rows(format_, folder)
    return sorted((tuple(row[n] for n in names) for row in rows), key=lambda row: row[0])


def count(folder: Path, format_: str) -> int:
    kept = open_table(options_of(folder, format_)).kept()
    return len(kept.files) if kept else 0


@pytest.mark.parametrize("partition_by", ["", "kind"])
def test_small_files_become_few_with_the_same_rows(
    tmp_path: Path, table_format: str, partition_by: str
) -> None:
    folder = tmp_path / "t"
    more = {"partitionBy": partition_by} if partition_by else {}
    for n in range(12):
        schema = SCHEMA if n < 6 else WIDER
        range_ = range(n * 10, n * 10 + 10)
        write(folder, table_format, range_, schema, queryId="q", batchId=str(n), **more)
    before = in_order(table_format, folder)
    told: list[Progress] = []
    done = maintain(options_of(folder, table_format), expire_after_ms=None, progress=told.append)
    parts = 3 if partition_by else 1
    pinned = 1 if table_format == "parquet" else 0
    assert done.files_before == 12 * parts
    assert done.files_after == count(folder, table_format) == parts + pinned
    assert told[-1].done_bytes == told[-1].total_bytes == done.rewritten_bytes
    assert in_order(table_format, folder) == before
    assert tables.ledgers(folder) == []
    # Again there is nothing to do, and batches that are repeated are still known.
    assert maintain(options_of(folder, table_format), expire_after_ms=None).rewritten_files == 0
    write(folder, table_format, range(110, 120), WIDER, queryId="q", batchId="11", **more)
    write(folder, table_format, range(120, 130), WIDER, queryId="q", batchId="12", **more)
    assert ids(table_format, folder) == list(range(130))


def test_expiry_removes_what_was_replaced_and_keeps_the_markers(
    tmp_path: Path, table_format: str
) -> None:
    folder = tmp_path / "t"
    for n in range(5):
        write(folder, table_format, range(n * 10, n * 10 + 10), queryId="q", batchId=str(n))
    done = maintain(options_of(folder, table_format), expire_after_ms=0)
    pinned = 1 if table_format == "parquet" else 0
    assert len(tables.data_files(folder)) == 1 + pinned
    assert done.removed_files >= (0 if table_format == "parquet" else 5)
    write(folder, table_format, range(40, 50), queryId="q", batchId="4")
    write(folder, table_format, range(50, 60), queryId="q", batchId="5")
    assert ids(table_format, folder) == list(range(60))


def test_files_come_out_of_equal_size(tmp_path: Path, table_format: str) -> None:
    folder = tmp_path / "t"
    for n in range(20):
        write(folder, table_format, range(n * 2000, n * 2000 + 2000), WIDER)
    maintain(options_of(folder, table_format, targetFileSize="64k"), expire_after_ms=None)
    kept = open_table(options_of(folder, table_format)).kept()
    assert kept is not None
    sizes = [file.size_bytes for file in kept.files if file.path not in kept.pinned]
    assert len(sizes) > 2
    assert all(32 << 10 <= size <= 96 << 10 for size in sizes), sizes
    assert sorted(read_all(kept)["id"].to_pylist()) == list(range(40_000))


@pytest.mark.parametrize("step", ["rewritten", "replaced"])
def test_what_a_killed_compaction_left_goes_with_the_next(
    tmp_path: Path, table_format: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    folder = tmp_path / "t"
    for n in range(4):
        write(folder, table_format, range(n * 10, n * 10 + 10))

    def die(reached: str) -> None:
        if reached == step:
            raise KeyboardInterrupt(step)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(steps, "reached", die)
        maintain(options_of(folder, table_format), expire_after_ms=0)
    assert ids(table_format, folder) == list(range(40))
    maintain(options_of(folder, table_format), expire_after_ms=0)
    assert ids(table_format, folder) == list(range(40))
    assert len(tables.data_files(folder)) == 1
    assert tables.ledgers(folder) == []


def test_a_dry_run_changes_nothing(tmp_path: Path, table_format: str) -> None:
    folder = tmp_path / "t"
    for n in range(3):
        write(folder, table_format, range(n * 10, n * 10 + 10))
    done = maintain(options_of(folder, table_format), expire_after_ms=0, dry_run=True)
    assert (done.rewritten_files, done.removed_files, count(folder, table_format)) == (3, 0, 3)


def test_a_table_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    assert maintain(options_of(tmp_path / "t", "delta"), expire_after_ms=0).files_before == 0


@pytest.mark.parametrize("locks", [True, False])
def test_two_upkeeps_at_a_time_neither_double_nor_lose_rows(
    tmp_path: Path, table_format: str, locks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one begins when the first has written its files; some mounts know no locks."""
    folder = tmp_path / "t"
    for n in range(6):
        write(folder, table_format, range(n * 10, n * 10 + 10), queryId="q", batchId=str(n))
    options = options_of(folder, table_format)
    refused: list[str] = []

    def second(step: str) -> None:
        if step == "rewritten" and not refused:
            refused.append("")
            try:
                maintain(options, expire_after_ms=None)
            except TableError as error:
                refused.append(str(error))

    monkeypatch.setattr(steps, "reached", second)
    if locks:
        maintain(options, expire_after_ms=None)
        assert "is being compacted by another process" in refused[1]
    else:
        monkeypatch.setattr(maintenance, "only_upkeep", lambda _: nullcontext())
        with pytest.raises(TableError, match=r"replaced by somebody else|are gone before"):
            maintain(options, expire_after_ms=None)
    assert ids(table_format, folder) == list(range(60))
    maintain(options, expire_after_ms=None)
    assert ids(table_format, folder) == list(range(60))
    assert tables.ledgers(folder) == []
