"""One client of `bench.quotas`, in a process of its own: produces or consumes for a while.

Reads what to do as JSON from its argument, prints "ready", begins at a line on its standard input,
and prints how many bytes it got through in each second, and whether they were right.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

VALUE_BYTES = 1024
POLL_S = 0.05
BATCH_MESSAGES = 500


@dataclass(frozen=True)
class Task:
    kind: str  # produce or consume
    bootstrap: str
    topic: str
    client_id: str
    seconds: float
    paced_mb_s: float = 0.0  # its own pace; 0: as fast as it may


@dataclass
class Done:
    seconds: float
    total_bytes: int
    per_second: list[int]
    throttled_ms_max: int

    @property
    def mb_s(self) -> float:
        return self.total_bytes / self.seconds / 1e6


class Count:
    """Bytes by the second, from the moment it is made."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._began_s = time.monotonic()
        self.total_bytes = 0
        self.per_second = [0] * (int(task.seconds) + 1)
        self.throttled_ms_max = 0

    def elapsed_s(self) -> float:
        return time.monotonic() - self._began_s

    def is_over(self) -> bool:
        return self.elapsed_s() >= self._task.seconds

    def is_ahead(self) -> bool:
        pace = self._task.paced_mb_s * 1e6
        return pace > 0 and self.total_bytes > pace * self.elapsed_s()

    def add(self, size: int) -> None:
        elapsed_s = self.elapsed_s()
        if elapsed_s < self._task.seconds:
            self.total_bytes += size
            self.per_second[int(elapsed_s)] += size

    def throttled(self, event: object) -> None:
        self.throttled_ms_max = max(
            self.throttled_ms_max,
            int(getattr(event, "throttle_time", 0.0) * 1000),
        )

    def done(self) -> Done:
        return Done(
            self._task.seconds,
            self.total_bytes,
            self.per_second[: int(self._task.seconds)],
            self.throttled_ms_max,
        )


def produce(task: Task) -> Done:
    counts: list[Count] = []
    producer = Producer(
        {
            "bootstrap.servers": task.bootstrap,
            "client.id": task.client_id,
            "linger.ms": 5,
            "queue.buffering.max.kbytes": 8 * 1024,
            "throttle_cb": lambda event: counts[0].throttled(event) if counts else None,
        }
    )
    producer.list_topics(task.topic, timeout=10)
    wait_for_start()
    count = Count(task)
    counts.append(count)
    value = bytes(range(256)) * (VALUE_BYTES // 256)
    sent_bytes = 0

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        count.add(VALUE_BYTES)

    while not count.is_over():
        pace = task.paced_mb_s * 1e6
        if pace and sent_bytes > pace * count.elapsed_s():
            producer.poll(0.002)
            continue
        try:
            for _ in range(16):
                producer.produce(task.topic, value, on_delivery=delivered)
                sent_bytes += VALUE_BYTES
            producer.poll(0)
        except BufferError:
            producer.poll(0.01)
    producer.purge()
    return count.done()


def consume(task: Task) -> Done:
    counts: list[Count] = []
    consumer = Consumer(
        {
            "bootstrap.servers": task.bootstrap,
            "client.id": task.client_id,
            "group.id": "unused",
            "enable.auto.commit": False,
            "queued.max.messages.kbytes": 16 * 1024,
            "queued.min.messages": 10_000,
            "throttle_cb": lambda event: counts[0].throttled(event) if counts else None,
        }
    )
    metadata = consumer.list_topics(task.topic, timeout=10)
    partitions = sorted(metadata.topics[task.topic].partitions)
    wait_for_start()
    count = Count(task)
    counts.append(count)
    next_offsets = dict.fromkeys(partitions, 0)
    consumer.assign([TopicPartition(task.topic, index, 0) for index in partitions])
    while not count.is_over():
        if count.is_ahead():
            time.sleep(0.002)
            continue
        for message in consumer.consume(BATCH_MESSAGES, POLL_S):
            if (error := message.error()) is not None:
                raise KafkaException(error)
            index, offset = message.partition(), message.offset()
            assert index is not None and offset == next_offsets[index], "a record was passed over"
            next_offsets[index] = offset + 1
            count.add(len(message.value() or b""))
    consumer.close()
    return count.done()


def wait_for_start() -> None:
    print("ready", flush=True)  # the dialogue with the parent
    sys.stdin.readline()


if __name__ == "__main__":
    given = Task(**json.loads(sys.argv[1]))
    outcome = produce(given) if given.kind == "produce" else consume(given)
    print(json.dumps(asdict(outcome)))  # the dialogue with the parent
