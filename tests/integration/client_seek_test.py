"""Seeks before and while a partition begins: librdkafka would lose some of them (`assignment`)."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runnel.client import (
    AsyncConsumer,
    Consumer,
    ConsumerConfig,
    Message,
    Producer,
    ProducerConfig,
    TopicPartition,
)
from runnel.client.assigning import RebalanceListener
from runnel.testing import RunnelBroker
from runnel.wire.apis import ApiKey
from tests.support.client_library import filled
from tests.support.holding_proxy import HoldingProxy

GROUPS: list[dict[str, Any]] = [
    {"partition_assignment_strategy": "cooperative-sticky"},
    {"partition_assignment_strategy": "range"},
    {"group_protocol": "consumer"},
]
QUICK_S = 5.0  # a seek that is tried again and again takes `request_timeout_ms`
by_group = pytest.mark.parametrize("group", GROUPS, ids=["cooperative", "eager", "consumer"])
by_reset = pytest.mark.parametrize("reset", ["earliest", "latest", "none"])


def grouped(broker: RunnelBroker, **settings: Any) -> ConsumerConfig:  # noqa: ANN401  # passed on
    """In a group of its own."""
    return ConsumerConfig(broker.bootstrap_servers, group_id=os.urandom(6).hex(), **settings)


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


def filled_partition(broker: RunnelBroker, topic: str, partition: int, count: int) -> None:
    with Producer(ProducerConfig(broker.bootstrap_servers)) as producer:
        for number in range(count):
            producer.send(topic, f"{partition}-{number}", partition=partition)


def seeking(consumer: Consumer, offset: int) -> RebalanceListener:
    def seek(partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            consumer.seek(*partition, offset)

    return seek


@pytest.fixture
def proxy() -> Iterator[HoldingProxy]:
    with HoldingProxy() as proxy:
        yield proxy


@pytest.fixture
def broker(proxy: HoldingProxy, start_runnel_broker: Callable[..., RunnelBroker]) -> RunnelBroker:
    """Clients reach it by way of the proxy."""
    host, port = proxy.address
    broker = start_runnel_broker({"advertised.listeners": f"PLAINTEXT://{host}:{port}"})
    proxy.upstream = ("127.0.0.1", broker.port)
    return broker


# While librdkafka looks up where a partition starts


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_by_hand_it_is_not_given_to_librdkafka_before_it_is_sought(
    broker: RunnelBroker, proxy: HoldingProxy, reset: str
) -> None:
    filled(broker, "orders", 5)
    config = ConsumerConfig(broker.bootstrap_servers, auto_offset_reset=reset)
    with Consumer(config) as consumer:
        proxy.hold(ApiKey.LIST_OFFSETS)
        consumer.subscribe("orders")
        is_looked_up = proxy.has_held.wait(0.5)
        consumer.seek("orders", 0, 3)
        proxy.release()
        assert texts(consumer.poll(10)) == ["3", "4"]
        assert consumer.poll(1) == [], "what was looked up is not read in the end"
    assert not is_looked_up, "nobody needed it"


@by_group
@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_in_a_group_a_seek_is_put_off_until_it_has_begun(
    broker: RunnelBroker, proxy: HoldingProxy, reset: str, group: dict[str, Any]
) -> None:
    filled(broker, "orders", 5)
    with Consumer(grouped(broker, auto_offset_reset=reset, **group)) as consumer:
        consumer.subscribe("orders")
        proxy.hold(ApiKey.LIST_OFFSETS)
        while not proxy.has_held.is_set():
            assert consumer.poll(0.1) == []
        consumer.seek("orders", 0, 1)
        consumer.seek("orders", 0, 3)
        assert consumer.position("orders", 0) == 3
        proxy.release()
        assert texts(list(consumer.until_end(10))) == ["3", "4"]
        assert consumer.poll(1) == [], "what was looked up is not read in the end"


@by_group
def test_a_seek_is_put_off_also_where_there_is_no_offset_to_start_from(
    broker: RunnelBroker, proxy: HoldingProxy, group: dict[str, Any]
) -> None:
    """What librdkafka reports then is what the seek has answered before: nobody is told."""
    filled(broker, "orders", 5)
    with Consumer(grouped(broker, auto_offset_reset="none", **group)) as consumer:
        consumer.subscribe("orders")
        proxy.hold(ApiKey.OFFSET_FETCH)
        while not proxy.has_held.is_set():
            assert consumer.poll(0.1) == []
        consumer.seek("orders", 0, 3)
        proxy.release()
        assert texts(consumer.poll(10)) == ["3", "4"]


# In `on_assign`


@by_group
@by_reset
def test_seek_in_on_assign(
    runnel_broker: RunnelBroker, runnel_topic: str, group: dict[str, Any], reset: str
) -> None:
    filled(runnel_broker, runnel_topic, 5)
    place = TopicPartition(runnel_topic, 0)
    seen: list[object] = []
    with Consumer(grouped(runnel_broker, auto_offset_reset=reset, **group)) as consumer:

        def seek(partitions: list[TopicPartition]) -> None:
            seen.extend([partitions, consumer.assignment(), consumer.committed()])
            consumer.seek(*place, 3)
            seen.append(consumer.position(*place))

        consumer.subscribe(runnel_topic, on_assign=seek)
        started = time.monotonic()
        assert texts(list(consumer.until_end(20))) == ["3", "4"]
        assert time.monotonic() - started < QUICK_S
        assert consumer.poll(0.7) == []
    assert seen == [[place], [place], {}, 3]


@by_group
def test_seek_in_on_assign_at_each_rebalance(
    runnel_broker: RunnelBroker, group: dict[str, Any]
) -> None:
    """What another member has left starts where it is sought, not where that one was."""
    topic = runnel_broker.create_topic(partitions=4)
    for partition in range(4):
        filled_partition(runnel_broker, topic, partition, 10)
    config = grouped(runnel_broker, **group)
    with Consumer(config) as first:
        with Consumer(config) as second:
            for consumer in (first, second):
                consumer.subscribe(topic, on_assign=seeking(consumer, 5))
            offsets: set[int] = set()
            while not (len(second.assignment()) == 2 and 9 in offsets):
                first.poll(0.1)
                offsets |= {message.offset for message in second.poll(0.1)}
            assert offsets == set(range(5, 10))
            left = second.assignment()
        begun: dict[TopicPartition, int] = {}
        while not begun.keys() >= set(left):
            for message in first.poll(0.1):
                begun.setdefault(message.topic_partition, message.offset)
    assert {begun[one] for one in left} == {5}


def test_pause_in_on_assign(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    filled(runnel_broker, runnel_topic, 5)
    with Consumer(grouped(runnel_broker)) as consumer:

        def pause(partitions: list[TopicPartition]) -> None:
            consumer.pause(partitions)
            consumer.seek(runnel_topic, 0, 3)

        consumer.subscribe(runnel_topic, on_assign=pause)
        while not consumer.assignment():
            consumer.poll(0.1)
        assert consumer.poll(0.7) == []
        consumer.resume()
        assert texts(consumer.poll(10)) == ["3", "4"]


def test_on_revoke_may_commit_also_when_the_consumer_closes(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    filled(runnel_broker, runnel_topic, 2)
    config = grouped(runnel_broker, enable_auto_commit=False)
    with Consumer(config) as consumer:
        consumer.subscribe(runnel_topic, on_revoke=lambda _: consumer.commit())
        assert texts(consumer.poll(10)) == ["0", "1"]
    with Consumer(config) as consumer:
        assert consumer.committed([(runnel_topic, 0)]) == {(runnel_topic, 0): 2}


# Before the first poll


@by_reset
def test_by_hand(runnel_broker: RunnelBroker, reset: str) -> None:
    """With a group's offsets: a seek goes before what is committed, and before the settings."""
    topic = runnel_broker.create_topic(partitions=2)
    for partition in range(2):
        filled_partition(runnel_broker, topic, partition, 5)
    with Consumer(grouped(runnel_broker, auto_offset_reset=reset)) as consumer:
        consumer.subscribe(topic, 0)
        consumer.seek(topic, 0, 3)
        assert consumer.position(topic, 0) == 3
        assert consumer.lag() == {(topic, 0): 2}
        assert texts(list(consumer.until_end(10))) == ["0-3", "0-4"]
        consumer.subscribe(topic, [0, 1])  # adds
        consumer.seek(topic, 1, 4)
        assert consumer.assignment() == [(topic, 0), (topic, 1)]
        assert texts(list(consumer.until_end(10))) == ["1-4"]
        consumer.unsubscribe()
        assert consumer.assignment() == []
        consumer.subscribe(topic, 1)
        consumer.unsubscribe()  # of what librdkafka has not heard of
        consumer.subscribe(topic, 1)
        consumer.seek(topic, 1, "earliest")
        assert texts(consumer.poll(10)) == [f"1-{number}" for number in range(5)]


