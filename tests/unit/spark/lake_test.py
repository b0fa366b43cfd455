"""Tables by the writers that Spark would call, without Spark: each batch once, nothing left."""

import datetime
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from runnel.spark import tasks
from runnel.spark.lake import lake_options, lake_table
from runnel.spark.lake.lake_options import TableError
from runnel.spark.lake.maintenance import maintain
from runnel.spark.lake.sink import BatchLakeWriter, RunnelLake, Written
from tests.support import tables

SCHEMA = StructType(
    [
        StructField("id", LongType(), nullable=False),
        StructField("name", StringType()),
        StructField("day", DateType()),
        StructField("at", TimestampType()),
    ]
)
ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "Europe/Paris")),
    ]
)
AT = datetime.datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=datetime.UTC)


@pytest.fixture(params=tables.FORMATS)
def table_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def some(first: int, count: int, **columns: list[Any]) -> pa.RecordBatch:
    data: dict[str, list[Any]] = {
        "id": list(range(first, first + count)),
        "name": [None if n % 5 == 0 else f"name {n % 3}" for n in range(count)],
        "day": [datetime.date(2026, 11, 15 + n % 2) for n in range(count)],
        "at": [AT] * count,
        **columns,
    }
    return pa.record_batch(data, schema=ARROW)


def writer(
    folder: Path, format_: str, overwrite: bool = False, schema: StructType = SCHEMA, **more: str
) -> BatchLakeWriter:
    options = {"table": str(folder), "tableFormat": format_, **more}
    return RunnelLake(options).writer(schema, overwrite)


def write(
    folder: Path, format_: str, *tasks: list[pa.RecordBatch], overwrite: bool = False, **more: str
) -> None:
    lake = writer(folder, format_, overwrite, SCHEMA, **more)
    lake.commit([lake.write(iter(batches)) for batches in tasks])


def ids(format_: str, folder: Path) -> list[int]:
    return sorted(row["id"] for row in tables.rows(format_, folder))


def test_rows_come_back_as_they_were(tmp_path: Path, table_format: str) -> None:
    write(tmp_path / "t", table_format, [some(0, 10), some(10, 5)], [some(20, 3)], [])
    found = sorted(tables.rows(table_format, tmp_path / "t"), key=lambda row: row["id"])
    wanted = [row for batch in (some(0, 10), some(10, 5), some(20, 3)) for row in batch.to_pylist()]
    assert found == wanted
    assert tables.ledgers(tmp_path / "t") == []


def test_partitions_keep_odd_values_apart(tmp_path: Path, table_format: str) -> None:
    odd = ["a/b", "a b", "ä=%", "__", None, "c:d", "50%", "'\""]
    batch = some(0, 8, name=odd)
    write(tmp_path / "t", table_format, [batch], [batch], partitionBy="name,day")
    found = tables.rows(table_format, tmp_path / "t")
    count = {name: sum(row["name"] == name for row in found) for name in odd}
    if table_format == "parquet":  # the other readers decode folders' names their own way
        assert len(found) == 16
    else:
        assert count == dict.fromkeys(odd, 2)
    assert {str(row["day"]) for row in found} == {"2026-11-15", "2026-11-16"}


def test_a_repeated_batch_counts_once(tmp_path: Path, table_format: str) -> None:
    for batch_id in (0, 1, 1, 0, 2):
        more: dict[str, Any] = {"queryId": "orders / raw", "batchId": str(batch_id)}
        write(tmp_path / "t", table_format, [some(batch_id * 10, 10)], [], **more)
    assert ids(table_format, tmp_path / "t") == list(range(30))
    assert len(tables.data_files(tmp_path / "t")) == 3, "the files of repeated batches stay"
    assert tables.ledgers(tmp_path / "t") == []


def test_two_queries_share_a_table(tmp_path: Path, table_format: str) -> None:
    for first, query in ((0, "a"), (10, "b"), (0, "a")):
        write(tmp_path / "t", table_format, [some(first, 10)], queryId=query, batchId="0")
    assert ids(table_format, tmp_path / "t") == list(range(20))


