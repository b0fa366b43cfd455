"""The kind `cdc`: the rows that a database has, out of changes that come again, late and broken."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from runnel.pipelines import dead_letters, dlq, upkeep
from runnel.spark.lake.kept_files import read_all
from runnel.spark.lake.lake_table import open_table
from tests.spark.conftest import MakeTopic
from tests.support.pipeline_runs import run_once, spec_of
from tests.support.process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CUSTOMERS = """
name: customers
kind: cdc
from: {topic: TOPIC}
to: {table: lake/customers}
"""
DECLARED = CUSTOMERS + 'decode: {format: json, schema: "id BIGINT, n BIGINT"}\n'


def database(seed: int, count: int) -> tuple[list[tuple[bytes, bytes | None]], dict[int, str]]:
    """Changes of ten rows as Debezium sends them, and the rows that there are in the end."""
    chance = random.Random(seed)
    rows: dict[int, str] = {}
    records: list[tuple[bytes, bytes | None]] = []
    for lsn in range(count):
        id_ = chance.randrange(10)
        key = json.dumps({"schema": {}, "payload": {"id": id_}}).encode()
        before = {"id": id_, "name": rows[id_]} if id_ in rows else None
        source = {"lsn": lsn, "ts_ms": lsn // 3}
        envelope: dict[str, Any] = {"before": before, "after": None, "source": source, "op": "d"}
        if before is not None and chance.random() < 0.4:
            del rows[id_]
            records += [(key, _text(envelope)), (key, None)]
            continue
        rows[id_] = f"name {lsn}"
        envelope["after"] = {"id": id_, "name": rows[id_], "note": None}
        envelope["op"] = "u" if before else chance.choice("cr")
        records.append((key, json.dumps({"schema": {}, "payload": envelope}).encode()))
    return records, rows


def _text(value: object) -> bytes:
    return json.dumps(value).encode()


def test_a_table_has_the_rows_of_the_database(
    spark: "SparkSession",
    broker: BrokerProcess,
    producer: Producer,
    make_topic: MakeTopic,
    tmp_path: Path,
) -> None:
    topic = make_topic("customers")
    spec = spec_of(CUSTOMERS.replace("TOPIC", topic), tmp_path, broker.bootstrap)
    records, rows = database(seed=7, count=60)
    half = len(records) // 2
    # A connector that crashed sends what it had sent before once more.
    sent = [*records[:half], (b"x", b"{bad"), *records[half // 2 :], (b"t", _text({"op": "t"}))]
    told: list[str] = []
    for part in (sent[:half], [*sent[half:], *records[-20:]]):
        for key, value in part:
            producer.produce(topic, value, key)
        producer.flush()
        told += run_once(spark, spec, tmp_path / "home")
    kept = open_table(upkeep.lake(spec)).kept()
    assert kept is not None
    found = {row["id"]: row["name"] for row in read_all(kept).to_pylist()}
    assert found == rows
    assert "the key of a row is id" in told
    assert "left out: 1 records of truncate, which change no row here" in told
    letters = open_table(dead_letters.lake(spec)).kept()
    assert letters is not None
    (letter,) = read_all(letters).to_pylist()
    assert (letter["key"], letter["value"]) == (b"x", b"{bad")
    assert "not JSON" in letter["error"]


def test_a_change_that_does_not_fit_is_tried_again_as_the_record_that_it_was(
    spark: "SparkSession",
    broker: BrokerProcess,
    producer: Producer,
    make_topic: MakeTopic,
    tmp_path: Path,
) -> None:
    topic = make_topic("misfits", partitions=2)
    spec = spec_of(DECLARED.replace("TOPIC", topic), tmp_path, broker.bootstrap)
    for partition, numbers in enumerate(([1, "x"], [2, "y"])):
        for n in numbers:
            row = {"id": partition, "n": n}
            key, value = _text({"id": partition}), _text({"op": "c", "after": row})
            producer.produce(topic, value, key, partition=partition, headers={"h": b"1"})
    producer.flush()
    told = run_once(spark, spec, tmp_path / "home")
    assert "batch 0: 2 dead letters" in told

    def numbers_of() -> dict[int, Any]:
        kept = open_table(upkeep.lake(spec)).kept()
        assert kept is not None
        return {row["id"]: row["n"] for row in read_all(kept).to_pylist()}

    assert numbers_of() == {0: 1, 1: 2}  # the good ones, which came before
    letters = {letter["partition"]: letter for letter in dlq.letters(spec)}
    assert letters[1]["key"] == b'{"id": 1}' and letters[1]["offset"] == 1
    assert letters[1]["value"] == _text({"op": "c", "after": {"id": 1, "n": "y"}})
    assert letters[1]["headers"] == [{"key": "h", "value": b"1"}]
    assert letters[1]["timestamp"].year > 2000
    notes = tmp_path / "home" / "notes"
    assert dlq.replay(spec, spark, notes, told.append)[:2] == (0, 2)
    mended = replace(spec, decode=replace(spec.decode, schema="id BIGINT"))
    assert dlq.replay(mended, spark, notes, told.append)[:2] == (2, 0)
    assert dlq.letters(spec) == [] and numbers_of() == {0: 1, 1: 2}
