"""From producer to consumer with librdkafka (confluent-kafka), because that is what users have.

Its own threads hand a record over several times, which is part of the figure and the same for
every broker.
"""

import time

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.clients import FLUSH_TIMEOUT_S
from runnel.bench.frames import values
from runnel.bench.latency import PARK_S, WARM_UP, Latency, percentiles
from runnel.bench.load import SMALL_RECORD_BYTES
from runnel.bench.pipeline import LoadError
from runnel.bench.topics import passing_topic
from runnel.client.raw import Address, WireClient

POLL_TIMEOUT_S = 10.0


def end_to_end(address: Address, *, samples: int) -> Latency:
    """From the call that produces a record until a consumer that waits for it returns it."""
    host, port = address
    common = {"bootstrap.servers": f"{host}:{port}", "log_level": 0}
    (value,) = values(SMALL_RECORD_BYTES, 1)
    with WireClient(address) as client, passing_topic(client, "end-to-end", 1) as topic:
        producer = Producer({**common, "acks": 1, "linger.ms": 0})
        consumer = Consumer({**common, "group.id": "end-to-end", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic.name, 0, 0)])
        try:
            times = [_one(producer, consumer, topic.name, value) for _ in range(WARM_UP + samples)]
        finally:
            consumer.close()
    return percentiles(times[WARM_UP:])


def _one(producer: Producer, consumer: Consumer, topic: str, value: bytes) -> float:
    time.sleep(PARK_S)  # the consumer's next fetch is waiting at the broker by then
    started = time.perf_counter()
    producer.produce(topic, value, partition=0)
    message = consumer.poll(POLL_TIMEOUT_S)
    seconds = time.perf_counter() - started
    if message is None or message.error() is not None:
        raise LoadError(f"no record came: {message and message.error()}")
    if producer.flush(FLUSH_TIMEOUT_S):
        raise LoadError("a record was not acknowledged")
    return seconds