@pytest.mark.parametrize("is_sought_first", [True, False])
def test_pause_before_the_first_poll(
    runnel_broker: RunnelBroker, runnel_topic: str, is_sought_first: bool
) -> None:
    filled(runnel_broker, runnel_topic, 5)
    with Consumer(ConsumerConfig(runnel_broker.bootstrap_servers)) as consumer:
        consumer.subscribe(runnel_topic)
        if is_sought_first:
            consumer.seek(runnel_topic, 0, 3)
        consumer.pause()
        if not is_sought_first:
            consumer.seek(runnel_topic, 0, 3)
        assert consumer.poll(0.7) == []
        assert consumer.position(runnel_topic, 0) == 3
        consumer.resume()
        assert texts(list(consumer.until_end(10))) == ["3", "4"]


# asyncio


@by_group
def test_a_coroutine_may_seek_in_on_assign(
    runnel_broker: RunnelBroker, runnel_topic: str, group: dict[str, Any]
) -> None:
    async def run() -> None:
        filled(runnel_broker, runnel_topic, 5)
        config = grouped(runnel_broker, enable_auto_commit=False, **group)
        async with AsyncConsumer(config) as consumer:

            async def seek(partitions: list[TopicPartition]) -> None:
                assert await consumer.committed() == {}
                for partition in partitions:
                    await consumer.seek(*partition, 3)

            async def commit(_: list[TopicPartition]) -> None:
                await consumer.commit()

            await consumer.subscribe(runnel_topic, on_assign=seek, on_revoke=commit)
            assert texts([message async for message in consumer.until_end(10)]) == ["3", "4"]
        async with AsyncConsumer(config) as consumer:
            assert await consumer.committed([(runnel_topic, 0)]) == {(runnel_topic, 0): 5}
            # A function is called in the thread that waits, where the blocking consumer may seek.
            await consumer.subscribe(runnel_topic, on_assign=seeking(consumer.blocking, 4))
            assert texts([message async for message in consumer.until_end(10)]) == ["4"]

    asyncio.run(asyncio.wait_for(run(), 40))


def test_asyncio_before_the_first_poll(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    async def run() -> None:
        filled(runnel_broker, runnel_topic, 5)
        async with AsyncConsumer(ConsumerConfig(runnel_broker.bootstrap_servers)) as consumer:
            await consumer.subscribe(runnel_topic)
            await consumer.seek(runnel_topic, 0, 3)
            assert await consumer.position(runnel_topic, 0) == 3
            assert texts([message async for message in consumer.until_end(10)]) == ["3", "4"]

    asyncio.run(run())
