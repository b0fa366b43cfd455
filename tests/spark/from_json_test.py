"""`decode=json` means what Spark's `from_json` means: the same rows, and the same ones are bad."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from runnel.arrow.ddl import struct_type
from runnel.arrow.decoding_json import JsonDecoder
from tests.support.process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import MakeTopic

SCHEMA = (
    "b BOOLEAN, y TINYINT, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(6,2), s STRING,"
    " t TIMESTAMP, day DATE, a ARRAY<BIGINT>, o STRUCT<x: INT, y: STRING>, m MAP<STRING, INT>,"
    " raw BINARY"
)
CASES = [
    # sound
    '{"b":true,"y":-128,"i":1,"l":9007199254740993,"f":1.5,"d":0.1,"n":12.5,"s":"x"}',
    '{"t":"2026-01-31T12:00:00Z","day":"2026-01-31","a":[1,null,3],"o":{"x":1},"m":{"k":1}}',
    '{"t":"2026-01-31T12:00:00.123456+02:00"}',
    '{"t":"2026-01-31 12:00:00"}',
    '{"t":"2026-01-31"}',
    '{"t":86400}',
    '{"raw":"aGVsbG8="}',
    "{}",
    '{"unknown":{"deep":[1,2,{"x":null}]}}',
    '{"b":null,"a":null,"o":null,"s":null}',
    ' {"i": 1} ',
    '{"s":"\\u00e9\\n\\"caf\u00e9\\ud83d\\ude00"}',
    '{"d":1,"f":2}',
    '{"d":"NaN","f":"-Infinity"}',
    '{"n":"1.25"}',
    '{"n":3}',
    '{"n":1.005}',
    '{"s":12}',
    '{"s":true}',
    '{"s":{"a":1,"b":[1,"x"]}}',
    '{"s":[1,2]}',
    '{"o":{"x":1,"y":"z","w":0}}',
    '{"i":1,"i":2}',
    # not so
    '{"b":"true","s":"kept"}',
    '{"b":1}',
    '{"i":"12","s":"kept"}',
    '{"i":1.0}',
    '{"i":3000000000}',
    '{"l":9223372036854775808}',
    '{"d":"1.5"}',
    '{"d":true}',
    '{"n":12345.678}',
    '{"n":"x"}',
    '{"t":"yesterday"}',
    '{"day":"31.01.2026"}',
    '{"a":{"x":1}}',
    '{"a":5}',
    '{"o":[1]}',
    '{"o":"x"}',
    '{"m":[1]}',
    '{"i":""}',
    "{",
    '{"i":1',
    "nope",
    "12",
    '"text"',
    "null",
    "",
    "   ",
]
# Where we are stricter: Spark lets pass what follows a whole object, and wraps a byte around.
BAD_HERE = ['{"i":1}{"i":2}', '{"i":1} x', '{"i":1}}', '{"y":128}']


def by_spark(spark: "SparkSession", texts: list[str]) -> list[dict[str, Any] | None]:
    frame = spark.createDataFrame([(at, text) for at, text in enumerate(texts)], "at INT, v STRING")
    parsed = (
        f"from_json(v, '{SCHEMA}, _bad STRING', map('columnNameOfCorruptRecord', '_bad',"
        " 'timeZone', 'UTC')) AS row"
    )
    table = frame.selectExpr("at", parsed).orderBy("at").toArrow()
    found: list[dict[str, Any] | None] = table["row"].to_pylist()
    return found


def by_us(texts: list[str]) -> list[dict[str, Any]]:
    schema = struct_type(SCHEMA)
    values = pa.array([text.encode() for text in texts], pa.binary())
    arrays, bad = JsonDecoder(schema).decode(values)
    rows = pa.RecordBatch.from_arrays(arrays, names=schema.names).to_pylist()
    return [{**row, "_bad": texts[at] if at in bad else None} for at, row in enumerate(rows)]


def test_the_same_rows_as_from_json(spark: "SparkSession") -> None:
    empty = dict.fromkeys([*struct_type(SCHEMA).names, "_bad"])
    differing = []
    for text, theirs, ours in zip(CASES, by_spark(spark, CASES), by_us(CASES), strict=True):
        expected = {**empty, **(theirs or {})}
        if repr(_plain(expected)) != repr(_plain(ours)):
            kept = {name for name in expected if repr(expected[name]) != repr(ours[name])}
            differing.append((text, {n: expected[n] for n in kept}, {n: ours[n] for n in kept}))
    assert differing == []


def test_what_spark_lets_pass_is_bad_here() -> None:
    assert all(row["_bad"] and row["i"] is row["y"] is None for row in by_us(BAD_HERE))


def test_columns_and_bad_records_of_a_topic(
    spark: "SparkSession", broker: BrokerProcess, make_topic: "MakeTopic", producer: Producer
) -> None:
    topic = make_topic("json")
    for value in ('{"id":1,"name":"a"}', "broken", '{"id":3,"name":"c"}'):
        producer.produce(topic, value.encode())
    producer.flush(30)
    read = (
        spark.read.format("runnel")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", topic)
        .option("decode", "json")
        .option("valueSchema", "id BIGINT, name STRING")
    )
    rows = read.option("badRecords", "null").load().orderBy("offset").collect()
    assert [(row.id, row.name, row["_raw"]) for row in rows] == [
        *((1, "a", None), (None, None, b"broken"), (3, "c", None))
    ]
    few = read.option("badRecords", "null").schema("name STRING, offset BIGINT").load()
    assert {tuple(row) for row in few.collect()} == {("a", 0), (None, 1), ("c", 2)}
    with pytest.raises(Exception, match=f"{topic}-0 at offset 1"):
        read.option("badRecords", "fail").load().collect()


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.timestamp() if hasattr(value, "timestamp") else value
        for name, value in sorted(row.items())
    }
