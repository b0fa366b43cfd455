"""A broker process compacts its topics in another process, and everybody reads what is left."""

import time

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.process import BrokerProcess, StartBroker

SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.bytes": str(1 << 20),
    "log.cleanup.policy": "compact",
}
KEYS, ROUNDS = 200, 60
PATIENCE_S = 30.0


def _produce(producer: Producer, round_number: int) -> None:
    for n in range(KEYS):
        producer.produce("t", f"{round_number}".encode() * 200, f"key{n}".encode())
    assert producer.flush(30) == 0


def _read(broker: BrokerProcess) -> list[tuple[int, bytes, bytes]]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    partition = TopicPartition("t", 0, 0)
    _, end = consumer.get_watermark_offsets(partition, timeout=10)
    consumer.assign([partition])
    found: list[tuple[int, bytes, bytes]] = []
    while not found or found[-1][0] < end - 1:
        message = consumer.poll(10)
        assert message is not None and message.error() is None
        offset, key, value = message.offset(), message.key(), message.value()
        assert offset is not None and isinstance(key, bytes) and isinstance(value, bytes)
        found.append((offset, key, value))
    consumer.close()
    return found


def _children(broker: BrokerProcess) -> list[int]:
    return [child.pid for child in psutil.Process(broker.pid).children()]


def test_a_broker_compacts_in_a_process_of_its_own(start_broker: StartBroker) -> None:
    broker = start_broker(settings=SETTINGS)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("t", 1)])["t"].result()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    children: set[int] = set()
    for round_number in range(ROUNDS):
        _produce(producer, round_number)
        children.update(_children(broker))
    deadline = time.monotonic() + PATIENCE_S
    while not (children and len(found := _read(broker)) < KEYS * ROUNDS / 2):
        assert time.monotonic() < deadline
        _produce(producer, ROUNDS - 1)
        children.update(_children(broker))
    assert KEYS <= len(found) < KEYS * ROUNDS / 2
    assert children, "another process did it"
    assert {key: value for _, key, value in found} == {
        f"key{n}".encode(): str(ROUNDS - 1).encode() * 200 for n in range(KEYS)
    }
    assert [offset for offset, _, _ in found] == sorted(offset for offset, _, _ in found)
    while _children(broker):  # it ends when there is nothing to do
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "cleaned t-0" in broker.log
    found = _read(broker)
    broker.kill()
    broker.start()
    assert _read(broker) == found
