"""The producer of the client library against a real broker: deliveries, limits, transactions."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from runnel.client import (
    AckMode,
    BrokerUnavailableError,
    ClientError,
    ClientTimeoutError,
    Consumer,
    ConsumerConfig,
    Delivery,
    DeliveryError,
    FencedError,
    IsolationLevel,
    Message,
    Producer,
    ProducerConfig,
    QueueFullError,
    SerializationError,
    TransactionError,
)
from runnel.client.partitioner import partition_of
from runnel.client.transacting import Transactions
from runnel.testing import RunnelBroker
from tests.support.client_library import filled, numbers


def all_of(broker: RunnelBroker, topic: str, level: str = "read_committed") -> list[str]:
    config = ConsumerConfig(broker.bootstrap_servers, isolation_level=level)
    with Consumer(config) as consumer:
        consumer.subscribe(topic)
        return [message.text for message in consumer.until_end()]


def test_every_delivery_knows_its_place(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    told: list[Delivery] = []
    with Producer(ProducerConfig(runnel_broker.bootstrap_servers)) as producer:
        deliveries = [
            producer.send(runnel_topic, text, on_delivery=told.append) for text in numbers(1000)
        ]
        assert deliveries[-1].result(30).offset == 999
        assert [delivery.offset for delivery in deliveries] == list(range(1000))
        assert told == deliveries
        assert deliveries[0].done and deliveries[0].error is None
    assert all_of(runnel_broker, runnel_topic) == numbers(1000)


def test_batches(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    with Producer(ProducerConfig(runnel_broker.bootstrap_servers)) as producer:
        assert producer.send_batch(runnel_topic, []) == []
        message = Message("elsewhere", "b", "key", {"h": "1"})
        assert producer.send_batch(runnel_topic, ["a", message, b"c", None]) == [0, 1, 2, 3]
        assert producer.send_message(message.with_topic(runnel_topic)).offset == 4
    assert all_of(runnel_broker, runnel_topic) == ["a", "b", "c", "", "b"]


def test_keys_go_where_all_other_clients_send_them(runnel_broker: RunnelBroker) -> None:
    topic = runnel_broker.create_topic(partitions=7)
    with Producer(ProducerConfig(runnel_broker.bootstrap_servers)) as producer:
        sent = {key: producer.send(topic, "v", key) for key in numbers(100)}
        found = {key: delivery.partition for key, delivery in sent.items()}
    assert found == {key: partition_of(key.encode(), 7) for key in sent}


def test_without_acknowledgement(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    config = ProducerConfig(runnel_broker.bootstrap_servers, acks=AckMode.NONE)
    with Producer(config) as producer:
        assert producer.send(runnel_topic, "a").offset == -1
    deadline = time.monotonic() + 20
    while all_of(runnel_broker, runnel_topic) != ["a"]:
        assert time.monotonic() < deadline


def test_a_full_queue_waits_then_says_so(
    start_runnel_broker: Callable[..., RunnelBroker],
) -> None:
    broker = start_runnel_broker()
    config = ProducerConfig(
        broker.bootstrap_servers, queue_messages=10, max_block_ms=200, delivery_timeout_ms=60_000
    )
    producer = Producer(config).start()
    for text in numbers(100):
        producer.send("orders", text)  # a broker that answers: it only takes its time
    producer.flush()
    broker.kill()
    with pytest.raises(QueueFullError, match="raise queue_messages") as raised:
        for text in numbers(100):
            producer.send("orders", text)
    assert raised.value.retriable and producer.queued == 10
    with pytest.raises(ClientTimeoutError, match="10 messages are still on their way"):
        producer.close(0.1)
    with pytest.raises(ClientError, match="was closed"):
        producer.send("orders", "late")


def test_a_broker_that_comes_back_loses_nothing(
    start_runnel_broker: Callable[..., RunnelBroker],
) -> None:
    broker = start_runnel_broker()
    with Producer(ProducerConfig(broker.bootstrap_servers)) as producer:
        assert producer.send_batch("orders", numbers(100)) == list(range(100))
        broker.kill()
        waiting = [producer.send("orders", text) for text in numbers(100, 100)]
        with pytest.raises(ClientTimeoutError):
            waiting[0].result(0.1)
        assert not waiting[0].done
        broker.start()
        assert [delivery.offset for delivery in waiting] == list(range(100, 200))
    assert all_of(broker, "orders") == numbers(200)


def test_what_is_not_delivered_is_said_once(
    start_runnel_broker: Callable[..., RunnelBroker],
) -> None:
    broker = start_runnel_broker()
    config = ProducerConfig(broker.bootstrap_servers, delivery_timeout_ms=300, linger_ms=0)
    producer = Producer(config).start()
    producer.send("orders", "a").result()
    broker.kill()
    seen, unseen = producer.send("orders", "b"), producer.send("orders", "c")
    with pytest.raises(DeliveryError, match="delivery_timeout_ms"):
        seen.result()
    assert seen.done and isinstance(seen.error, DeliveryError)
    with pytest.raises(DeliveryError, match="1 message was not delivered"):
        producer.flush()
    assert isinstance(unseen.error, DeliveryError)
    producer.close()
    producer.close()


def test_errors_that_say_what_to_do(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    with Producer(ProducerConfig(runnel_broker.bootstrap_servers)) as producer:
        with pytest.raises(SerializationError, match="JsonSerializer"):
            producer.send(runnel_topic, {"a": 1})
        with pytest.raises(DeliveryError, match="raise max_request_size"):
            producer.send(runnel_topic, b"x" * 2_000_000)
        with pytest.raises(DeliveryError, match="runnel topic describe"):
            producer.send(runnel_topic, "a", partition=7).result(30)
        with pytest.raises(ClientError, match="transactional_id"):
            producer.begin_transaction()
    started = time.monotonic()
    with pytest.raises(BrokerUnavailableError, match="runnel serve"):
        Producer(ProducerConfig("127.0.0.1:1", start_timeout_ms=300)).start()
    assert time.monotonic() - started < 20


def test_several_threads(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    with Producer(ProducerConfig(runnel_broker.bootstrap_servers)) as producer:

        def send(first: int) -> None:
            assert [producer.send(runnel_topic, text).result() for text in numbers(50, first)]

        threads = [threading.Thread(target=send, args=(index * 50,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(all_of(runnel_broker, runnel_topic), key=int) == numbers(200)


# Transactions


def transactional(broker: RunnelBroker, name: str) -> ProducerConfig:
    return ProducerConfig(broker.bootstrap_servers, transactional_id=name)


def test_a_transaction_appears_whole_or_not_at_all(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    with Producer(transactional(runnel_broker, runnel_topic)) as producer:
        with producer.transaction():
            producer.send_batch(runnel_topic, ["a", "b"])
        with pytest.raises(KeyError), producer.transaction():
            producer.send(runnel_topic, "c").result()
            raise KeyError
        producer.begin_transaction()
        producer.send(runnel_topic, "d")
        with pytest.raises(TransactionError, match="open already"):
            producer.begin_transaction()
        producer.commit_transaction()
        with pytest.raises(TransactionError, match="no transaction was begun"):
            producer.abort_transaction()
    assert all_of(runnel_broker, runnel_topic) == ["a", "b", "d"]
    uncommitted = all_of(runnel_broker, runnel_topic, IsolationLevel.READ_UNCOMMITTED)
    assert uncommitted == ["a", "b", "c", "d"]


def test_a_zombie_is_fenced(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    old = Producer(transactional(runnel_broker, runnel_topic)).start()
    old.begin_transaction()
    old.send(runnel_topic, "from the old one").result()
    with Producer(transactional(runnel_broker, runnel_topic)) as new:
        with new.transaction():
            new.send(runnel_topic, "from the new one")
        with pytest.raises(FencedError, match="close this one"):
            old.commit_transaction()
        with pytest.raises(FencedError):
            old.begin_transaction()
    old.close()
    assert all_of(runnel_broker, runnel_topic) == ["from the new one"]


def test_a_zombie_is_told_once(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    """By its block; closing it then says nothing about messages that went with the transaction."""
    old = Producer(transactional(runnel_broker, runnel_topic)).start()
    with Producer(transactional(runnel_broker, runnel_topic)) as new, new.transaction():
        new.send(runnel_topic, "new")
    with pytest.raises(FencedError), old.transaction():
        old.send(runnel_topic, "old")
    old.close()
    assert all_of(runnel_broker, runnel_topic) == ["new"]


def test_exactly_once_from_topic_to_topic(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    """A copy that fails at every third message, and still each comes out once."""
    filled(runnel_broker, runnel_topic, 20)
    copy = runnel_broker.create_topic()
    config = ConsumerConfig(
        runnel_broker.bootstrap_servers,
        group_id=runnel_topic,
        enable_auto_commit=False,
        max_poll_records=4,
        fetch_max_wait_ms=20,
    )
    failed: set[str] = set()
    with (
        Producer(transactional(runnel_broker, runnel_topic)) as producer,
        Consumer(config) as consumer,
    ):
        consumer.subscribe(runnel_topic)
        while not consumer.assignment() or any(consumer.lag().values()):
            try:
                with producer.transaction(consumer):
                    for message in consumer.poll(1):
                        producer.send(copy, message.value)
                        if message.offset % 3 == 0 and message.id not in failed:
                            failed.add(message.id)
                            raise RuntimeError("in the middle of it")
            except RuntimeError:
                continue
        assert consumer.committed() == {(runnel_topic, 0): 20}
    assert len(failed) == 7
    assert all_of(runnel_broker, copy) == numbers(20)


def test_offsets_of_a_transaction_after_a_kill_of_the_broker(
    start_runnel_broker: Callable[..., RunnelBroker],
) -> None:
    """librdkafka would wait for ever for the coordinator that it knew, past every time-out."""
    broker = start_runnel_broker()
    filled(broker, "orders", 6)
    config = ConsumerConfig(
        broker.bootstrap_servers, group_id="copy", enable_auto_commit=False, max_poll_records=2
    )
    committed = 0

    def copy() -> None:
        nonlocal committed
        with Producer(transactional(broker, "copy")) as producer, Consumer(config) as consumer:
            consumer.subscribe("orders")
            while committed < 6:
                messages = consumer.poll(1)
                try:
                    with producer.transaction(consumer):
                        for message in messages:
                            producer.send("copies", message.value)
                except TransactionError:  # of a generation before the kill: they are read again
                    continue
                committed += len(messages)
                if messages:
                    broker.kill()
                    broker.start()

    thread = threading.Thread(target=copy, daemon=True)  # no signal would end a call of librdkafka
    thread.start()
    thread.join(90)
    assert not thread.is_alive(), committed
    assert all_of(broker, "copies") == numbers(6)


# Callbacks and starts that fail


def test_a_callback_that_raises_loses_nothing(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    """What it raised came out of `close`, which then gave up all that was not sent yet."""
    count = 0

    def broken(_: Delivery) -> None:
        nonlocal count
        count += 1
        if count % 1000 == 1:
            raise ValueError("the callback broke")

    config = ProducerConfig(runnel_broker.bootstrap_servers, batch_size=20_000, linger_ms=500)
    with Producer(config) as producer:
        for _ in range(10_000):
            producer.send(runnel_topic, b"x" * 1000, on_delivery=broken)
    assert count == 10_000
    assert len(all_of(runnel_broker, runnel_topic)) == 10_000


def test_a_start_that_failed_is_made_up_for(
    runnel_broker: RunnelBroker, runnel_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Transactions) -> None:
        raise ClientTimeoutError("not in time")

    producer = Producer(transactional(runnel_broker, runnel_topic))
    with monkeypatch.context() as patch:
        patch.setattr(Transactions, "initialise", fail)
        with pytest.raises(ClientTimeoutError, match="not in time"):
            producer.start()
    with producer.start(), producer.transaction():
        producer.send(runnel_topic, "0")
    assert all_of(runnel_broker, runnel_topic) == ["0"]


def test_a_timestamp_of_0_is_refused(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    """librdkafka would send its own clock's."""
    with Producer(ProducerConfig(runnel_broker.bootstrap_servers)) as producer:
        for zero in (0, datetime.fromtimestamp(0, UTC)):
            with pytest.raises(SerializationError, match="timestamp of 0"):
                producer.send(runnel_topic, "0", timestamp=zero)
        producer.send(runnel_topic, "1", timestamp=1)
        producer.send_message(Message(runnel_topic, "2", timestamp=0))
    assert all_of(runnel_broker, runnel_topic) == ["1", "2"]
