"""What a listener of a delivery raises keeps nobody else from being told."""

import logging

import pytest
from confluent_kafka import Message as RawMessage

from runnel.client import Delivery, ProducerConfig
from runnel.client.outbox import Outbox


def broken(_: Delivery) -> None:
    raise ValueError("the callback broke")


def test_a_listener_that_raises(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Delivery] = []
    delivery = Delivery(Outbox(ProducerConfig()), "orders")
    delivery.call_when_done(broken)
    delivery.call_when_done(told.append)
    with caplog.at_level(logging.ERROR, "runnel.client"):
        delivery(None, RawMessage(topic="orders", partition=0, offset=5))
        delivery.call_when_done(broken)  # at once, and no different
    assert told == [delivery] and delivery.offset == 5
    assert [record.getMessage() for record in caplog.records] == [
        "on_delivery of a message for orders failed"
    ] * 2
    assert "the callback broke" in caplog.text
    assert delivery._listeners is None, "a compiled delivery is never collected as a cycle"
