"""The client library in an event loop: awaits, cancelled waits, full queues, transactions."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from runnel.client import (
    AsyncConsumer,
    AsyncDeadLetters,
    AsyncProducer,
    Backoff,
    ClientError,
    ClientTimeoutError,
    ConsumerConfig,
    DeliveryError,
    Message,
    ProducerConfig,
    QueueFullError,
)
from runnel.testing import RunnelBroker
from tests.support.client_library import filled, numbers


async def all_of(broker: RunnelBroker, topic: str) -> list[str]:
    async with AsyncConsumer(ConsumerConfig(broker.bootstrap_servers)) as consumer:
        await consumer.subscribe(topic)
        return [message.text async for message in consumer.until_end()]


def test_send_and_read(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    async def run() -> None:
        config = ProducerConfig(runnel_broker.bootstrap_servers)
        async with AsyncProducer(config) as producer:
            delivery = await producer.send(runnel_topic, "0", headers={"a": "b"})
            assert not delivery.done
            with pytest.raises(ClientError, match="await delivery"):
                assert delivery.offset
            assert (await delivery).offset == delivery.offset == 0
            assert (await producer.send_and_wait(runnel_topic, "1")).offset == 1
            assert await producer.send_batch(runnel_topic, ["2", Message("x", "3")]) == [2, 3]
            many = [await producer.send(runnel_topic, text) for text in numbers(3000, 4)]
            settled = await asyncio.gather(*many)
            assert [delivery.offset for delivery in settled] == list(range(4, 3004))
        assert await all_of(runnel_broker, runnel_topic) == numbers(3004)

    asyncio.run(run())


def test_there_is_no_thread_for_sending(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    async def run() -> None:
        producer = AsyncProducer(ProducerConfig(runnel_broker.bootstrap_servers))
        before = set(threading.enumerate())
        await asyncio.gather(*[await producer.send(runnel_topic, text) for text in numbers(100)])
        assert set(threading.enumerate()) == before
        await producer.close()

    asyncio.run(run())


def test_a_group_in_a_loop(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    async def run() -> None:
        filled(runnel_broker, runnel_topic, 10)
        config = ConsumerConfig(
            runnel_broker.bootstrap_servers, group_id=runnel_topic, enable_auto_commit=False
        )
        async with AsyncConsumer(config) as consumer:
            await consumer.subscribe(runnel_topic)
            assert [m.text for m in await consumer.poll(20, max_records=3)] == ["0", "1", "2"]
            await consumer.commit()
            assert await consumer.committed() == {(runnel_topic, 0): 3}
            message = await consumer.consume_one(20)
            assert message is not None and message.text == "3"
            assert await consumer.lag() == {(runnel_topic, 0): 6}
            assert await consumer.position(runnel_topic, 0) == 4
            await consumer.seek(runnel_topic, 0, 8)
            await consumer.pause()
            assert await consumer.poll(0.3) == []
            await consumer.resume()
            assert [m.text async for m in consumer.until_end()] == ["8", "9"]
        async with AsyncConsumer(config) as consumer:
            await consumer.subscribe(runnel_topic)
            seen: list[str] = []

            async def until_five(message: Message) -> bool:
                await asyncio.sleep(0)
                seen.append(message.text)
                return message.text != "5"

            await consumer.start_consuming(until_five)
            assert seen == ["3", "4", "5"]

    asyncio.run(run())


def test_a_cancelled_wait_loses_nothing(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    """Readers that give up again and again still get every message once, in order."""

    async def run() -> None:
        seen: list[str] = []
        async with (
            AsyncConsumer(ConsumerConfig(runnel_broker.bootstrap_servers)) as consumer,
            AsyncProducer(ProducerConfig(runnel_broker.bootstrap_servers)) as producer,
        ):
            await consumer.subscribe(runnel_topic)
            for text in numbers(30):
                waiting = asyncio.create_task(consumer.poll(20))
                await asyncio.sleep(0.001 * int(text))
                await producer.send_and_wait(runnel_topic, text)
                waiting.cancel()
                try:
                    seen += [message.text for message in await waiting]
                except asyncio.CancelledError:
                    continue
            while len(seen) < 30:
                seen += [message.text for message in await consumer.poll(20)]
        assert seen == numbers(30)
        assert all(task is asyncio.current_task() for task in asyncio.all_tasks())

    asyncio.run(run())


def test_a_cancelled_delivery_leaves_nothing_behind(
    start_runnel_broker: Callable[..., RunnelBroker],
) -> None:
    async def run(broker: RunnelBroker) -> None:
        async with AsyncProducer(ProducerConfig(broker.bootstrap_servers)) as producer:
            await producer.send_and_wait("orders", "0")
            await asyncio.to_thread(broker.kill)
            delivery = await producer.send("orders", "1")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(delivery_of(delivery), 0.2)
            assert not delivery._listeners, "who has gone is not called"
            with pytest.raises(ClientTimeoutError, match="1 messages are still"):
                await producer.flush(0.1)
            await asyncio.to_thread(broker.start)
            assert (await delivery).offset == 1

    asyncio.run(run(start_runnel_broker()))


async def delivery_of(delivery: object) -> None:
    await delivery  # type: ignore[misc]  # it is a Delivery


def test_a_full_queue(start_runnel_broker: Callable[..., RunnelBroker]) -> None:
    async def run(broker: RunnelBroker) -> None:
        config = ProducerConfig(
            broker.bootstrap_servers, queue_messages=10, max_block_ms=200, delivery_timeout_ms=1000
        )
        producer = await AsyncProducer(config).start()
        assert len(await producer.send_batch("orders", numbers(100))) == 100
        await asyncio.to_thread(broker.kill)
        with pytest.raises(QueueFullError):
            for text in numbers(100):
                await producer.send("orders", text)
        with pytest.raises(DeliveryError, match="10 messages were not delivered"):
            await producer.close()

    asyncio.run(run(start_runnel_broker()))


def test_transactions(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    async def run() -> None:
        filled(runnel_broker, runnel_topic, 6)
        copy = runnel_broker.create_topic()
        servers = runnel_broker.bootstrap_servers
        reading = ConsumerConfig(servers, group_id=runnel_topic, enable_auto_commit=False)
        async with (
            AsyncProducer(ProducerConfig(servers, transactional_id=runnel_topic)) as producer,
            AsyncConsumer(reading) as consumer,
        ):
            await consumer.subscribe(runnel_topic)
            with pytest.raises(RuntimeError):
                async with producer.transaction(consumer):
                    for message in await consumer.poll(20):
                        await producer.send(copy, message.value)
                    raise RuntimeError
            while not await consumer.committed() or any((await consumer.lag()).values()):
                async with producer.transaction(consumer):
                    for message in await consumer.poll(20):
                        await producer.send(copy, message.value)
            assert await consumer.committed() == {(runnel_topic, 0): 6}
        assert await all_of(runnel_broker, copy) == numbers(6)

    asyncio.run(run())


def test_dead_letters(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    async def run() -> None:
        filled(runnel_broker, runnel_topic, 3)
        servers = runnel_broker.bootstrap_servers
        handled: list[str] = []

        async def handle(message: Message) -> None:
            if message.text == "1":
                raise ValueError("odd")
            handled.append(message.text)

        async with (
            AsyncProducer(ProducerConfig(servers)) as producer,
            AsyncConsumer(ConsumerConfig(servers)) as consumer,
        ):
            dead_letters = AsyncDeadLetters(producer, tries=2, backoff=Backoff(first_ms=1))
            await consumer.subscribe(runnel_topic)
            await consumer.start_consuming(dead_letters.guard(handle), idle_timeout_s=0.5)
        assert handled == ["0", "2"]
        assert await all_of(runnel_broker, f"{runnel_topic}.dlq") == ["1"]

    asyncio.run(run())
