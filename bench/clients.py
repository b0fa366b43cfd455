"""The same loads by librdkafka (confluent-kafka), because that is what users have.

The client shares the machine with the broker, so its own cost is part of the figure. It is the
same for every broker: values made before the clock starts, handed over a thousand per call,
reports of delivery only for failures. Bytes are those of the values alone.
"""

import time
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer

from runnel.bench.frames import values
from runnel.bench.load import LARGE_RECORD_BYTES, PARTITIONS, SMALL_RECORD_BYTES, Result, prime
from runnel.bench.pipeline import LoadError
from runnel.bench.topics import passing_topic
from runnel.bench.usage import Usage
from runnel.client.raw import Address, WireClient

QUEUE_MESSAGES_MAX = 100_000
BATCH_BYTES_MAX = 1_000_000
MESSAGES_PER_CALL = 1000
FLUSH_TIMEOUT_S = 120.0


class ClientLoad(NamedTuple):
    record_bytes: int
    acks: str = "1"
    codec: str = "none"
    is_batched: bool = True

    def settings(self) -> dict[str, str | int | bool]:
        """All else is librdkafka's default, which has idempotence off; acks=all has it on."""
        return {
            "acks": self.acks,
            "enable.idempotence": self.acks == "all",
            "compression.type": self.codec,
            "delivery.report.only.error": True,
            "queue.buffering.max.messages": QUEUE_MESSAGES_MAX,
            "queue.buffering.max.kbytes": 1024 * 1024,
            "log_level": 0,
            **(self._batched() if self.is_batched else self._unbatched()),
        }

    @staticmethod
    def _batched() -> dict[str, str | int | bool]:
        return {"linger.ms": 5, "batch.num.messages": 10_000, "batch.size": BATCH_BYTES_MAX}

    @staticmethod
    def _unbatched() -> dict[str, str | int | bool]:
        """One record per request."""
        return {"linger.ms": 0, "batch.num.messages": 1, "max.in.flight": 100}


LARGE_RECORDS = ClientLoad(LARGE_RECORD_BYTES)
SMALL_RECORDS = ClientLoad(SMALL_RECORD_BYTES)
UNBATCHED_RECORDS = ClientLoad(SMALL_RECORD_BYTES, is_batched=False)


def produce(address: Address, load: ClientLoad, *, messages: int, pid: int | None = None) -> Result:
    host, port = address
    messages -= messages % MESSAGES_PER_CALL
    run = [{"value": value} for value in values(load.record_bytes, MESSAGES_PER_CALL)]
    failed: list[str] = []
    with (
        WireClient(address) as client,
        passing_topic(client, "rdkafka", PARTITIONS) as topic,
    ):
        prime(client, topic)
        producer = Producer({"bootstrap.servers": f"{host}:{port}", **load.settings()})
        # Before the clock starts: connected, and, if idempotent, with a producer id, for which
        # librdkafka waits half a second where it asks before it is connected.
        producer.produce(topic.name, run[0]["value"], partition=0)
        producer.flush(FLUSH_TIMEOUT_S)
        usage, own_cpu_s, started = Usage(pid), time.process_time(), time.perf_counter()

        def on_delivery(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failed.append(str(error))

        for call in range(messages // MESSAGES_PER_CALL):
            while len(producer) > QUEUE_MESSAGES_MAX - MESSAGES_PER_CALL:
                producer.poll(0.001)
            queued = producer.produce_batch(
                topic.name, run, partition=call % PARTITIONS, on_delivery=on_delivery
            )
            if queued != MESSAGES_PER_CALL:
                raise LoadError(f"the client queued {queued} of {MESSAGES_PER_CALL} messages")
        if producer.flush(FLUSH_TIMEOUT_S) or failed:
            raise LoadError(f"{len(producer)} messages left, {len(failed)} failed: {failed[:1]}")
        seconds = time.perf_counter() - started
        busy, cost = (time.process_time() - own_cpu_s) / seconds, usage.cost()
    return Result(seconds, messages, messages * load.record_bytes, busy, cost)
