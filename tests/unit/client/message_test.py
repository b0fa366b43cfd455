"""A message: attributes and items, copies, what is read only when it is asked for."""

from datetime import UTC, datetime

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME
from confluent_kafka import Message as RawMessage

from runnel.client import JsonSerializer, Message, SerializationError
from runnel.client.message import Deserializers, ReceivedMessage
from runnel.client.serializers import Serializer


def received(value: bytes | None = b"v", deserializer: Serializer | None = None) -> ReceivedMessage:
    raw = RawMessage(
        topic="orders",
        partition=2,
        offset=41,
        key=b"k",
        value=value,
        headers=[("a", b"1"), ("b", None), ("a", b"2")],
        timestamp=(TIMESTAMP_CREATE_TIME, 1_700_000_000_123),
    )
    return ReceivedMessage(raw, Deserializers(None, deserializer))


class Special(RawMessage):
    """Not quite what a compiled client calls C functions of."""


def test_a_raw_message_of_another_kind() -> None:
    message = ReceivedMessage(Special(topic="orders", partition=2, offset=43, value=b"v"), None)
    assert (message.id, message.value, message.key) == ("orders-2-43", b"v", None)


def test_attributes_and_items_are_the_same() -> None:
    message = received()
    for name in message.keys():  # noqa: SIM118  # a message is no dict
        assert message[name] == getattr(message, name)
    assert dict(message)["headers"] == {"a": b"2", "b": None}
    with pytest.raises(KeyError, match="it has id, topic"):
        message["colour"]


def test_an_id_is_a_place() -> None:
    message = received()
    assert message.id == "orders-2-41"
    assert message.next_offset == 42
    assert message.topic_partition == ("orders", 2)
    assert Message("orders", "v").id == ""


def test_headers() -> None:
    message = received()
    assert message.raw_headers == [("a", b"1"), ("b", None), ("a", b"2")]
    assert message.header("a") == "2"
    assert message.header("b", "none") == "none"
    other = message.with_header("a", "3")
    assert other.raw_headers == [("b", None), ("a", b"3")]
    assert message.header("a") == "2", "the first one is as it was"


def test_copies() -> None:
    message = received().with_key("other").with_value("w")
    assert (message.key, message.value, message.offset) == ("other", "w", 41)
    moved = message.with_topic("elsewhere")
    assert (moved.topic, moved.partition, moved.id) == ("elsewhere", -1, "")
    assert moved.timestamp == 1_700_000_000_123
    assert message.with_headers({"x": "y"}).raw_headers == [("x", b"y")]


def test_timestamps() -> None:
    assert received().time == datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)
    assert Message("t").time is None
    with pytest.raises(SerializationError, match="the timestamp 1000000000000000 of t"):
        assert Message("t", timestamp=10**15).time


def test_values_are_deserialized_when_they_are_looked_at() -> None:
    good = received(b'{"a":1}', JsonSerializer())
    assert good.value == {"a": 1}
    assert good.value is good.value, "only once"
    assert good.raw_value == b'{"a":1}'
    poison = received(b"{", JsonSerializer())
    assert poison.offset == 41
    with pytest.raises(SerializationError, match="the value of orders-2-41"):
        assert poison.value
    assert received(None, JsonSerializer()).value is None, "a tombstone stays one"


def test_text_and_json_without_a_deserializer() -> None:
    assert received("grüße".encode()).text == "grüße"
    assert received(b"[1]").json() == [1]
    assert received(None).text == ""
    with pytest.raises(SerializationError, match="no text"):
        assert received(b"\xff").text


def test_equality_and_repr() -> None:
    assert received() == received()
    assert received() != received(b"w")
    assert len({received(), received()}) == 1
    assert "orders-2-41" in repr(received(b"x" * 100)) and "100 bytes" in repr(received(b"x" * 100))
