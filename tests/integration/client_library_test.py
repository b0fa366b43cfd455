"""The consumer of the client library against a real broker: reading, places, groups, ends."""

import os
import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from runnel.client import (
    Consumer,
    ConsumerConfig,
    JsonSerializer,
    Message,
    Producer,
    ProducerConfig,
    TopicPartition,
)
from runnel.client.failures import (
    BrokerUnavailableError,
    ClientError,
    ClientTimeoutError,
    CommitError,
    ConfigurationError,
    ConsumeError,
)
from runnel.testing import RunnelBroker
from tests.support.client_library import filled, numbers


def grouped(broker: RunnelBroker, **settings: Any) -> ConsumerConfig:  # noqa: ANN401  # passed on
    """In a group of its own."""
    return ConsumerConfig(broker.bootstrap_servers, group_id=os.urandom(6).hex(), **settings)


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


def test_what_is_sent_is_read(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    config = ProducerConfig(runnel_broker.bootstrap_servers, value_serializer=JsonSerializer())
    headers: list[tuple[str, str | bytes | None]] = [
        ("tenant", "a"),
        ("tenant", b"b"),
        ("nothing", None),
    ]
    with Producer(config) as producer:
        sent = producer.send(runnel_topic, {"apples": 3}, "alice", headers, 1_700_000_000_000, 0)
        assert (sent.partition, sent.offset) == (0, 0)
    reading = ConsumerConfig(runnel_broker.bootstrap_servers, value_deserializer=JsonSerializer())
    with Consumer(reading) as consumer:
        consumer.subscribe(runnel_topic)
        (message,) = consumer.until_end()
    assert dict(message) == {
        "id": f"{runnel_topic}-0-0",
        "topic": runnel_topic,
        "partition": 0,
        "offset": 0,
        "key": b"alice",
        "value": {"apples": 3},
        "headers": {"tenant": b"b", "nothing": None},
        "timestamp": 1_700_000_000_000,
    }
    assert message.raw_headers == [("tenant", b"a"), ("tenant", b"b"), ("nothing", None)]


def test_an_offset_is_the_next_message_to_read(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    """What `runnel.client.offsets` says, for every place that takes or gives an offset."""
    filled(runnel_broker, runnel_topic, 10)
    config = grouped(runnel_broker, enable_auto_commit=False)
    place = TopicPartition(runnel_topic, 0)
    with Consumer(config) as consumer:
        consumer.subscribe(runnel_topic)
        assert texts(consumer.poll(10, max_records=3)) == ["0", "1", "2"]
        assert consumer.position(*place) == 3
        consumer.commit()
        assert consumer.committed() == {place: 3}
        assert consumer.lag() == {place: 7}
        message = consumer.consume_one(10)
        assert message is not None and message.offset == 3
        consumer.commit(message)
        assert consumer.committed() == {place: message.next_offset} == {place: 4}
        consumer.commit({(runnel_topic, 0): 6})
    with Consumer(config) as consumer:
        consumer.subscribe(runnel_topic)
        assert texts(consumer.poll(10, max_records=1)) == ["6"]
        consumer.seek(runnel_topic, 0, 2)
        assert consumer.position(*place) == 2
        assert texts(consumer.poll(10, max_records=1)) == ["2"]
        assert consumer.offsets(*place) == (0, 10)


def test_a_group_goes_on_where_it_stopped(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    filled(runnel_broker, runnel_topic, 5)
    config = grouped(runnel_broker)
    seen: list[Message] = []
    with Consumer(config) as consumer:
        consumer.subscribe(runnel_topic)
        for message in consumer:
            seen.append(message)
            if len(seen) == 2:
                break
    with Consumer(config) as consumer:
        consumer.subscribe(runnel_topic)
        seen += consumer.until_end()
        assert consumer.lag() == {(runnel_topic, 0): 0}
    assert texts(seen) == numbers(5)


def test_a_message_that_failed_is_read_again(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    """At least once: what was in hand when the block failed does not count, all before does."""
    filled(runnel_broker, runnel_topic, 5)
    config = grouped(runnel_broker)

    def handle(message: Message) -> None:
        if message.text == "2":
            raise RuntimeError("no")

    with pytest.raises(RuntimeError), Consumer(config) as consumer:
        consumer.subscribe(runnel_topic)
        consumer.start_consuming(handle)
    with Consumer(config) as consumer:
        consumer.subscribe(runnel_topic)
        assert texts(list(consumer.until_end())) == ["2", "3", "4"]


def test_false_stops(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    filled(runnel_broker, runnel_topic, 5)
    config = grouped(runnel_broker)
    seen: list[str] = []

    def until_two(message: Message) -> bool:
        seen.append(message.text)
        return message.text != "2"

    with Consumer(config) as consumer:
        consumer.subscribe(runnel_topic)
        consumer.start_consuming(until_two)
    assert seen == ["0", "1", "2"]
    with Consumer(config) as consumer:
        consumer.subscribe(runnel_topic)
        consumer.start_consuming(lambda message: seen.append(message.text), idle_timeout_s=0.5)
    assert seen == numbers(5), "the one that was answered by False had been handled"


def test_stop_from_another_thread(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    with Consumer(ConsumerConfig(runnel_broker.bootstrap_servers)) as consumer:
        consumer.subscribe(runnel_topic)
        threading.Timer(0.2, consumer.stop).start()
        assert list(consumer) == []


def test_partitions_by_hand(runnel_broker: RunnelBroker) -> None:
    topic = runnel_broker.create_topic(partitions=3)
    with Producer(ProducerConfig(runnel_broker.bootstrap_servers)) as producer:
        for index in range(6):
            producer.send(topic, str(index), partition=index % 3)
    config = grouped(runnel_broker, enable_auto_commit=False)
    with Consumer(config) as consumer:
        consumer.subscribe(topic, [0, 2])
        assert consumer.assignment() == [(topic, 0), (topic, 2)]
        assert sorted(texts(list(consumer.until_end()))) == ["0", "2", "3", "5"]
        consumer.commit()
        with pytest.raises(ConfigurationError, match="unsubscribe first"):
            consumer.subscribe(topic)
    with Consumer(config) as consumer:
        consumer.subscribe(topic, 0)
        consumer.subscribe(topic, [1])
        assert texts(list(consumer.until_end())) == ["1", "4"], "0 was read before"


def test_without_a_group_all_is_read_and_nothing_committed(runnel_broker: RunnelBroker) -> None:
    topic = runnel_broker.create_topic(partitions=3)
    filled(runnel_broker, topic, 9)
    for _ in range(2):
        with Consumer(ConsumerConfig(runnel_broker.bootstrap_servers)) as consumer:
            consumer.subscribe(topic)
            assert sorted(texts(list(consumer.until_end()))) == numbers(9)
            with pytest.raises(ConfigurationError, match="without a group_id"):
                consumer.commit()


def test_seek_before_the_first_poll_and_to_the_ends(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    filled(runnel_broker, runnel_topic, 5)
    with Consumer(grouped(runnel_broker)) as consumer:
        consumer.subscribe(runnel_topic)
        consumer.seek(runnel_topic, 0, 3)
        assert texts(list(consumer.until_end())) == ["3", "4"]
        consumer.seek(runnel_topic, 0, "earliest")
        assert texts(consumer.poll(10, max_records=1)) == ["0"]
        consumer.seek(runnel_topic, 0, "latest")
        filled(runnel_broker, runnel_topic, 1, first=5)
        assert texts(consumer.poll(10)) == ["5"]
        with pytest.raises(ConfigurationError, match="'earliest'"):
            consumer.seek(runnel_topic, 0, "middle")
        with pytest.raises(ConfigurationError, match="no offset -3"):
            consumer.seek(runnel_topic, 0, -3)


def test_seek_to_a_time(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    with Producer(ProducerConfig(runnel_broker.bootstrap_servers)) as producer:
        for index in range(5):
            producer.send(runnel_topic, str(index), timestamp=1_700_000_000_000 + index * 1000)
    with Consumer(ConsumerConfig(runnel_broker.bootstrap_servers)) as consumer:
        consumer.subscribe(runnel_topic)
        consumer.seek_to_time(1_700_000_002_500)
        assert texts(list(consumer.until_end())) == ["3", "4"]


def test_pause_hands_out_nothing_and_loses_nothing(runnel_broker: RunnelBroker) -> None:
    topic = runnel_broker.create_topic(partitions=2)
    with Producer(ProducerConfig(runnel_broker.bootstrap_servers)) as producer:
        for index in range(10):
            producer.send(topic, str(index), partition=index % 2)
    seen: list[Message] = []
    with Consumer(ConsumerConfig(runnel_broker.bootstrap_servers)) as consumer:
        consumer.subscribe(topic)
        while len({message.partition for message in seen}) < 2:
            message = consumer.consume_one(10)
            assert message is not None
            seen.append(message)
        consumer.pause([(topic, 0)])
        meanwhile = list(consumer.messages(idle_timeout_s=0.5))
        assert all(message.partition == 1 for message in meanwhile)
        consumer.resume([(topic, 0)])
        seen += meanwhile + list(consumer.until_end())
    assert sorted(texts(seen)) == numbers(10)


def test_two_members_share(runnel_broker: RunnelBroker) -> None:
    topic = runnel_broker.create_topic(partitions=4)
    config = grouped(runnel_broker, extra={"heartbeat.interval.ms": 200})
    events: list[str] = []
    with Consumer(config) as first, Consumer(config) as second:
        first.subscribe(
            topic,
            on_assign=lambda partitions: events.append(f"+{len(partitions)}"),
            on_revoke=lambda partitions: events.append(f"-{len(partitions)}"),
        )
        second.subscribe(topic)
        while not (len(first.assignment()) == len(second.assignment()) == 2):
            first.poll(0.1)
            second.poll(0.1)
        with Producer(ProducerConfig(runnel_broker.bootstrap_servers)) as producer:
            for index in range(40):
                producer.send(topic, str(index), partition=index % 4)
        seen = [*first.until_end(), *second.until_end()]
    assert Counter(texts(seen)) == Counter(numbers(40))
    assert {message.partition for message in seen} == {0, 1, 2, 3}
    assert events and events[0].startswith("+")


def test_until_the_end_of_what_has_no_message_at_its_end(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    """Markers of transactions take offsets; nobody waits for messages there."""
    config = ProducerConfig(runnel_broker.bootstrap_servers, transactional_id=runnel_topic)
    with Producer(config) as producer, producer.transaction():
        producer.send_batch(runnel_topic, numbers(3))
    with Consumer(
        ConsumerConfig(runnel_broker.bootstrap_servers, fetch_max_wait_ms=20)
    ) as consumer:
        consumer.subscribe(runnel_topic)
        assert texts(list(consumer.until_end(20))) == numbers(3)
        assert texts(list(consumer.until_end(20))) == []
        assert consumer.offsets(runnel_topic, 0) == (0, 4)


def test_errors_that_say_what_to_do(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    filled(runnel_broker, runnel_topic, 1)
    servers = runnel_broker.bootstrap_servers
    with Consumer(ConsumerConfig(servers)) as consumer:
        with pytest.raises(ConfigurationError, match="call subscribe"):
            consumer.poll()
        with pytest.raises(ConsumeError, match="runnel topic create"):
            consumer.subscribe("absent")
        with pytest.raises(ConfigurationError, match="regular expression: only a group"):
            consumer.subscribe("^absent")
    with Consumer(grouped(runnel_broker, auto_offset_reset="none")) as consumer:
        consumer.subscribe(runnel_topic)
        with pytest.raises(ConsumeError, match="auto_offset_reset"):
            consumer.poll(20)
    with Consumer(grouped(runnel_broker)) as consumer:
        consumer.subscribe("absent")
        with pytest.raises(ClientTimeoutError, match="no partition was assigned"):
            list(consumer.until_end(0.2))
        with pytest.raises(CommitError, match="not committed"):
            consumer.commit({("absent", 0): 1})
    with pytest.raises(BrokerUnavailableError, match="runnel serve"):
        Consumer(ConsumerConfig("127.0.0.1:1", start_timeout_ms=300)).start()
    with pytest.raises(ConfigurationError, match="librdkafka refuses"):
        Consumer(ConsumerConfig(servers, extra={"no.such": 1})).start()


def test_a_reader_is_not_kept_waiting_by_a_full_queue(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    with Producer(ProducerConfig(runnel_broker.bootstrap_servers)) as producer:
        producer.send_batch(runnel_topic, [bytes(10_000)] * 400)
    small = ConsumerConfig(runnel_broker.bootstrap_servers, queue_bytes=50_000, max_poll_records=5)
    with Consumer(small) as consumer:
        consumer.subscribe(runnel_topic)
        started, count = time.monotonic(), 0
        while count < 400:
            count += len(consumer.poll())
    waited_s = time.monotonic() - started
    assert waited_s < 20, "with librdkafka's default it waits for a second some forty times"


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
def test_seek_where_there_was_no_offset(
    runnel_broker: RunnelBroker, runnel_topic: str, strategy: str
) -> None:
    """librdkafka gives such a partition up; what the error advises brings it back."""
    filled(runnel_broker, runnel_topic, 3)
    config = grouped(
        runnel_broker, auto_offset_reset="none", partition_assignment_strategy=strategy
    )
    with Consumer(config) as consumer:
        consumer.subscribe(runnel_topic)
        with pytest.raises(ConsumeError, match="seek, or set auto_offset_reset"):
            consumer.poll(20)
        consumer.seek(runnel_topic, 0, 1)
        assert texts(consumer.poll(20)) == ["1", "2"]


def test_what_was_not_committed_is_read_again_from_where_it_began(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    """Not from what `auto_offset_reset` says now: "latest" would pass over it."""
    filled(runnel_broker, runnel_topic, 3)
    config = grouped(runnel_broker, auto_offset_reset="latest", enable_auto_commit=False)
    with Consumer(config) as consumer:
        consumer.subscribe(runnel_topic)
        consumer.seek(runnel_topic, 0, 1)
        for _ in range(2):
            assert texts(consumer.poll(20)) == ["1", "2"]
            consumer.seek_to_committed()
        assert texts(consumer.poll(20, max_records=1)) == ["1"]
        consumer.commit()
        assert texts(consumer.poll(20)) == ["2"]
        consumer.seek_to_committed()
        assert texts(consumer.poll(20)) == ["2"]
        consumer.seek(runnel_topic, 0, 0)  # before what is committed
        assert texts(consumer.poll(20, max_records=1)) == ["0"]
        consumer.seek_to_committed()
        assert texts(consumer.poll(20)) == ["0", "1", "2"]


def test_until_end_goes_on_after_a_pause(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    """What waited is read again, so its end has not been reached yet."""
    filled(runnel_broker, runnel_topic, 100)
    with Consumer(ConsumerConfig(runnel_broker.bootstrap_servers)) as consumer:
        consumer.subscribe(runnel_topic)
        read = texts(consumer.poll(20, max_records=1))
        time.sleep(1.5)  # until librdkafka has the rest, and that it ends there
        for message in consumer.until_end(20):
            read.append(message.text)
            if message.text == "10":
                consumer.pause()
                consumer.resume()
    assert read == numbers(100)


@pytest.mark.parametrize("how", ["consume_one", "messages", "poll", "until_end"])
def test_what_is_handled_slowly_is_committed_meanwhile(
    runnel_broker: RunnelBroker, runnel_topic: str, how: str
) -> None:
    filled(runnel_broker, runnel_topic, 100)
    with Consumer(grouped(runnel_broker, auto_commit_interval_ms=100)) as consumer:
        consumer.subscribe(runnel_topic)
        assert consumer.consume_one(20) is not None, "and with it the whole batch is here"
        reading: Iterable[object] = {
            "consume_one": iter(lambda: consumer.consume_one(20), None),
            "messages": consumer.messages(),
            "poll": iter(lambda: consumer.poll(20, max_records=1), []),
            "until_end": consumer.until_end(),
        }[how]
        for count, _ in enumerate(reading):
            time.sleep(0.05)
            if consumer.committed():
                break
            assert count < 90, "nothing was committed"


@pytest.mark.parametrize(
    "protocol",
    [{}, {"partition_assignment_strategy": "range"}, {"group_protocol": "consumer"}],
    ids=["cooperative", "range", "consumer"],
)
def test_from_a_group_to_partitions_by_hand(
    runnel_broker: RunnelBroker, runnel_topic: str, protocol: dict[str, Any]
) -> None:
    """As the error says that names `unsubscribe`; what the group did goes to its own listener."""
    filled(runnel_broker, runnel_topic, 10)
    other = runnel_broker.create_topic()
    revoked: list[tuple[str, list[TopicPartition]]] = []
    with Consumer(grouped(runnel_broker, max_poll_records=3, **protocol)) as consumer:
        consumer.subscribe(runnel_topic, on_revoke=lambda them: revoked.append(("first", them)))
        assert texts(consumer.poll(20)) == numbers(3)
        consumer.unsubscribe()
        assert consumer.assignment() == []
        consumer.subscribe(other, on_revoke=lambda them: revoked.append(("second", them)))
        while not consumer.assignment():
            consumer.poll(0.2)
        assert revoked == [("first", [TopicPartition(runnel_topic, 0)])]
        consumer.unsubscribe()
        assert revoked[1:] == [("second", [TopicPartition(other, 0)])]
        consumer.subscribe(runnel_topic, 0)
        assert texts(list(consumer.until_end(20))) == numbers(7, 3)


def test_on_revoke_that_raises(runnel_broker: RunnelBroker) -> None:
    """The partition is gone all the same, and no later commit is about it."""
    topic = runnel_broker.create_topic(partitions=2)
    with Producer(ProducerConfig(runnel_broker.bootstrap_servers)) as producer:
        for index in range(20):
            producer.send(topic, str(index), partition=index % 2)
    config = grouped(runnel_broker, enable_auto_commit=False, extra={"heartbeat.interval.ms": 200})
    is_broken = True

    def broken(_: list[TopicPartition]) -> None:
        if is_broken:
            raise ValueError("the listener broke")

    with Consumer(config) as first, Consumer(config) as second:
        first.subscribe(topic, on_revoke=broken)
        assert len(list(first.until_end(20))) == 20
        second.subscribe(topic)
        raised: list[str] = []
        while not second.assignment():
            try:
                first.poll(0.1)
            except ValueError as error:
                raised.append(str(error))
            second.poll(0.1, max_records=1)
        (theirs,), (ours,) = second.assignment(), first.assignment()
        assert (raised, {ours, theirs}) == (
            ["the listener broke"],
            {TopicPartition(topic, 0), TopicPartition(topic, 1)},
        )
        second.commit({theirs: 10})
        first.commit()
        assert second.committed([ours, theirs]) == {theirs: 10, ours: 10}
        is_broken = False


def test_on_revoke_that_raises_is_told_by_close(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    def broken(_: list[TopicPartition]) -> None:
        raise ValueError("the listener broke")

    filled(runnel_broker, runnel_topic, 1)
    consumer = Consumer(grouped(runnel_broker)).start()
    consumer.subscribe(runnel_topic, on_revoke=broken)
    assert len(consumer.poll(20)) == 1
    with pytest.raises(ValueError, match="the listener broke"):
        consumer.close()
    consumer.close()


def test_a_listener_does_not_close_its_consumer(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    """librdkafka would wait for the listener to return."""
    filled(runnel_broker, runnel_topic, 1)
    with Consumer(grouped(runnel_broker)) as consumer:
        consumer.subscribe(runnel_topic, on_assign=lambda _: consumer.close())
        seen: list[str] = []
        with pytest.raises(ClientError, match="outside of a listener"):
            while True:  # a message that came meanwhile is handed out first
                seen += texts(consumer.poll(0.2))
        while not seen:
            seen += texts(consumer.poll(0.2))
        assert seen == ["0"]


def test_a_closed_consumer_hands_out_nothing(
    runnel_broker: RunnelBroker, runnel_topic: str
) -> None:
    filled(runnel_broker, runnel_topic, 10)
    with Consumer(ConsumerConfig(runnel_broker.bootstrap_servers)) as consumer:
        consumer.subscribe(runnel_topic)
        assert consumer.consume_one(20) is not None
        reading = consumer.until_end()
        next(reading)
    for ask in (consumer.consume_one, consumer.poll, lambda: next(reading)):
        with pytest.raises(ClientError, match="was closed"):
            ask()
