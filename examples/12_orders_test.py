"""Tests of your own code against a real broker, without Docker: `pytest 12_orders_test.py`.

The fixtures come with Runnel: `runnel_broker` is one broker for the whole run, there in a fraction
of a second, and `runnel_topic` a topic of this test's own. docs/testing.md has the rest: other
clients, brokers that are killed and started again, asyncio.
"""

from collections.abc import Iterable

from runnel.client import Consumer, ConsumerConfig, Message, Producer, ProducerConfig
from runnel.testing import RunnelBroker


def bill_of(table: str, orders: Iterable[Message]) -> int:
    """The code under test: what a table has to pay, in cents."""
    return sum(int(order.value) for order in orders if order.key == table.encode())


def test_a_table_pays_its_own_orders(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    servers = runnel_broker.bootstrap_servers
    with Producer(ProducerConfig(servers)) as producer:
        producer.send(runnel_topic, "250", key="table 4")
        producer.send(runnel_topic, "900", key="table 7")
        producer.send(runnel_topic, "400", key="table 4")

    with Consumer(ConsumerConfig(servers)) as consumer:
        consumer.subscribe(runnel_topic)
        assert bill_of("table 4", consumer.until_end()) == 650
