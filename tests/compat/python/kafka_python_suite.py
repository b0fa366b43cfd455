"""kafka-python against a broker: create, produce, read back by assignment, list and delete.

Run as `python -m tests.compat.python.kafka_python_suite HOST:PORT` in the environment of
requirements.txt. The client writes every byte itself and shares no code with librdkafka or Java.
"""

import sys
from functools import partial

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError, TopicAlreadyExistsError

from tests.compat.checks import (
    COMPRESSIONS,
    FIRST_TIMESTAMP_MS,
    PATIENCE_S,
    Checks,
    Placed,
    Record,
    make_record,
    require_equal,
    require_soon,
    topic_name,
)

COUNT = 500
PARTITION_COUNT = 2


class Suite:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def creates_topic(self) -> None:
        topic = self._create("twice")
        try:
            self._create("twice")
        except TopicAlreadyExistsError:
            pass
        else:
            raise AssertionError("created twice")
        assert topic in self._admin.list_topics(), "not listed"

    def reads_back_equal(self, compression: str, idempotent: bool = True) -> None:
        topic = self._create(f"{compression}-{idempotent}")
        sent = self._produce(topic, None, compression, idempotent)
        require_equal(sent, self._read(topic, len(sent)))

    def lists_offsets(self) -> None:
        topic = self._create("offsets")
        self._produce(topic, 0)
        partition = TopicPartition(topic, 0)
        consumer = KafkaConsumer(bootstrap_servers=self._bootstrap)
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: COUNT}
        found = consumer.offsets_for_times({partition: FIRST_TIMESTAMP_MS + 400})[partition]
        assert found.offset == 400, found
        consumer.close()

    def deletes(self) -> None:
        topic = self._create("deleted")
        self._produce(topic, 0)
        self._admin.delete_records({TopicPartition(topic, 0): 300})
        assert self._read(topic, COUNT - 300)[0].offset == 300
        self._admin.delete_topics([topic])
        require_soon(lambda: topic not in self._admin.list_topics(), "still listed")

    def _create(self, purpose: str) -> str:
        topic = topic_name("kafka-python", purpose)
        options = {"num_partitions": PARTITION_COUNT, "replication_factor": 1}
        self._admin.create_topics({topic: options}, wait_for_metadata=True)
        return topic

    def _produce(
        self, topic: str, partition: int | None, compression: str = "none", idempotent: bool = True
    ) -> list[Placed]:
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if compression == "none" else compression,
            enable_idempotence=idempotent,
            linger_ms=20,
        )
        waiting = []
        for index in range(COUNT):
            record = make_record(index, null_header=False)
            future = producer.send(
                topic,
                record.value,
                record.key,
                list(record.headers),
                partition=partition,
                timestamp_ms=record.timestamp_ms,
            )
            waiting.append((record, future))
        producer.flush(PATIENCE_S)
        sent = []
        for record, future in waiting:
            place = future.get(PATIENCE_S)
            sent.append(Placed(place.partition, place.offset, record))
        producer.close()
        return sent

    def _read(self, topic: str, count: int) -> list[Placed]:
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            auto_offset_reset="none",
            consumer_timeout_ms=int(PATIENCE_S * 1_000),
        )
        partitions = [TopicPartition(topic, index) for index in range(PARTITION_COUNT)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        read: list[Placed] = []
        for found in consumer:
            record = Record(found.key, found.value, found.timestamp, tuple(found.headers))
            read.append(Placed(found.partition, found.offset, record))
            if len(read) == count:
                break
        consumer.close()
        assert len(read) == count, f"{len(read)} of {count} records read"
        return read


def main() -> None:
    checks = Checks((KafkaError,))
    suite = Suite(sys.argv[1])
    checks.check("create a topic, create it again, list", suite.creates_topic)
    for compression in COMPRESSIONS:
        body = partial(suite.reads_back_equal, compression)
        checks.check(f"produce, read: {compression}", body)
    checks.check("produce, read: acks=all alone", partial(suite.reads_back_equal, "none", False))
    checks.check("list offsets: earliest, latest, by time", suite.lists_offsets)
    checks.check("delete records, delete a topic", suite.deletes)
    checks.end()


if __name__ == "__main__":
    main()
