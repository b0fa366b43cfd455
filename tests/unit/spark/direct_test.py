"""Direct mode without Spark: a topic's records become the files of a table."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark.sql.pandas.types import to_arrow_schema

from runnel.arrow import connections
from runnel.arrow.errors import OptionError
from runnel.spark.lake import direct, sink
from runnel.spark.lake.lake_table import Query
from runnel.spark.lake.lake_task import Task
from runnel.testing import RunnelBroker
from tests.support import tables


@pytest.fixture
def servers() -> Iterator[str]:
    with RunnelBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        for n in range(50):
            producer.produce("orders", json.dumps({"id": n, "name": f"n{n}"}).encode())
        producer.flush()
        yield broker.bootstrap_servers
        connections.close_all()


def options(servers: str, table: Path, **more: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": servers,
        "subscribe": "orders",
        "startingOffsets": "earliest",
        "queryId": "q",
        "table": str(table),
        "mode": "direct",
        **more,
    }


def read(servers: str, table: Path, **more: str) -> list[dict[str, Any]]:
    """The rows that Spark would see: one for each file."""
    reader = direct.direct_reader(options(servers, table, **more))
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    found = [
        row
        for partition in reader.partitions(start, end)
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]
    reader.stop()
    return found


def test_decoded_columns_become_those_of_the_table(
    servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "this_task", lambda _: Task(Query("q", "checkpoint"), 0, 0))
    more = {"decode": "json", "valueSchema": "id BIGINT, name STRING", "columns": "value,offset"}
    (file,) = read(servers, tmp_path / "t", **more)
    assert file["row_count"] == 50
    assert json.loads(file["stats"])["maxValues"] == {"id": 49, "name": "n9", "offset": 49}
    assert tables.data_files(tmp_path / "t") == {file["path"]}
    assert len(tables.ledgers(tmp_path / "t")) == 1


def test_columns_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no column ofset; did you mean offset"):
        direct.direct_reader(options("localhost:1", tmp_path / "t", columns="ofset"))


def test_records_that_cannot_be_read_go_to_a_table_of_their_own(
    servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (direct, sink):
        monkeypatch.setattr(module, "this_task", lambda _: Task(Query("q", "checkpoint"), 0, 0))
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    producer.produce("orders", b"oops", b"key", headers={"h": b"1"})
    producer.flush()
    of_table = {"table": str(tmp_path / "t"), "mode": "direct", "queryId": "q"}
    of_table["deadLetterTable"] = str(tmp_path / "t__dlq")
    more = {"decode": "json", "valueSchema": "id BIGINT", "deadLetterTable": f"{tmp_path}/t__dlq"}
    for _ in range(2):  # the second time it is a batch that Spark repeats
        files = read(servers, tmp_path / "t", **more)
        assert sorted((file["is_dead"], file["row_count"]) for file in files) == [
            (False, 50),
            (True, 1),
        ]
        writer = sink.RunnelLake(of_table).streamWriter(direct.FILES, False)
        schema = to_arrow_schema(direct.FILES, timezone="UTC")
        batch = pa.RecordBatch.from_pylist(files, schema)
        writer.commit([writer.write(iter([batch]))], 0)
    rows = tables.rows("delta", tmp_path / "t")
    assert sorted(row["id"] for row in rows) == list(range(50))
    assert "headers" not in rows[0] and "_error" not in rows[0]
    (letter,) = tables.rows("delta", tmp_path / "t__dlq")
    assert (letter["key"], letter["value"], letter["offset"]) == (b"key", b"oops", 50)
    assert letter["headers"] == [{"key": "h", "value": b"1"}]
    assert "not JSON" in letter["error"]
    for folder in (tmp_path / "t", tmp_path / "t__dlq"):
        assert tables.ledgers(folder) == []
        assert len(tables.data_files(folder)) == 1


@pytest.mark.parametrize(
    "decode",
    [
        {"decode": "string"},
        {"decode": "json", "valueSchema": "id BIGINT, name STRING", "nestValue": "true"},
    ],
)
def test_one_column_for_the_value_takes_a_table_of_dead_letters_too(
    servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decode: dict[str, str]
) -> None:
    monkeypatch.setattr(direct, "this_task", lambda _: Task(Query("q", "checkpoint"), 0, 0))
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    producer.produce("orders", b"\xff")
    producer.flush()
    files = read(servers, tmp_path / "t", deadLetterTable=f"{tmp_path}/t__dlq", **decode)
    counts = sorted((file["is_dead"], file["row_count"]) for file in files)
    assert counts == [(False, 50), (True, 1)]
    (good,) = (file for file in files if not file["is_dead"])
    names = pa.ipc.read_schema(pa.py_buffer(good["schema"])).names
    assert "value" in names and not {"_error", "_raw"} & set(names)
