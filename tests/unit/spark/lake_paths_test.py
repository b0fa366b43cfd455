"""A table is the same however its folder is spelled, and whatever letters the folder's name has."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from runnel.spark.lake import lake_options
from runnel.spark.lake.attempts import Attempt, Ledger, Sweeper
from runnel.spark.lake.kept_files import named, read_all
from runnel.spark.lake.lake_options import TableError
from runnel.spark.lake.lake_table import local_folder, open_table
from runnel.spark.lake.maintenance import maintain
from runnel.spark.lake.sink import RunnelLake
from runnel.spark.lake.upserting import UpsertTable
from tests.support import tables

SCHEMA = StructType([StructField("id", LongType())])
NAMES = ("plain", "with space", "ümlaut", "link/t", "real/../dots", "50%", "lit%20eral")


@pytest.fixture(params=tables.FORMATS)
def table_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    return tmp_path


def write(table: str, format_: str, batch: int, rows: int = 3) -> None:
    more = {"queryId": "q", "batchId": str(batch)}
    lake = RunnelLake({"table": table, "tableFormat": format_, **more}).writer(SCHEMA, False)
    ids = pa.array(range(batch * 10, batch * 10 + rows), pa.int64())
    lake.commit([lake.write(iter([pa.record_batch({"id": ids})]))])


def ids(table: str, format_: str) -> list[int]:
    kept = open_table(lake_options.parse({"table": table, "tableFormat": format_})).kept()
    assert kept is not None
    found: list[int] = sorted(read_all(kept)["id"].to_pylist())
    return found


def delta_takes(name: str, format_: str) -> bool:
    """deltalake itself looks elsewhere when a path has what looks like an escape."""
    return format_ != "delta" or name != "lit%20eral"


@pytest.mark.parametrize("name", NAMES)
def test_a_repeated_batch_loses_nothing(
    lake: Path, table_format: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its driver died right after the commit, so that the ledger of it is still there."""
    table = f"{lake}/{name}"
    if not delta_takes(name, table_format):
        with pytest.raises(TableError, match="with %20 in its name"):
            write(table, table_format, 0)
        assert not Path(table).exists()
        return
    with monkeypatch.context() as patch:
        patch.setattr("runnel.spark.lake.sink.Ledger.close", lambda _: None)
        write(table, table_format, 0)
    assert tables.ledgers(Path(table))
    write(table, table_format, 0)
    assert ids(table, table_format) == [0, 1, 2]
    assert len(tables.data_files(Path(table))) == 1, "the files of the repeated batch stay"
    assert tables.ledgers(Path(table)) == []


