"""What a backfill is going to read, planned without Spark."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from deltalake import write_deltalake

from runnel.pipelines import backfilling
from runnel.pipelines.home import Home
from runnel.pipelines.spec import read
from runnel.testing import RunnelBroker

FILE = """\
from: {topic: orders}
decode: {format: json}
to: {table: lake/orders}
options: {evolve: true}
"""


def test_columns_that_are_told_from_values_are_no_obstacle(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    for folder in ("offsets", "commits"):
        (home.checkpoint / folder).mkdir(parents=True)
        (home.checkpoint / folder / "0").write_text(f"v1\n{{}}\n{json.dumps({'orders': {'0': 2}})}")
    with RunnelBroker() as broker:
        broker.create_topic("orders")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        for number in range(3):
            producer.produce("orders", json.dumps({"id": number}))
        assert producer.flush(30) == 0
        environ = {"RUNNEL_BOOTSTRAP_SERVER": broker.bootstrap_servers}
        spec = read(FILE, tmp_path / "orders.yml", environ)
        plan = backfilling.planned(spec, home, "--from -7d", 0, None, 500)
    assert plan.chunks == [{"orders": {"0": [0, 2]}}]  # the stream has yet to read the third


class Spark:
    """Hands on what it is given: what a chunk writes is up to the test."""

    def createDataFrame(self, known: pa.Table) -> pa.Table:  # Spark's
        return known


class Filtered:
    """A pipeline whose transform leaves out the odd ones, and makes two rows of each other."""

    evolves = False

    def __init__(self, *_: object) -> None: ...

    def write(self, rows: "list[int]", _query: str, _batch: int) -> None:
        put(Path.cwd() / "lake/orders", [at for at in rows if at % 2 == 0] * 2)


class Records(list[int]):
    def join(self, known: pa.Table, on: list[str], how: str) -> list[int]:
        assert (on, how) == (["topic", "partition", "offset"], "left_anti")
        return [at for at in self if at not in known["offset"].to_pylist()]


def put(folder: Path, offsets: list[int]) -> None:
    count = len(offsets)
    columns = {
        "topic": pa.array(["orders"] * count, pa.string()),
        "partition": pa.array([0] * count, pa.int32()),
        "offset": pa.array(offsets, pa.int64()),
    }
    write_deltalake(folder, pa.table(columns), mode="append")


def test_what_a_transform_leaves_out_was_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("runnel.pipelines.table_batches.TableBatches", Filtered)
    monkeypatch.setattr(backfilling, "_read", lambda *_: Records(range(10)))
    spec = read(FILE, tmp_path / "orders.yml", {})
    put(tmp_path / "lake/orders", [0, 2, 11])
    home = Home(tmp_path / "home")
    plan = backfilling.Plan("id", "", [{"orders": {"0": [0, 10]}}])
    spark: Any = Spark()
    (chunk,) = backfilling.run(spec, home, plan, spark, print)
    assert (chunk.records, chunk.written) == (10, 3)  # 4, 6 and 8


def test_a_pipeline_that_reads_no_topic_has_nowhere_to_go_back_to(tmp_path: Path) -> None:
    text = "name: lags\nkind: lag-history\nto: {table: lake/lags}\n"
    with pytest.raises(
        backfilling.BackfillError, match="lag-history, which reads no topic"
    ) as said:
        backfilling.check(read(text, tmp_path / "lags.yml", {}))
    assert "reset" not in str(said.value)
