"""The client library in an event loop: awaits, cancelled waits, full queues, transactions."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from runnel.client import (
    AsyncConsumer,
    AsyncDeadLetters,
    AsyncProducer,
    Backoff,
    ClientError,
    ClientTimeoutError,
    ConsumeError,
    ConsumerConfig,
    Delivery,
    DeliveryError,
    Message,
    ProducerConfig,
    QueueFullError,
)
from runnel.client.transacting import Transactions
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


def test_a_consumer_goes_on_after_an_error(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    """What the error advises helps: it is raised once, and not for ever after."""

    async def run() -> None:
        filled(runnel_broker, runnel_topic, 2)
        config = ConsumerConfig(
            runnel_broker.bootstrap_servers, group_id=runnel_topic, auto_offset_reset="none"
        )
        async with AsyncConsumer(config) as consumer:
            await consumer.subscribe(runnel_topic)
            with pytest.raises(ConsumeError, match="seek, or set auto_offset_reset"):
                await consumer.poll(20)
            await consumer.seek(runnel_topic, 0, "earliest")
            assert [message.text for message in await consumer.poll(20)] == ["0", "1"]

    asyncio.run(run())


def test_one_task_reads(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    """A second one is told, and gets no copies; others may seek and close meanwhile."""

    async def run() -> None:
        filled(runnel_broker, runnel_topic, 3)
        consumer = AsyncConsumer(ConsumerConfig(runnel_broker.bootstrap_servers))
        await consumer.subscribe(runnel_topic)
        seen: list[str] = []
        three, five = asyncio.Event(), asyncio.Event()

        async def read() -> None:
            async for message in consumer:
                seen.append(message.text)
                if len(seen) == 3:
                    three.set()
                if len(seen) == 5:
                    five.set()

        reading = asyncio.create_task(read())
        await asyncio.wait_for(three.wait(), 20)
        await asyncio.sleep(0)
        with pytest.raises(ClientError, match=r"asyncio\.Queue"):
            await consumer.poll(20)
        await consumer.seek(runnel_topic, 0, 1)
        await asyncio.wait_for(five.wait(), 20)
        await consumer.close()
        await asyncio.wait_for(reading, 20)
        assert seen == ["0", "1", "2", "1", "2"]
        with pytest.raises(ClientError, match="was closed"):
            await consumer.poll(20)

    asyncio.run(run())


def test_a_transaction_that_is_cancelled_while_it_commits(
    runnel_broker: RunnelBroker, runnel_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is committed or it is not: what was read for it is not read again if it is."""

    async def run() -> None:
        filled(runnel_broker, runnel_topic, 3)
        servers, out = runnel_broker.bootstrap_servers, f"{runnel_topic}-out"
        reading = ConsumerConfig(servers, group_id=runnel_topic, enable_auto_commit=False)
        async with (
            AsyncProducer(ProducerConfig(servers, transactional_id=runnel_topic)) as producer,
            AsyncConsumer(reading) as consumer,
        ):
            await consumer.subscribe(runnel_topic)

            async def copy(limit: int) -> None:
                async with producer.transaction(consumer):
                    for message in await consumer.poll(20, max_records=limit):
                        await producer.send_message(message.with_topic(out))

            loop, commit = asyncio.get_running_loop(), Transactions.commit
            copying = asyncio.create_task(copy(2))

            def commit_slowly(transactions: Transactions) -> None:
                loop.call_soon_threadsafe(copying.cancel)
                time.sleep(0.2)
                commit(transactions)

            monkeypatch.setattr(Transactions, "commit", commit_slowly)
            with pytest.raises(asyncio.CancelledError):
                await copying
            monkeypatch.undo()
            await copy(10)
        assert await all_of(runnel_broker, out) == ["0", "1", "2"]

    asyncio.run(run())


