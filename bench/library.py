"""The client library beside confluent-kafka by itself: the same work, written as each is used.

Both have the same settings, both are polled and waited for alike, and both learn of every message
where it went: the library by its deliveries, the other by a callback that keeps partition and
offset. The clock starts when all is connected: after a first message. Readers look at the value
and the offset of every message. The two take turns, a slice of half a second or so each, so that
what else the machine does hits both, and of each the median slice counts: where the kernel puts
librdkafka's threads makes a third of a difference, and changes from slice to slice.
"""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import confluent_kafka
from confluent_kafka import KafkaError
from confluent_kafka import Message as RawMessage

from runnel.bench.frames import values
from runnel.bench.load import PARTITIONS, prime
from runnel.bench.pipeline import LoadError
from runnel.bench.topics import passing_topic
from runnel.client import Consumer, ConsumerConfig, Producer, ProducerConfig
from runnel.client.outbox import SENDS_PER_POLL
from runnel.client.raw import Address, WireClient

SLICES = 9
READS_PER_SEND = 8  # reading is so much quicker, and its first fetches are not typical of it
VALUES = 1000
TIMEOUT_S = 60.0
SLICE_S = 0.1  # of a wait


class Rates(NamedTuple):
    """Messages per second."""

    library: float
    plain: float


def producing(address: Address, record_bytes: int, messages: int) -> Rates:
    """`messages` in each slice of each of the two."""
    run = list(values(record_bytes, VALUES))
    config = ProducerConfig(_spelled(address))
    with WireClient(address) as client, passing_topic(client, "library", PARTITIONS) as topic:
        prime(client, topic)
        return _in_turn(
            messages,
            lambda: _send_by_library(config, topic.name, run, messages),
            lambda: _send_plainly(config, topic.name, run, messages),
        )


def consuming(address: Address, record_bytes: int, messages: int) -> Rates:
    run = list(values(record_bytes, VALUES))
    messages *= READS_PER_SEND
    writing = ProducerConfig(_spelled(address))
    config = ConsumerConfig(_spelled(address))
    with WireClient(address) as client, passing_topic(client, "library", PARTITIONS) as topic:
        _send_by_library(writing, topic.name, run, messages)
        return _in_turn(
            messages,
            lambda: _read_by_library(config, topic.name, messages),
            lambda: _read_plainly(config, topic.name, messages),
        )


def _in_turn(messages: int, library: Callable[[], float], plain: Callable[[], float]) -> Rates:
    """The first of each is not counted; who begins changes from slice to slice."""
    library()
    plain()
    library_s: list[float] = []
    plain_s: list[float] = []
    for slice_index in range(SLICES):
        if slice_index % 2:
            library_s.append(library())
            plain_s.append(plain())
        else:
            plain_s.append(plain())
            library_s.append(library())
    return Rates(messages / statistics.median(library_s), messages / statistics.median(plain_s))


def _send_by_library(config: ProducerConfig, topic: str, run: list[bytes], messages: int) -> float:
    with Producer(config) as producer:
        producer.send(topic, run[0]).result(TIMEOUT_S)
        started = time.perf_counter()
        deliveries = [producer.send(topic, run[index % VALUES]) for index in range(messages)]
        producer.flush(TIMEOUT_S)
        seconds = time.perf_counter() - started
        if min(delivery.offset for delivery in deliveries) < 0:
            raise LoadError("a message has no offset")
    return seconds


def _send_plainly(config: ProducerConfig, topic: str, run: list[bytes], messages: int) -> float:
    producer = confluent_kafka.Producer(config.settings())
    producer.produce(topic, run[0])
    producer.flush(TIMEOUT_S)
    delivered: list[tuple[int | None, int | None]] = []

    def on_delivery(error: KafkaError | None, message: RawMessage) -> None:
        if error is None:
            delivered.append((message.partition(), message.offset()))

    started = time.perf_counter()
    for index in range(messages):
        while True:
            try:
                producer.produce(topic, run[index % VALUES], on_delivery=on_delivery)
                break
            except BufferError:
                producer.poll(0.1)
        if index % SENDS_PER_POLL == 0:
            producer.poll(0)
    while producer.flush(SLICE_S):  # a longer one returns up to half a second late
        pass
    seconds = time.perf_counter() - started
    if len(delivered) != messages:
        raise LoadError(f"{len(delivered)} of {messages} messages were delivered")
    return seconds


def _read_by_library(config: ConsumerConfig, topic: str, messages: int) -> float:
    """Seconds for all messages; the clock starts with the first ones, when all is connected."""
    with Consumer(config) as consumer:
        consumer.subscribe(topic)
        first = len(consumer.poll(TIMEOUT_S))
        started, count, size = time.perf_counter(), first, 0
        while count < messages:
            for message in consumer.poll(TIMEOUT_S):
                count += 1
                size += len(message.value) + message.offset
        return (time.perf_counter() - started) * messages / (messages - first)


def _read_plainly(config: ConsumerConfig, topic: str, messages: int) -> float:
    consumer = confluent_kafka.Consumer({**config.settings(), "enable.partition.eof": False})
    try:
        places = [
            confluent_kafka.TopicPartition(topic, index, confluent_kafka.OFFSET_BEGINNING)
            for index in range(PARTITIONS)
        ]
        consumer.assign(places)
        first = len(consumer.consume(1, TIMEOUT_S))
        started, count, size = time.perf_counter(), first, 0
        while count < messages:
            # It would wait for a whole batch, were it given time for it.
            batch = consumer.consume(config.max_poll_records, 0) or consumer.consume(1, SLICE_S)
            for message in batch:
                if message.error() is None:
                    count += 1
                    size += len(message.value() or b"") + (message.offset() or 0)
        return (time.perf_counter() - started) * messages / (messages - first)
    finally:
        consumer.close()


def _spelled(address: Address) -> str:
    host, port = address
    return f"{host}:{port}"
