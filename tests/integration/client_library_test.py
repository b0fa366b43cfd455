"""The client library against a real broker: sending, reading, places, groups, ends."""

import pytest

from runnel.client import (
    Consumer,
    ConsumerConfig,
    JsonSerializer,
    Message,
    Producer,
    ProducerConfig,
)
from tests.support.process import BrokerProcess, StartBroker


@pytest.fixture
def broker(start_broker: StartBroker) -> BrokerProcess:
    return start_broker(settings={"group.initial.rebalance.delay.ms": "0"})


def filled(broker: BrokerProcess, topic: str, count: int) -> list[int]:
    with Producer(ProducerConfig(broker.bootstrap)) as producer:
        return producer.send_batch(topic, [str(number) for number in range(count)])


def test_what_is_sent_is_read(broker: BrokerProcess) -> None:
    config = ProducerConfig(broker.bootstrap, value_serializer=JsonSerializer())
    with Producer(config) as producer:
        sent = producer.send("orders", {"apples": 3}, "alice", {"tenant": "a"}, 1_700_000_000_000)
        assert (sent.partition, sent.offset) == (0, 0)
    reading = ConsumerConfig(broker.bootstrap, value_deserializer=JsonSerializer())
    with Consumer(reading) as consumer:
        consumer.subscribe("orders")
        (message,) = consumer.until_end()
    assert dict(message) == {
        "id": "orders-0-0",
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "key": b"alice",
        "value": {"apples": 3},
        "headers": {"tenant": b"a"},
        "timestamp": 1_700_000_000_000,
    }


def test_a_group_goes_on_where_it_stopped(broker: BrokerProcess) -> None:
    assert filled(broker, "orders", 5) == [0, 1, 2, 3, 4]
    config = ConsumerConfig(broker.bootstrap, group_id="billing")
    seen: list[Message] = []
    with Consumer(config) as consumer:
        consumer.subscribe("orders")
        for message in consumer:
            seen.append(message)
            if len(seen) == 2:
                break
    with Consumer(config) as consumer:
        consumer.subscribe("orders")
        seen += consumer.until_end()
        assert consumer.lag() == {("orders", 0): 0}
    assert [message.text for message in seen] == ["0", "1", "2", "3", "4"]
