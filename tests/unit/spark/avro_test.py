"""Avro as columns, with a schema given and with a registry's framing."""

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from fastavro import schemaless_writer

from runnel.arrow.decoders import ValueDecoder, decoded_fields, pinned
from runnel.arrow.decoding import DecodeOptionError, Decoding
from runnel.arrow.decoding_avro import avro_struct
from runnel.arrow.registry import RegistryError
from tests.support.registry import registry_of

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    ],
}
UNION = {"name": "u", "type": ["int", "string"]}
OLDER = {**ORDER, "fields": [field for field in ORDER["fields"] if field["name"] != "note"]}
ROW: dict[str, Any] = {
    "id": 7,
    "note": "hi",
    "at": datetime(2026, 1, 31, tzinfo=UTC),
    "price": Decimal("1.50"),
    "tags": ["x"],
    "counts": {"a": 1},
    "kind": "B",
}


def written(schema: dict[str, Any], row: dict[str, Any], schema_id: int | None = None) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, schema, row)
    prefix = b"" if schema_id is None else b"\0" + schema_id.to_bytes(4, "big")
    return prefix + out.getvalue()


def decoded(decode: Decoding, values: list[bytes | None]) -> tuple[list[dict[str, Any]], list[int]]:
    names = [field.name for field in decoded_fields(decode)]
    columns, bad = ValueDecoder(decode, names).decode(pa.array(values, pa.binary()))
    batch = pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)
    batch.validate(full=True)
    return batch.to_pylist(), list(bad)


def test_an_avro_record_is_a_row() -> None:
    rows, bad = decoded(Decoding("avro", json.dumps(ORDER)), [written(ORDER, ROW), None])
    assert rows[0] == {**ROW, "counts": [("a", 1)]}
    assert set(rows[1].values()) == {None}
    assert bad == []


def test_what_is_not_avro_is_bad_and_stays_in_its_place() -> None:
    decode = Decoding("avro", json.dumps(ORDER), bad_records="null")
    good = written(ORDER, ROW)
    rows, bad = decoded(decode, [b"", good[:-3], good, good + b"x", b"\xff" * 20])
    assert bad == [0, 1, 3, 4]
    assert [row["id"] for row in rows] == [None, None, 7, None, None]
    assert [row["_raw"] is None for row in rows] == [False, False, True, False, False]
    assert "not Avro" in rows[0]["_error"]


def test_writers_of_several_versions_through_a_registry() -> None:
    older = {name: value for name, value in ROW.items() if name != "note"}
    with registry_of({1: OLDER, 2: ORDER}, {"orders-value": 2}) as (url, asked):
        decode = pinned(Decoding("avro", registry=url), ["orders"])
        values = [written(OLDER, older, 1), written(ORDER, ROW, 2), written(OLDER, older, 1)]
        rows, bad = decoded(decode, [*values, b"\0\0", b"plain", *values])
        assert [row["note"] for row in rows[:3]] == [None, "hi", None]
        assert bad == [3, 4]
        latest = "/subjects/orders-value/versions/latest"
        assert asked == [latest, "/schemas/ids/1", "/schemas/ids/2"]


def test_a_registry_that_has_not_the_subject_or_is_not_there() -> None:
    with registry_of({}, {}) as (url, _), pytest.raises(RegistryError, match=r"404.*orders-value"):
        pinned(Decoding("avro", registry=url), ["orders"])
    with pytest.raises(RegistryError, match="schemaRegistry") as raised:
        pinned(Decoding("avro", registry="http://me:secret@127.0.0.1:1"), ["orders"])
    assert "secret" not in str(raised.value)


def test_an_id_that_the_registry_does_not_have_is_a_bad_record() -> None:
    """Bytes that begin with a zero by chance: the others are read, and it is asked for once."""
    text = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}
    with registry_of({1: ORDER, 2: text}, {}) as (url, asked):
        decode = Decoding("avro", json.dumps(ORDER), bad_records="null", registry=url)
        good = written(ORDER, ROW, 1)
        rows, bad = decoded(decode, [good, b"\0\0\0\0\x07ab", b"\0\0\0\0\x07cd", good])
        assert bad == [1, 2]
        assert "answers 404 to schemas/ids/7" in rows[1]["_error"]
        assert [row["id"] for row in rows] == [7, None, None, 7]
        assert asked.count("/schemas/ids/7") == 1
        _, bad = decoded(decode, [written(text, {"id": "x"}, 2), good])
        assert bad == [0], "a writer whose schema does not resolve to the reader's"


def test_a_registry_that_does_not_answer_makes_no_bad_record() -> None:
    decode = Decoding("avro", json.dumps(ORDER), bad_records="null", registry="http://127.0.0.1:1")
    with pytest.raises(RegistryError, match="does not answer"):
        decoded(decode, [written(ORDER, ROW, 1)])


def test_a_uuid_is_text() -> None:
    kind = {"type": "string", "logicalType": "uuid"}
    schema = {"type": "record", "name": "R", "fields": [{"name": "u", "type": ["null", kind]}]}
    text = "5b0f2c1e-9b1b-4f6e-8f5e-0d3a2c1b4a59"
    rows, bad = decoded(Decoding("avro", json.dumps(schema)), [written(schema, {"u": UUID(text)})])
    assert (rows, bad) == ([{"u": text}], [])


def test_several_topics_need_a_subject() -> None:
    with pytest.raises(DecodeOptionError, match="schemaSubject"):
        pinned(Decoding("avro", registry="http://localhost:1"), ["a", "b"])


@pytest.mark.parametrize(
    "schema",
    [
        "{}",
        "nope",
        '"long"',
        json.dumps({**ORDER, "fields": [UNION]}),
    ],
)
def test_schemas_without_columns_are_refused(schema: str) -> None:
    with pytest.raises(DecodeOptionError, match="valueSchema"):
        avro_struct(schema)


def test_types() -> None:
    assert avro_struct(json.dumps(ORDER)).simpleString() == (
        "struct<id:bigint,note:string,at:timestamp,price:decimal(9,2),tags:array<string>,"
        "counts:map<string,int>,kind:string>"
    )
