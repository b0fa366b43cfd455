"""confluent-kafka as a driver: `python -m tests.compat.librdkafka.confluent_driver HOST:PORT`."""

import sys
import time
from typing import cast

import confluent_kafka
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.compat.checks import PATIENCE_S
from tests.compat.librdkafka.confluent_groups import Groups, done
from tests.compat.serve import Found, Line, decode, decoded_headers, found, serve

LARGE_BYTES = 2 * 1024 * 1024


class Client(Groups):
    def __init__(self, bootstrap: str) -> None:
        super().__init__({"bootstrap.servers": bootstrap, "log_level": 0})
        self._consumer: Consumer | None = None

    def create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        done(self._admin.create_topics([NewTopic(topic, partitions, 1, config=config)]))

    def describe(self, topic: str) -> dict[str, str]:
        entries = done(self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
        return {name: entry.value for name, entry in entries.items()}

    def alter(self, topic: str, config: dict[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        done(self._admin.incremental_alter_configs([resource]))

    def partitions(self, topic: str) -> int:
        listed = self._admin.list_topics(timeout=PATIENCE_S).topics
        return len(listed[topic].partitions) if topic in listed else 0

    def produce(self, topic: str, partition: int, codec: str, records: list[Line]) -> list[int]:
        offsets: dict[int, int] = {}
        refusals: list[KafkaError] = []
        producer = Producer(
            {
                **self._settings,
                "compression.type": codec,
                "message.max.bytes": LARGE_BYTES,
                "message.timeout.ms": int(PATIENCE_S * 1_000),
            }
        )
        for index, record in enumerate(records):

            def acknowledged(
                error: KafkaError | None, message: "Message[bytes, bytes]", index: int = index
            ) -> None:
                if error is None:
                    offsets[index] = cast(int, message.offset())
                else:
                    refusals.append(error)

            producer.produce(
                topic,
                decode(record["value"]),
                decode(record["key"]),
                partition=partition,
                on_delivery=acknowledged,
                timestamp=record["timestamp"],
                headers=list(decoded_headers(record)),
            )
            producer.poll(0)
        producer.flush(PATIENCE_S)
        if refusals:
            raise KafkaException(refusals[0])
        return [offsets[index] for index in range(len(records))]

    def open(self, topic: str, partition: int, start: str, at: int) -> None:
        self._consumer = Consumer(
            {
                **self._settings,
                "group.id": "unused: librdkafka wants a name even where no group is joined",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
            }
        )
        offset = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}.get(start, at)
        if start == "timestamp":
            asked = [TopicPartition(topic, partition, at)]
            offset = self._consumer.offsets_for_times(asked, PATIENCE_S)[0].offset
        self._consumer.assign([TopicPartition(topic, partition, offset)])

    def take(self, count: int, timeout_ms: int) -> list[Found]:
        assert self._consumer is not None
        read: list[Found] = []
        deadline = time.monotonic() + timeout_ms / 1_000
        while len(read) < count and time.monotonic() < deadline:
            for message in self._consumer.consume(count - len(read), timeout=0.1):
                if message.error() is not None:
                    raise KafkaException(message.error())
                headers = cast(list[tuple[str, bytes | None]], message.headers() or [])
                at_ms = message.timestamp()[1]
                offset = cast(int, message.offset())
                read.append(found(offset, message.key(), message.value(), at_ms, headers))
        return read

    def close(self) -> None:
        assert self._consumer is not None
        self._consumer.close()

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        done(self._admin.delete_records([TopicPartition(topic, partition, before)]))

    def add_partitions(self, topic: str, total: int) -> None:
        done(self._admin.create_partitions([NewPartitions(topic, total)]))

    def delete(self, topic: str) -> None:
        done(self._admin.delete_topics([topic]))


if __name__ == "__main__":
    library = confluent_kafka.libversion()[0]
    serve(Client(sys.argv[1]), f"{confluent_kafka.__version__} on librdkafka {library}")
