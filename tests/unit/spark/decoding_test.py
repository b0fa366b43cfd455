"""Decoded columns in the rows of a scan: names, order, and what becomes of bad records."""

from collections.abc import Iterator
from typing import Any

import pytest

from runnel.arrow import connections
from runnel.arrow.decoders import BadRecordError, decoded_fields
from runnel.arrow.decoding import DecodeOptionError, Decoding
from runnel.arrow.losses import ReadError
from runnel.arrow.ranges import COLUMNS, Range
from runnel.arrow.rows import arrow_schema, spark_schema
from runnel.arrow.scan import read
from runnel.native.columns import Record
from runnel.testing import RunnelBroker
from tests.support.spark_topics import (
    T0_MS,
    make_topic,
    rows_of,
    scan_of,
    send,
    send_in_transaction,
)

VALUES = [b'{"id":1,"name":"a"}', b"broken", None, b'{"id":"x","name":"b"}', b'{"id":4}']


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with RunnelBroker() as broker:
        make_topic(broker.bootstrap_servers, "orders")
        records = [Record(b"k%d" % at, value, T0_MS + at) for at, value in enumerate(VALUES)]
        send(broker.bootstrap_servers, "orders", records)
        yield broker.bootstrap_servers
        connections.close_all()


def orders(servers: str, columns: Any, **settings: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    decode = Decoding(**{"kind": "json", "schema": "id INT, name STRING", **settings})
    scan = scan_of(servers, columns, decode=decode)
    for batch in read(scan, Range("orders", 0, 0, len(VALUES))):
        assert batch.schema.equals(arrow_schema(columns, decode))
    return rows_of(scan, Range("orders", 0, 0, len(VALUES)))


def test_columns_stand_in_the_place_of_the_value() -> None:
    decode = Decoding("json", "id INT, name STRING", bad_records="null")
    names = spark_schema(COLUMNS[:-1], decode).names
    assert names[:5] == ["key", "id", "name", "_error", "_raw"]
    assert spark_schema(["name", "offset"], decode).names == ["name", "offset"]
    assert spark_schema(["name", "value"], decode).names == ["name", "id", "_error", "_raw"]


def test_a_nested_value_is_one_column() -> None:
    decode = Decoding("json", "key INT", nested=True)
    schema = spark_schema(["key", "value"], decode)
    assert schema.simpleString() == "struct<key:binary,value:struct<key:int>>"


def test_a_field_with_the_name_of_a_column_is_refused() -> None:
    with pytest.raises(DecodeOptionError, match=r"timestamp.*nestValue"):
        decoded_fields(Decoding("json", "id INT, timestamp TIMESTAMP"))
    with pytest.raises(DecodeOptionError, match=r"field Timestamp.*nestValue"):
        decoded_fields(Decoding("json", "id INT, Timestamp STRING"))
    decoded_fields(Decoding("json", "_raw INT"))
    with pytest.raises(DecodeOptionError, match=r"field _raw.*nestValue"):
        decoded_fields(Decoding("json", "_raw INT", bad_records="null"))


def test_bad_records_as_null(servers: str) -> None:
    rows = orders(servers, ["offset", "value"], bad_records="null")
    assert [(row["id"], row["name"]) for row in rows] == [
        *((1, "a"), (None, None), (None, None)),
        *((None, "b"), (4, None)),
    ]
    assert [row["_raw"] for row in rows] == [None, b"broken", None, VALUES[3], None]
    assert rows[1]["_error"].startswith("not JSON") and rows[3]["_error"].startswith("id is")


def test_a_bad_record_fails_with_its_place(servers: str) -> None:
    with pytest.raises(BadRecordError, match=r"orders-0 at offset 1: .*badRecords=null"):
        orders(servers, ["id"])


def test_only_wanted_fields_are_looked_at(servers: str) -> None:
    rows = orders(servers, ["offset", "name", "_error"], bad_records="null")
    assert list(rows[3]) == ["offset", "name", "_error"]
    assert [row["name"] for row in rows] == ["a", None, None, "b", None]
    assert [row["_error"] is None for row in rows] == [True, False, True, True, True]


def test_nested_rows(servers: str) -> None:
    rows = orders(servers, ["value"], bad_records="null", nested=True)
    assert rows[0] == {"value": {"id": 1, "name": "a"}, "_error": None, "_raw": None}
    assert rows[2]["value"] is None


def test_dead_letters_have_their_reason_and_are_left_out(servers: str) -> None:
    make_topic(servers, "bad")
    decode = Decoding("json", "id INT", bad_records="dlq", dead_letter_topic="bad")
    scan = scan_of(servers, ["offset", "value"], decode=decode)
    rows = rows_of(scan, Range("orders", 0, 0, len(VALUES)))
    assert rows == [{"offset": 0, "id": 1}, {"offset": 2, "id": None}, {"offset": 4, "id": 4}]
    first, second = rows_of(scan_of(servers, COLUMNS), Range("bad", 0, 0, 2))
    assert (first["key"], first["value"]) == (b"k1", b"broken")
    headers = {pair["key"]: pair["value"].decode() for pair in second["headers"]}
    assert (headers["dlq.topic"], headers["dlq.partition"]) == ("orders", "0")
    assert (headers["dlq.offset"], headers["dlq.reason"]) == ("3", 'id is "x", not int')


def test_a_dead_letter_keeps_the_headers_of_its_record(servers: str) -> None:
    for topic in ("with-headers", "bad-with-headers"):
        make_topic(servers, topic)
    own = [("trace", b"7"), ("none", None), ("dlq.replays", b"2"), ("dlq.reason", b"the last one")]
    send(servers, "with-headers", [Record(b"k", b"broken", T0_MS, own)])
    decode = Decoding("json", "id INT", bad_records="dlq", dead_letter_topic="bad-with-headers")
    scan = scan_of(servers, ["offset", "value"], decode=decode)
    assert rows_of(scan, Range("with-headers", 0, 0, 1)) == []
    (row,) = rows_of(scan_of(servers, COLUMNS), Range("bad-with-headers", 0, 0, 1))
    headers = {pair["key"]: pair["value"] for pair in row["headers"]}
    assert len(headers) == len(row["headers"])
    assert (headers["trace"], headers["none"], headers["dlq.replays"]) == (b"7", None, b"2")
    assert headers["dlq.reason"].startswith(b"not JSON")


def test_dead_letters_without_a_topic_to_go_to(servers: str) -> None:
    decode = Decoding("json", "id INT", bad_records="dlq", dead_letter_topic="not a topic")
    scan = scan_of(servers, ["value"], decode=decode, poll_timeout_ms=1000)
    with pytest.raises(ReadError, match=r"orders-0 cannot be sent to not a topic"):
        rows_of(scan, Range("orders", 0, 0, len(VALUES)))


def test_text(servers: str) -> None:
    make_topic(servers, "text")
    send(servers, "text", [Record(None, value, T0_MS) for value in (b"caf\xc3\xa9", None, b"\xff")])
    rows = rows_of(
        scan_of(servers, ["value"], decode=Decoding("string", bad_records="null")),
        Range("text", 0, 0, 3),
    )
    assert [row["value"] for row in rows] == ["café", None, "\N{REPLACEMENT CHARACTER}"]
    assert [row["_error"] is None for row in rows] == [True, True, False]


def test_aborted_records_are_never_bad(servers: str) -> None:
    make_topic(servers, "tx")
    send_in_transaction(servers, "tx", [b"broken"], commit=False)
    send_in_transaction(servers, "tx", [b'{"id":1}'], commit=True)
    decode = Decoding("json", "id INT")
    scan = scan_of(servers, ["value"], decode=decode, read_committed=True)
    assert rows_of(scan, Range("tx", 0, 0, 4)) == [{"id": 1}]