def test_an_aborted_delivery_is_told_in_the_loop(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    """librdkafka settles it in the thread that aborts; asyncio's debug mode refuses that."""

    async def run() -> None:
        threads: list[threading.Thread] = []
        config = ProducerConfig(
            runnel_broker.bootstrap_servers, transactional_id=runnel_topic, linger_ms=10_000
        )
        async with AsyncProducer(config) as producer:
            await producer.begin_transaction()
            delivery = await producer.send(
                runnel_topic,
                "never",
                on_delivery=lambda _: threads.append(threading.current_thread()),
            )
            waiting = asyncio.ensure_future(delivery)
            await asyncio.sleep(0)
            await producer.abort_transaction()
            with pytest.raises(DeliveryError):
                await asyncio.wait_for(waiting, 20)
        assert threads == [threading.current_thread()]

    asyncio.run(run(), debug=True)


def test_a_callback_that_raises_keeps_nobody_waiting(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    def broken(_: Delivery) -> None:
        raise ValueError("the callback broke")

    async def run() -> None:
        async with AsyncProducer(ProducerConfig(runnel_broker.bootstrap_servers)) as producer:
            delivery = await producer.send(runnel_topic, "0", on_delivery=broken)
            other = await producer.send(runnel_topic, "1")
            assert (await delivery).offset == 0
            assert (await other).offset == 1
            for text in numbers(1000, 2):
                await producer.send(runnel_topic, text, on_delivery=broken if text == "2" else None)
        assert await all_of(runnel_broker, runnel_topic) == numbers(1002)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_until_end_goes_on_after_a_pause(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    async def run() -> None:
        filled(runnel_broker, runnel_topic, 100)
        async with AsyncConsumer(ConsumerConfig(runnel_broker.bootstrap_servers)) as consumer:
            await consumer.subscribe(runnel_topic)
            read = [message.text for message in await consumer.poll(20, max_records=1)]
            await asyncio.sleep(1.5)  # until librdkafka has the rest, and that it ends there
            async for message in consumer.until_end(20):
                read.append(message.text)
                if message.text == "10":
                    await consumer.pause()
                    await consumer.resume()
            assert read == numbers(100)

    asyncio.run(run())


def test_until_end_waits_for_who_moves_places(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    async def run() -> None:
        filled(runnel_broker, runnel_topic, 5)
        async with AsyncConsumer(ConsumerConfig(runnel_broker.bootstrap_servers)) as consumer:
            await consumer.subscribe(runnel_topic)
            reading = consumer.until_end(20)
            assert (await anext(reading)).text == "0"
            async with consumer._turn:  # as `seek` has it while it talks to librdkafka
                following = asyncio.ensure_future(anext(reading))
                await asyncio.sleep(0.1)
                assert not following.done()
            assert (await following).text == "1"

    asyncio.run(asyncio.wait_for(run(), 30))


def test_what_is_handled_slowly_is_committed_meanwhile(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    async def run(name: str) -> None:
        config = ConsumerConfig(
            runnel_broker.bootstrap_servers,
            group_id=f"{runnel_topic}-{name}",
            auto_commit_interval_ms=100,
        )
        async with AsyncConsumer(config) as consumer:
            await consumer.subscribe(runnel_topic)
            async for _ in getattr(consumer, name)():
                await asyncio.sleep(0.05)
                if await consumer.committed():
                    return
        pytest.fail(f"{name} has committed nothing within 100 messages of 50 ms")

    filled(runnel_broker, runnel_topic, 100)
    for name in ("messages", "until_end"):
        asyncio.run(asyncio.wait_for(run(name), 30))


def test_a_listener_does_not_close_its_consumer(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    """It would wait for the task that waits for it."""

    async def run() -> None:
        config = ConsumerConfig(runnel_broker.bootstrap_servers, group_id=runnel_topic)
        async with AsyncConsumer(config) as consumer:
            refused: list[str] = []

            async def close(_: object) -> None:
                for call in (consumer.unsubscribe, consumer.close):
                    with pytest.raises(ClientError, match="outside of a listener") as error:
                        await call()
                    refused.append(str(error.value))

            await consumer.subscribe(runnel_topic, on_assign=close)
            while not refused:
                await consumer.poll(0.2)
            assert len(refused) == 2

    asyncio.run(asyncio.wait_for(run(), 30))