def test_overwriting_replaces_all_in_one_commit(tmp_path: Path, table_format: str) -> None:
    for n in range(12):
        write(tmp_path / "t", table_format, [some(n, 1)])
    write(tmp_path / "t", table_format, [some(100, 2)], overwrite=True)
    assert ids(table_format, tmp_path / "t") == [100, 101]
    write(tmp_path / "t", table_format, [some(200, 1)])
    assert ids(table_format, tmp_path / "t") == [100, 101, 200]
    assert tables.ledgers(tmp_path / "t") == []


def test_what_killed_tasks_left_goes_with_the_next_commit(
    tmp_path: Path, table_format: str
) -> None:
    more: dict[str, Any] = {"queryId": "q", "batchId": "0"}
    killed = writer(tmp_path / "t", table_format, **more)
    killed.write(iter([some(0, 10)]))  # its message never comes
    write(tmp_path / "t", table_format, [some(0, 10)], **more)
    assert ids(table_format, tmp_path / "t") == list(range(10))
    assert len(tables.data_files(tmp_path / "t")) == 1
    assert tables.ledgers(tmp_path / "t") == []


def test_a_driver_that_died_after_its_commit_loses_nothing(
    tmp_path: Path, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger of what was committed is still there and must not be taken for an orphan's."""
    more: dict[str, Any] = {"queryId": "q", "batchId": "0"}
    lake = writer(tmp_path / "t", table_format, **more)
    message = lake.write(iter([some(0, 10)]))
    with monkeypatch.context() as patch:
        patch.setattr("runnel.spark.lake.sink.Ledger.close", lambda _: None)
        lake.commit([message])
    assert tables.ledgers(tmp_path / "t")
    write(tmp_path / "t", table_format, [some(0, 10)], **more)
    lake.abort([message])
    assert ids(table_format, tmp_path / "t") == list(range(10))
    assert tables.ledgers(tmp_path / "t") == []
    assert len(tables.data_files(tmp_path / "t")) == 1


def test_a_failing_task_leaves_nothing(tmp_path: Path, table_format: str) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield some(0, 10)
        raise RuntimeError("a row that cannot be computed")

    lake = writer(tmp_path / "t", table_format)
    with pytest.raises(RuntimeError, match="cannot be computed"):
        lake.write(broken())
    lake.abort([None])
    assert tables.data_files(tmp_path / "t") == set()
    assert tables.ledgers(tmp_path / "t") == []


def test_files_of_other_queries_are_left_until_they_are_old(
    tmp_path: Path, table_format: str
) -> None:
    writer(tmp_path / "t", table_format, queryId="gone", batchId="7").write(iter([some(0, 5)]))
    write(tmp_path / "t", table_format, [some(10, 5)])
    assert len(tables.data_files(tmp_path / "t")) == 2
    write(tmp_path / "t", table_format, [some(20, 5)], orphanAge="0s")
    assert len(tables.data_files(tmp_path / "t")) == 2
    assert ids(table_format, tmp_path / "t") == [*range(10, 15), *range(20, 25)]


def test_large_batches_become_several_files(tmp_path: Path, table_format: str) -> None:
    lake = writer(tmp_path / "t", table_format, targetFileSize="1k", compression="none")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runnel.spark.lake.part_files.ROW_GROUP_BYTES", 4_000)
        message = lake.write(iter([some(n * 100, 100) for n in range(10)]))
    assert len(message.files) >= 5
    lake.commit([message])
    assert ids(table_format, tmp_path / "t") == list(range(1_000))


def test_a_driver_that_seemed_dead_cannot_commit_after_its_successor(
    tmp_path: Path, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has looked and seen that the batch is not there; locks do not work on this mount."""
    write(tmp_path / "t", table_format, [some(100, 1)])
    more: dict[str, Any] = {"queryId": "q", "batchId": "0"}
    dead, successor = (writer(tmp_path / "t", table_format, **more) for _ in range(2))
    messages: list[Written] = [lake.write(iter([some(0, 10)])) for lake in (dead, successor)]
    looked = lake_table.open_table(lake_options.parse({"table": str(tmp_path / "t")}))

    monkeypatch.setattr("runnel.spark.lake.sink.exclusive", lambda _: nullcontext())
    successor.commit([messages[1]])
    monkeypatch.setattr("runnel.spark.lake.sink.open_table", lambda _: looked)
    with suppress(Exception):  # Parquet sees the batch, the others find out by the conflict
        dead.commit([messages[0]])
    assert ids(table_format, tmp_path / "t") == [*range(10), 100]


def test_files_that_somebody_took_away_are_not_committed(tmp_path: Path, table_format: str) -> None:
    """As another run of the query does when its batch fails: it takes them for its own."""
    more: dict[str, Any] = {"queryId": "q", "batchId": "0"}
    lake, twin = (writer(tmp_path / "t", table_format, **more) for _ in range(2))
    message = lake.write(iter([some(0, 10)]))
    twin.abort([None])
    with pytest.raises(TableError, match=r"1 of 1 files are gone .*runs twice"):
        lake.commit([message])
    write(tmp_path / "t", table_format, [some(0, 10)], **more)
    assert ids(table_format, tmp_path / "t") == list(range(10))


def test_two_drivers_at_the_same_time_commit_a_batch_once(
    tmp_path: Path, table_format: str
) -> None:
    more: dict[str, Any] = {"queryId": "q", "batchId": "0"}
    rivals = [writer(tmp_path / "t", table_format, **more) for _ in range(4)]
    messages = [lake.write(iter([some(0, 10)])) for lake in rivals]
    with ThreadPoolExecutor(len(rivals)) as pool:
        for done in [pool.submit(r.commit, [m]) for r, m in zip(rivals, messages, strict=True)]:
            done.result()
    assert ids(table_format, tmp_path / "t") == list(range(10))
    assert len(tables.data_files(tmp_path / "t")) == 1


def test_new_columns_are_added_when_asked_for(tmp_path: Path, table_format: str) -> None:
    write(tmp_path / "t", table_format, [some(0, 2)])
    wider = StructType([*SCHEMA.fields, StructField("more", IntegerType())])
    with pytest.raises(TableError, match=r"no column more \(int32\); set mergeSchema=true"):
        writer(tmp_path / "t", table_format, schema=wider)
    lake = writer(tmp_path / "t", table_format, schema=wider, mergeSchema="true")
    batch = some(2, 2).append_column("more", pa.array([7, None], pa.int32()))
    lake.commit([lake.write(iter([batch]))])
    write(tmp_path / "t", table_format, [some(4, 1)])
    found = {row["id"]: row.get("more") for row in tables.rows(table_format, tmp_path / "t")}
    assert found.keys() == {0, 1, 2, 3, 4}
    if table_format != "parquet":
        assert found[2] == 7 and found[4] is None


def test_narrower_numbers_are_widened(tmp_path: Path, table_format: str) -> None:
    write(tmp_path / "t", table_format, [some(0, 1)])
    narrow = StructType([StructField("id", IntegerType())])
    lake = writer(tmp_path / "t", table_format, schema=narrow)
    lake.commit([lake.write(iter([pa.record_batch({"id": pa.array([5], pa.int32())})]))])
    assert ids(table_format, tmp_path / "t") == [0, 5]


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (StructField("id", StringType()), "column id is string in the rows but int64 in"),
        (StructField("ID", LongType()), "column ID is called id in"),
    ],
)
def test_what_does_not_fit_is_told_on_the_driver(
    tmp_path: Path, table_format: str, field: StructField, message: str
) -> None:
    write(tmp_path / "t", table_format, [some(0, 1)])
    with pytest.raises(TableError, match=message):
        writer(tmp_path / "t", table_format, schema=StructType([field]))
    with pytest.raises(TableError, match="is partitioned by nothing"):
        writer(tmp_path / "t", table_format, partitionBy="day")


def test_a_folder_that_is_something_else_is_left_alone(tmp_path: Path, table_format: str) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    (folder / "holiday.jpg").touch()
    with pytest.raises(TableError, match=r"but has holiday\.jpg in it"):
        writer(folder, table_format)
    assert [entry.name for entry in folder.iterdir()] == ["holiday.jpg"]
    with pytest.raises(TableError, match="is a file"):
        writer(folder / "holiday.jpg", table_format)


def test_the_folder_says_its_format(tmp_path: Path, table_format: str) -> None:
    write(tmp_path / "t", table_format, [some(0, 1)])
    lake = RunnelLake({"path": str(tmp_path / "t")}).writer(SCHEMA, False)
    lake.commit([lake.write(iter([some(1, 1)]))])
    assert ids(table_format, tmp_path / "t") == [0, 1]
    other = "delta" if table_format == "iceberg" else "iceberg"
    with pytest.raises(TableError, match=f"is a {table_format} table; set tableFormat"):
        writer(tmp_path / "t", other)


def test_times_that_python_has_no_word_for(tmp_path: Path, table_format: str) -> None:
    """Beyond the year 9999; they have no bounds in the table, and others keep theirs."""
    us, days = 1_700_000_000_000_000_000, 4_000_000
    late = pa.record_batch(
        [
            pa.array([1, 2], pa.int64()),
            pa.array(["a", "b"]),
            pa.array([0, days], pa.int32()).cast(pa.date32()),
            pa.array([0, us], pa.int64()).cast(ARROW.field("at").type),
        ],
        schema=ARROW,
    )
    more: dict[str, Any] = {"queryId": "q"}
    for batch_id in (0, 1, 1):
        write(tmp_path / "t", table_format, [late], [some(10, 1)], batchId=str(batch_id), **more)
    maintain(lake_options.parse({"table": str(tmp_path / "t")}), expire_after_ms=0)
    found = tables.read(table_format, tmp_path / "t")
    assert sorted(found["at"].cast(pa.int64()).to_pylist())[-2:] == [us, us]
    assert found["day"].cast(pa.int32()).to_pylist().count(days) == 2
    assert sorted(found["id"].to_pylist()) == [1, 1, 2, 2, 10, 10]
    if table_format == "iceberg":
        table = tables.iceberg(tmp_path / "t")
        assert not [name for name in table.properties if name.startswith("write.")]
        (task,) = table.scan().plan_files()
        ids = {table.schema().find_column_name(n) for n in task.file.lower_bounds}
        assert ids == {"id", "name"} and len(task.file.null_value_counts) == 4


def test_a_new_checkpoint_is_refused_within_foreach_batch(
    tmp_path: Path, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its batches count from 0 again: rows would be dropped as repeated."""

    def write_in(checkpoint: str, batch_id: int, query: str = "q") -> None:
        monkeypatch.setattr(tasks, "this_task", lambda: tasks.Task(query=checkpoint))
        more: dict[str, Any] = {"queryId": query, "batchId": str(batch_id)}
        write(tmp_path / "t", table_format, [some(batch_id * 10, 10)], **more)

    for batch_id in (0, 1, 1):
        write_in("one", batch_id)
    for batch_id in (0, 2):
        with pytest.raises(TableError, match="up to 1, written with another checkpoint"):
            write_in("two", batch_id)
    write_in("one", 2)
    assert ids(table_format, tmp_path / "t") == list(range(30))

    # Earlier versions did not write it down: who goes on is let in, and known from then on.
    for checkpoint, batch_id in (("", 3), ("one", 3), ("one", 4)):
        write_in(checkpoint, batch_id, "before")
    with pytest.raises(TableError, match="up to 4, written with another checkpoint"):
        write_in("two", 5, "before")
    assert ids(table_format, tmp_path / "t") == list(range(50))


def test_nothing_to_write_makes_no_commit(tmp_path: Path, table_format: str) -> None:
    write(tmp_path / "t", table_format, [some(0, 1)])
    before = sorted(path.name for path in (tmp_path / "t").rglob("*"))
    write(tmp_path / "t", table_format, [], [some(0, 0)])
    assert sorted(path.name for path in (tmp_path / "t").rglob("*")) == before


def test_a_first_batch_that_failed_leaves_empty_folders_which_are_no_strangers(
    tmp_path: Path,
) -> None:
    (tmp_path / "day=1/hour=2").mkdir(parents=True)
    (tmp_path / "_runnel").mkdir()
    lake_table.check_folder(tmp_path, "delta")
    (tmp_path / "day=1/hour=2/notes.txt").touch()
    with pytest.raises(TableError, match="is no delta table but has day=1 in it"):
        lake_table.check_folder(tmp_path, "delta")
