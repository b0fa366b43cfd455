"""The consumer of the client library against a real broker: reading, places, groups, ends."""

import os
import threading
import time
from collections import Counter
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