@pytest.mark.parametrize(
    ("first", "again"), [("real/t", "link/t"), ("link/t", "real/t"), ("real/t", "real/../link/t/")]
)
def test_a_batch_repeated_by_another_spelling_loses_nothing(
    lake: Path, table_format: str, first: str, again: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("runnel.spark.lake.sink.Ledger.close", lambda _: None)
        write(f"{lake}/{first}", table_format, 0)
    write(f"{lake}/{again}", table_format, 0)
    for spelling in (first, again):
        assert ids(f"{lake}/{spelling}", table_format) == [0, 1, 2]


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_compacted_wherever_it_is(lake: Path, table_format: str, name: str) -> None:
    if not delta_takes(name, table_format):
        return
    table = f"{lake}/{name}"
    for batch in range(3):
        write(table, table_format, batch)
    done = maintain(lake_options.parse({"table": table}), expire_after_ms=0)
    assert done.rewritten_files >= 2
    assert ids(table, table_format) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    write(table, table_format, 2)
    assert len(ids(table, table_format)) == 9


def test_a_table_that_was_written_under_another_spelling_goes_on(
    lake: Path, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions took the folder as it was spelled, and wrote that down."""
    with monkeypatch.context() as patch:
        patch.setattr(Path, "resolve", lambda path, strict=False: path.absolute())
        patch.setattr("runnel.spark.lake.sink.Ledger.close", lambda _: None)
        write(f"{lake}/link/t", table_format, 0)
        write(f"{lake}/link/t", table_format, 1)
    write(f"{lake}/link/t", table_format, 1)
    maintain(lake_options.parse({"table": f"{lake}/link/t"}), expire_after_ms=0)
    assert ids(f"{lake}/real/t", table_format) == [0, 1, 2, 10, 11, 12]


def test_an_iceberg_table_keeps_the_name_that_it_was_given(lake: Path) -> None:
    (lake / "orders").symlink_to(lake / "real")
    write(f"{lake}/orders", "iceberg", 0)
    write(f"{lake}/real", "iceberg", 1)
    assert len(tables.rows("iceberg", lake / "orders")) == 6


def test_delta_files_of_others_whose_folders_are_escaped(lake: Path) -> None:
    from deltalake import DeltaTable, write_deltalake

    table = f"{lake}/with space"
    for n in range(3):
        rows = pa.table({"id": pa.array([n], pa.int64()), "name": ["a b/ä"]})
        write_deltalake(table, rows, mode="append", partition_by=["name"])
    maintain(lake_options.parse({"table": table}), expire_after_ms=None)
    assert ids(table, "delta") == [0, 1, 2]
    assert len(DeltaTable(table).file_uris()) == 1


def test_delta_files_that_deltalake_would_call_otherwise_stay_as_they_are(lake: Path) -> None:
    """Its commit would take nothing away, and all rows were there twice."""
    from deltalake import write_deltalake

    table = lake / "t"
    for n in range(2):
        rows = pa.table({"id": pa.array([n], pa.int64()), "name": ["a"]})
        write_deltalake(str(table), rows, mode="append", partition_by=["name"])
    (table / "name=a").rename(table / "name=ä")
    for entry in (table / "_delta_log").glob("*.json"):
        entry.write_text(entry.read_text().replace("name=a/", "name=ä/"))
    done = maintain(lake_options.parse({"table": str(table)}), expire_after_ms=None)
    assert done.rewritten_files == 0
    assert ids(str(table), "delta") == [0, 1]


def test_files_of_a_batch_that_are_not_recognised_stay(tmp_path: Path) -> None:
    """Whatever makes a table deny its own files, it must not cost any."""
    removed: list[str] = []
    for batch, name in ((3, "committed"), (4, "other"), (9, "failed")):
        Ledger(tmp_path, Attempt("q", batch, name)).note(name)
    Ledger(tmp_path, Attempt("q", 4, "again")).note("again")
    sweeper = Sweeper(tmp_path, removed.append, lambda paths: named(paths, ["x/other"]))
    sweeper.sweep("q", 4, [], 0)
    assert sorted(removed) == ["again", "failed"]
    Ledger(tmp_path, Attempt("q", 3, "late")).note("late")
    sweeper.sweep("q", 4, [], 0, lost=["late"])
    assert sorted(removed) == ["again", "failed", "late"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "spelling", ["file:{}", "file://{}", "{}/", "{}/../t", "//{}", "file:{}/../t/"]
)
def test_a_folder_has_many_spellings(tmp_path: Path, spelling: str) -> None:
    assert local_folder(spelling.format(tmp_path / "t")) == tmp_path / "t"


@pytest.mark.parametrize("store", ["s3://lake/t", "dbfs:/lake/t", "hdfs:/lake/t", "abfss://a@b/t"])
def test_stores_are_refused(store: str) -> None:
    with pytest.raises(TableError, match="only folders are written to"):
        local_folder(store)


def test_merging_refuses_what_deltalake_would_look_for_elsewhere(tmp_path: Path) -> None:
    options: dict[str, Any] = {"table": f"{tmp_path}/lit%20eral"}
    with pytest.raises(TableError, match="with %20 in its name"):
        UpsertTable(lake_options.parse(options), ["id"], marks_deletes=False)
