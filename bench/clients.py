"""The same loads by librdkafka (confluent-kafka), because that is what users have.

The client shares the machine with the broker, so its own cost is part of the figure.
"""

import time

from confluent_kafka import KafkaError, Message, Producer

from bench.frames import drop_topic, make_topic
from bench.load import (
    LARGE_RECORD_BYTES,
    PARTITIONS,
    SMALL_RECORD_BYTES,
    Result,
    unique_name,
)
from bench.machine import Usage
from bench.pipeline import LoadError
from tests.support.wire_client import WireClient

QUEUE_MESSAGES_MAX = 100_000
BATCH_BYTES_MAX = 1_000_000
MESSAGES_PER_CALL = 1000
FLUSH_TIMEOUT_S = 120.0


def unbatched(address: tuple[str, int], *, messages: int, pid: int | None = None) -> Result:
    """One record per request: no linger, batches of one."""
    settings = {"linger.ms": 0, "batch.num.messages": 1, "max.in.flight": 100}
    return _produce(address, "rdkafka-unbatched", settings, SMALL_RECORD_BYTES, messages, pid)


def produce(address: tuple[str, int], *, megabytes: int, pid: int | None = None) -> Result:
    """Records of 1 KiB in batches of up to 1 MB. Bytes are those of the values alone."""
    settings = {"linger.ms": 5, "batch.num.messages": 10_000, "batch.size": BATCH_BYTES_MAX}
    messages = megabytes * 1_000_000 // LARGE_RECORD_BYTES
    return _produce(address, "rdkafka-produce", settings, LARGE_RECORD_BYTES, messages, pid)


def _produce(
    address: tuple[str, int],
    purpose: str,
    settings: dict[str, int],
    record_bytes: int,
    messages: int,
    pid: int | None,
) -> Result:
    host, port = address
    with WireClient(address) as client:
        topic = make_topic(client, unique_name(purpose), PARTITIONS)
        producer = Producer(
            {
                "bootstrap.servers": f"{host}:{port}",
                "acks": 1,
                "queue.buffering.max.messages": QUEUE_MESSAGES_MAX,
                "queue.buffering.max.kbytes": 1024 * 1024,
                "log_level": 0,
                **settings,
            }
        )
        producer.list_topics(topic.name, timeout=10)  # connected and warm before the clock starts
        usage, own_cpu_s, started = Usage(pid), time.process_time(), time.perf_counter()
        _send(producer, topic.name, bytes(record_bytes), messages)
        seconds = time.perf_counter() - started
        own_cpu_s = time.process_time() - own_cpu_s
        cost = usage.cost()
        drop_topic(client, topic)
    return Result(seconds, messages, messages * record_bytes, own_cpu_s / seconds, cost)


def _send(producer: Producer, topic: str, value: bytes, messages: int) -> None:
    failed: list[str] = []

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(str(error))

    calls = messages // MESSAGES_PER_CALL
    for call in range(calls):
        while len(producer) > QUEUE_MESSAGES_MAX - MESSAGES_PER_CALL:
            producer.poll(0.001)
        # The call notes errors in the dicts, so each call gets a list of its own.
        run = [{"value": value} for _ in range(MESSAGES_PER_CALL)]
        queued = producer.produce_batch(
            topic, run, partition=call % PARTITIONS, on_delivery=on_delivery
        )
        if queued != MESSAGES_PER_CALL:
            raise LoadError(f"the client queued {queued} of {MESSAGES_PER_CALL} messages")
    if producer.flush(FLUSH_TIMEOUT_S) or failed:
        raise LoadError(f"{len(producer)} messages left, {len(failed)} failed: {failed[:1]}")
