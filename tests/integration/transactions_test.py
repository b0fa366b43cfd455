"""Transactions as confluent-kafka makes them: commit, abort, copy, zombies, time-outs, kill -9."""

import time

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.patience import eventually
from tests.support.process import BrokerProcess, StartBroker

TIMEOUT_S = 30.0
PARTITIONS = 2
SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
}


def started(start_broker: StartBroker, durability: str = "interval") -> BrokerProcess:
    broker = start_broker(settings={**SETTINGS, "runnel.durability": durability})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    topics = [NewTopic(name, PARTITIONS, 1) for name in ("in", "out")]
    for created in admin.create_topics(topics).values():
        created.result(TIMEOUT_S)
    return broker


def transactional(broker: BrokerProcess, name: str = "tx", **settings: object) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": name,
            "reconnect.backoff.max.ms": 100,
            **settings,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def send(producer: Producer, *values: str, topic: str = "out") -> None:
    for number, value in enumerate(values):
        producer.produce(topic, value=value.encode(), partition=number % PARTITIONS)


def read(broker: BrokerProcess, *, isolation: str = "read_committed") -> list[str]:
    """All of `out`, to its last stable offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition("out", index, 0) for index in range(PARTITIONS)])
    found: list[str] = []
    ended: set[int | None] = set()
    deadline = time.monotonic() + TIMEOUT_S
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline, found
        message = consumer.poll(1.0)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add(message.partition())
            continue
        value = message.value()
        assert value is not None
        found.append(value.decode())
    consumer.close()
    return sorted(found)


@pytest.mark.parametrize("durability", ["interval", "ack"])
def test_committed_is_read_and_aborted_is_not(start_broker: StartBroker, durability: str) -> None:
    broker = started(start_broker, durability)
    producer = transactional(broker)
    expected: list[str] = []
    for turn in range(6):
        values = [f"{turn}-{number}" for number in range(4)]
        producer.begin_transaction()
        send(producer, *values)
        if turn % 3 == 2:
            assert producer.flush(TIMEOUT_S) == 0
            producer.abort_transaction(TIMEOUT_S)
        else:
            producer.commit_transaction(TIMEOUT_S)
            expected += values
    assert read(broker) == sorted(expected)
    assert len(read(broker, isolation="read_uncommitted")) == 24


def test_records_and_offsets_are_copied_together(start_broker: StartBroker) -> None:
    """Consume, transform, produce; every third transaction is aborted and done again."""
    broker = started(start_broker)
    plain = Producer({"bootstrap.servers": broker.bootstrap})
    send(plain, *(f"{number}" for number in range(300)), topic="in")
    assert plain.flush(TIMEOUT_S) == 0

    def consumer() -> Consumer:
        made = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "copier",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        made.subscribe(["in"])
        return made

    source, producer = consumer(), transactional(broker)
    copied = turn = 0
    deadline = time.monotonic() + 2 * TIMEOUT_S
    while copied < 300:
        assert time.monotonic() < deadline, copied
        messages = [each for each in source.consume(40, 1.0) if each.error() is None]
        if not messages:
            continue
        turn += 1
        producer.begin_transaction()
        send(producer, *(f"copy of {(each.value() or b'').decode()}" for each in messages))
        producer.send_offsets_to_transaction(
            source.position(source.assignment()), source.consumer_group_metadata(), TIMEOUT_S
        )
        if turn % 3:
            producer.commit_transaction(TIMEOUT_S)
            copied += len(messages)
        else:
            producer.abort_transaction(TIMEOUT_S)
            source.close()
            source = consumer()
    source.close()
    assert read(broker) == sorted(f"copy of {number}" for number in range(300))


def test_a_zombie_is_fenced(start_broker: StartBroker) -> None:
    broker = started(start_broker)
    zombie = transactional(broker)
    zombie.begin_transaction()
    send(zombie, "lost")
    assert zombie.flush(TIMEOUT_S) == 0
    producer = transactional(broker)
    with pytest.raises(KafkaException) as fenced:
        zombie.commit_transaction(TIMEOUT_S)
    assert fenced.value.args[0].code() == KafkaError._FENCED
    producer.begin_transaction()
    send(producer, "kept")
    producer.commit_transaction(TIMEOUT_S)
    assert read(broker) == ["kept"]


def test_what_takes_too_long_is_aborted(start_broker: StartBroker) -> None:
    broker = started(start_broker)
    slow = transactional(broker, "slow", **{"transaction.timeout.ms": 8000})
    slow.begin_transaction()
    send(slow, "late")
    assert slow.flush(TIMEOUT_S) == 0
    other = transactional(broker, "other")
    other.begin_transaction()
    send(other, "waits for the other")
    other.commit_transaction(TIMEOUT_S)
    assert read(broker) == [], "not past what is open"
    eventually(lambda: read(broker) == ["waits for the other"])
    with pytest.raises(KafkaException):
        slow.commit_transaction(TIMEOUT_S)
    assert read(broker) == ["waits for the other"]


@pytest.mark.parametrize("durability", ["interval", "ack"])
def test_kill_in_the_middle_and_the_transaction_goes_on(
    start_broker: StartBroker, durability: str
) -> None:
    """The client does not notice: what it sent is there, and its commit counts once."""
    broker = started(start_broker, durability)
    producer = transactional(broker)
    expected: list[str] = []
    for turn in range(4):
        values = [f"{turn}-{number}" for number in range(6)]
        producer.begin_transaction()
        send(producer, *values[:3])
        if turn % 2:
            assert producer.flush(TIMEOUT_S) == 0
        broker.kill()
        broker.start()
        send(producer, *values[3:])
        producer.commit_transaction(TIMEOUT_S)
        expected += values
        broker.kill()
        broker.start()
    assert read(broker) == sorted(expected)
