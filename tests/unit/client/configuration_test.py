"""Settings are checked when they are made, and say what to write instead."""

import dataclasses
from typing import Any

import pytest

from runnel.client import (
    AckMode,
    CompressionType,
    ConfigurationError,
    ConsumerConfig,
    IsolationLevel,
    JsonSerializer,
    OffsetResetPolicy,
    ProducerConfig,
)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"bootstrap_servers": "localhost"}, "host:port"),
        ({"bootstrap_servers": ["a:1", "b:99999"]}, "'b:99999'"),
        ({"acks": "some"}, "'0', '1', 'all'"),
        ({"compression_type": "rar"}, "'zstd'"),
        ({"linger_ms": -1}, "linger_ms is -1"),
        ({"batch_size": "big"}, "batch_size is 'big'"),
        ({"queue_messages": 0}, "queue_messages is 0"),
        ({"acks": AckMode.LEADER, "enable_idempotence": True}, "acks=AckMode.ALL"),
        ({"max_in_flight": 6}, "max_in_flight of 5"),
        ({"transactional_id": "t", "acks": 1}, "needs enable_idempotence"),
        ({"linger_ms": 10, "delivery_timeout_ms": 5}, "longer than linger_ms"),
        ({"sasl_username": "me"}, "SASL_SSL"),
        ({"extra": {"linger.ms": 3}}, "ProducerConfig(linger_ms=...)"),
        ({"extra": {"queue.buffering.max.messages": 3}}, "see its fields"),
    ],
)
def test_producers_refuse(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        ProducerConfig(**given)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"auto_offset_reset": "middle"}, "'earliest', 'latest'"),
        ({"isolation_level": "some"}, "'read_committed'"),
        ({"max_poll_records": 0}, "max_poll_records is 0"),
        ({"max_poll_records": 2_000_000}, "1,000,000"),
        ({"group_id": ""}, "leave it out"),
        ({"group_instance_id": "one"}, "needs a group_id"),
        ({"group_id": "g", "group_protocol": "old"}, "'consumer'"),
        ({"max_poll_interval_ms": 1000}, "session_timeout_ms"),
        ({"auto_offset_reset": "none"}, "without a group_id"),
        ({"extra": {"enable.auto.offset.store": True}}, "set by ConsumerConfig itself"),
    ],
)
def test_consumers_refuse(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        ConsumerConfig(**given)
    assert says in str(refused.value)


def test_the_defaults_lose_nothing() -> None:
    settings = ProducerConfig().settings()
    assert (settings["acks"], settings["enable.idempotence"]) == ("all", True)
    assert settings["bootstrap.servers"] == "localhost:9092"
    reading = ConsumerConfig(group_id="g").settings()
    assert (reading["enable.auto.commit"], reading["enable.auto.offset.store"]) == (True, False)
    assert ConsumerConfig().settings()["enable.auto.commit"] is False


def test_plain_values_become_choices() -> None:
    assert ProducerConfig(acks=1).acks is AckMode.LEADER
    assert ProducerConfig(acks=-1).acks is AckMode.ALL
    assert ProducerConfig(acks="1").enable_idempotence is False
    assert ProducerConfig(compression_type="lz4").compression_type is CompressionType.LZ4
    config = ConsumerConfig(
        group_id="g", auto_offset_reset="none", isolation_level="read_uncommitted"
    )
    assert config.auto_offset_reset is OffsetResetPolicy.NONE
    assert config.isolation_level is IsolationLevel.READ_UNCOMMITTED


def test_deliveries_end_with_their_transaction() -> None:
    config = ProducerConfig(transactional_id="t", transaction_timeout_ms=5000)
    assert config.settings()["delivery.timeout.ms"] == 5000


def test_settings_do_not_change_and_do_not_tell_secrets() -> None:
    config = ProducerConfig(
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        sasl_username="me",
        sasl_password="secret",
        extra={"ssl.key.password": "hidden"},
    )
    assert "secret" not in repr(config) and "hidden" not in repr(config)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.linger_ms = 3  # type: ignore[misc]  # that is the point


def test_several_servers() -> None:
    assert ProducerConfig(["a:1", "b:2"]).servers == "a:1,b:2"


def test_builders_make_the_same() -> None:
    serializer = JsonSerializer()
    built = (
        ProducerConfig.builder()
        .servers("a:1", "b:2")
        .client_id("shop")
        .acks(AckMode.LEADER)
        .idempotence(False)
        .batching(linger_ms=20, size_bytes=1000)
        .retrying(retries=3, delivery_timeout_ms=9000)
        .compression(CompressionType.GZIP)
        .queue(messages=10, max_block_ms=5)
        .serializers(value=serializer)
        .extra("socket.keepalive.enable", True)
        .build()
    )
    assert built == ProducerConfig(
        ("a:1", "b:2"),
        client_id="shop",
        acks=AckMode.LEADER,
        enable_idempotence=False,
        linger_ms=20,
        batch_size=1000,
        retries=3,
        delivery_timeout_ms=9000,
        compression_type=CompressionType.GZIP,
        queue_messages=10,
        max_block_ms=5,
        value_serializer=serializer,
        extra={"socket.keepalive.enable": True},
    )
    reading = (
        ConsumerConfig.builder()
        .servers("a:1")
        .group("billing", instance_id="one")
        .start_at(OffsetResetPolicy.LATEST)
        .auto_commit(False)
        .polling(max_records=7)
        .isolation(IsolationLevel.READ_UNCOMMITTED)
        .deserializers(value=serializer)
        .build()
    )
    assert reading == ConsumerConfig(
        ("a:1",),
        group_id="billing",
        group_instance_id="one",
        auto_offset_reset=OffsetResetPolicy.LATEST,
        enable_auto_commit=False,
        max_poll_records=7,
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
        value_deserializer=serializer,
    )


def test_a_builder_refuses_what_is_unknown() -> None:
    with pytest.raises(ConfigurationError, match="lingering"):
        ProducerConfig.builder().setting("lingering", 3).build()
