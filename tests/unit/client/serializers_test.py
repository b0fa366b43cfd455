"""Values to bytes and back, and what is said when they do not fit."""

from datetime import date

import pytest

from runnel.client import (
    AvroSerializer,
    BytesSerializer,
    ConfigurationError,
    JsonSerializer,
    SerializationError,
    Serializer,
    StringSerializer,
)
from runnel.client.serializers import from_bytes, to_bytes

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "item", "type": "string"}, {"name": "count", "type": "int"}],
}


@pytest.mark.parametrize(
    ("serializer", "value", "data"),
    [
        (BytesSerializer(), b"\x00", b"\x00"),
        (StringSerializer(), "ü", b"\xc3\xbc"),
        (StringSerializer("utf-16-le"), "a", b"a\x00"),
        (JsonSerializer(), {"a": [1, "ü"]}, '{"a":[1,"ü"]}'.encode()),
        (AvroSerializer(ORDER), {"item": "nut", "count": 1}, b"\x06nut\x02"),
        (AvroSerializer(ORDER, schema_id=7), {"item": "", "count": 0}, b"\0\0\0\0\x07\0\0"),
    ],
)
def test_there_and_back(serializer: Serializer, value: object, data: bytes) -> None:
    assert serializer.serialize(value) == data
    assert serializer.deserialize(data) == value


def test_nothing_stays_nothing() -> None:
    assert to_bytes(JsonSerializer(), None, "a value") is None


@pytest.mark.parametrize(
    ("serializer", "value"),
    [
        (BytesSerializer(), "text"),
        (StringSerializer(), b"bytes"),
        (JsonSerializer(), date(2020, 1, 1)),
        (JsonSerializer(), float("nan")),
        (AvroSerializer(ORDER), {"item": 3}),
    ],
)
def test_what_does_not_fit_is_said(serializer: Serializer, value: object) -> None:
    with pytest.raises(SerializationError, match="a value for orders could not be serialized"):
        to_bytes(serializer, value, "a value for orders")


@pytest.mark.parametrize(
    ("serializer", "data", "says"),
    [
        (StringSerializer(), b"\xff", "utf-8"),
        (JsonSerializer(), b"{", "JsonSerializer"),
        (AvroSerializer(ORDER), b"\x06nut\x02rest", "4 bytes are left"),
        (AvroSerializer(ORDER), b"\x06nu", "AvroSerializer"),
        (AvroSerializer(ORDER, schema_id=7), b"\x06nut\x02", "no frame"),
        (AvroSerializer(ORDER, schema_id=7), b"\0\0\0\0\x08\x06nut\x02", "schema 8"),
    ],
)
def test_what_cannot_be_read_is_said(serializer: Serializer, data: bytes, says: str) -> None:
    with pytest.raises(SerializationError, match=says):
        from_bytes(serializer, data, "the value")


def test_json_of_other_things() -> None:
    assert JsonSerializer(default=str).serialize(date(2020, 1, 2)) == b'"2020-01-02"'


def test_a_reader_with_a_newer_schema() -> None:
    newer = {**ORDER, "fields": [*ORDER["fields"], {"name": "by", "type": "int", "default": 9}]}
    data = AvroSerializer(ORDER).serialize({"item": "nut", "count": 1})
    reader = AvroSerializer(ORDER, reader_schema=newer)
    assert reader.deserialize(data) == {"item": "nut", "count": 1, "by": 9}


@pytest.mark.parametrize("schema", ['{"type": "nothing"}', {"type": "record"}])
def test_no_schema(schema: str | dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="no schema of Avro"):
        AvroSerializer(schema)
