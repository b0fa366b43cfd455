"""The kind `table`: new columns, partitions by expressions, dead letters of the same batch."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from runnel.pipelines import backfilling, dead_letters, dlq, upkeep
from runnel.pipelines.home import Home
from runnel.pipelines.spec import Transform
from runnel.spark.lake.kept_files import read_all
from runnel.spark.lake.lake_options import LakeOptions
from runnel.spark.lake.lake_table import open_table
from tests.spark.conftest import MakeTopic
from tests.support.pipeline_runs import run_once, spec_of
from tests.support.process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVOLVING = """
name: orders
from: {topic: TOPIC}
decode: {format: json, schema: "id BIGINT"}
to: {table: lake/orders, partition_by: [day(timestamp), shop]}
options: {evolve: true}
"""
AGAIN = """
name: again
from: {topic: TOPIC, start: '{"TOPIC": {"0": 6}}'}
decode: {format: json, schema: "id BIGINT"}
transform: {sql: "select id, topic, partition, `offset` from input"}
to: {table: lake/again, partition_by: [partition]}
"""


def rows(options: LakeOptions) -> list[dict[str, Any]]:
    kept = open_table(options).kept()
    assert kept is not None, "there is no table"
    found: list[dict[str, Any]] = read_all(kept).to_pylist()
    return found


def send(producer: Producer, topic: str, *values: "dict[str, Any] | bytes") -> None:
    for value in values:
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        producer.produce(topic, raw, b"key", timestamp=1_763_251_199_000, headers={"h": b"1"})
    producer.flush()


def test_fields_become_columns_and_what_does_not_fit_is_put_aside(
    spark: "SparkSession",
    broker: BrokerProcess,
    producer: Producer,
    make_topic: MakeTopic,
    tmp_path: Path,
) -> None:
    topic = make_topic("orders")
    spec = spec_of(EVOLVING.replace("TOPIC", topic), tmp_path, broker.bootstrap)
    send(producer, topic, {"id": 1, "shop": "a"}, {"id": "seven", "shop": "a"}, b"{bad")
    assert "new columns: shop (string)" in run_once(spark, spec, tmp_path / "home")
    more = {"id": 2, "shop": None, "who": {"name": "ann"}, "topic": "of the value"}
    send(producer, topic, more, {"id": 3, "shop": "b", "who": {"age": 7}})
    send(producer, topic, {"id": 4, "shop": "b", "who": {"name": "bob"}, "price": 1.5})
    (told,) = run_once(spark, spec, tmp_path / "home")
    assert "price (double)" in told and "who (struct<name:string,age:bigint>)" in told
    found = {row["id"]: row for row in rows(upkeep.lake(spec))}
    assert sorted(found) == [1, 2, 3, 4]
    assert found[2]["who"] == {"name": "ann", "age": None}
    assert found[4]["price"] == 1.5 and found[1]["price"] is None
    assert (found[2]["topic"], found[2]["value_topic"]) == (topic, "of the value")
    assert {str(row["timestamp_day"]) for row in found.values()} == {"2025-11-15"}
    assert "headers" not in found[1]
    letters = sorted(rows(dead_letters.lake(spec)), key=lambda row: row["offset"])
    assert [(each["offset"], each["value"]) for each in letters] == [
        (1, b'{"id": "seven", "shop": "a"}'),
        (2, b"{bad"),
    ]
    assert "id" in letters[0]["error"] and "not JSON" in letters[1]["error"]
    assert letters[0]["key"] == b"key" and letters[0]["headers"] == [{"key": "h", "value": b"1"}]


def test_a_backfill_adds_what_is_missing_and_dead_letters_are_tried_again(
    spark: "SparkSession",
    broker: BrokerProcess,
    producer: Producer,
    make_topic: MakeTopic,
    tmp_path: Path,
) -> None:
    topic = make_topic("again")
    spec = spec_of(AGAIN.replace("TOPIC", topic), tmp_path, broker.bootstrap)
    home = Home(tmp_path / "home")
    send(producer, topic, *({"id": n} if n not in (2, 8) else {"id": f"{n}x"} for n in range(10)))
    run_once(spark, spec, home.folder)
    assert sorted(row["offset"] for row in rows(upkeep.lake(spec))) == [6, 7, 9]
    send(producer, topic, {"id": 10})  # the stream has yet to read it
    backfilling.check(spec)
    begun = backfilling.planned(spec, home, "--from -7d", 0, None, chunk_records=4)
    assert begun.records == 10
    next(backfilling.run(spec, home, begun, spark, print))  # it is killed after the first chunk
    resumed = backfilling.planned(spec, home, "--from -7d", 1, None, chunk_records=4)
    assert (resumed.id, resumed.done) == (begun.id, 1)
    chunks = list(backfilling.run(spec, home, resumed, spark, print))
    assert [(chunk.records, chunk.written) for chunk in chunks] == [(4, 2), (2, 0)]
    places = [row["offset"] for row in rows(upkeep.lake(spec))]
    assert sorted(places) == [0, 1, 3, 4, 5, 6, 7, 9]
    assert sorted(row["offset"] for row in rows(dead_letters.lake(spec))) == [2, 8]

    tried = dlq.replay(spec, spark, home.folder, print)
    assert (tried.passed, tried.failed) == (0, 2)
    mended = replace(
        spec,
        decode=replace(spec.decode, schema="id STRING"),
        transform=Transform(
            sql="select cast(replace(id, 'x', '') as bigint) as id, topic, partition, `offset`"
            " from input where `offset` != 8"
        ),
    )
    assert dlq.replay(mended, spark, home.folder, print).passed == 2
    found = {row["offset"]: row["id"] for row in rows(upkeep.lake(spec))}
    assert found[2] == 2 and len(found) == 9
    assert rows(dead_letters.lake(spec)) == []


def test_one_column_for_the_value_and_fields_named_as_other_columns(
    spark: "SparkSession",
    broker: BrokerProcess,
    producer: Producer,
    make_topic: MakeTopic,
    tmp_path: Path,
) -> None:
    topic = make_topic("shapes")
    send(producer, topic, {"id": 1, "Timestamp": "t", "_raw": 7, "_error": "e"}, b"\xff")

    def run(name: str, decode: str, more: str = "") -> tuple[list[dict[str, Any]], list[str]]:
        text = f"name: {name}\nfrom: {{topic: {topic}}}\ndecode: {{{decode}}}\n{more}"
        spec = spec_of(text + f"to: {{table: lake/{name}}}\n", tmp_path, broker.bootstrap)
        told = run_once(spark, spec, tmp_path / name)
        (letter,) = rows(dead_letters.lake(spec))
        assert letter["value"] == b"\xff"
        return rows(upkeep.lake(spec)), told

    (text,), _ = run("text", "format: string")
    assert json.loads(text["value"])["id"] == 1
    (nested,), _ = run("nested", 'format: json, schema: "id BIGINT", nested: true')
    assert nested["value"] == {"id": 1}
    (grown,), told = run("grown", "format: json", "options: {evolve: true}\n")
    assert (grown["value__raw"], grown["value__error"]) == (7, "e")
    assert "field 'Timestamp' is left out: timestamp is a column already" in told
