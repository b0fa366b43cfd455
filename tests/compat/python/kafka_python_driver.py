"""kafka-python as a driver: `python -m tests.compat.python.kafka_python_driver HOST:PORT`."""

import sys
import time

import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from tests.compat.checks import PATIENCE_S
from tests.compat.python.kafka_python_groups import Groups
from tests.compat.serve import Found, Line, decode, decoded_headers, found, serve

LARGE_BYTES = 2 * 1024 * 1024


class Client(Groups):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._consumer: KafkaConsumer | None = None

    def create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        options = {"num_partitions": partitions, "replication_factor": 1, "configs": config}
        self._admin.create_topics({topic: options}, wait_for_metadata=True)

    def describe(self, topic: str) -> dict[str, str]:
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic)]
        described = self._admin.describe_configs(asked, config_filter="all")["topic"][topic]
        return {name: row["value"] for name, row in described.items()}

    def alter(self, topic: str, config: dict[str, str]) -> None:
        self._admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, config)])

    def partitions(self, topic: str) -> int:
        if topic not in self._admin.list_topics():
            return 0
        return len(self._admin.describe_topics([topic])[0]["partitions"])

    def produce(self, topic: str, partition: int, codec: str, records: list[Line]) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if codec == "none" else codec,
            max_request_size=LARGE_BYTES,
            linger_ms=20,
        )
        try:
            waiting = [
                producer.send(
                    topic,
                    decode(record["value"]),
                    decode(record["key"]),
                    decoded_headers(record),
                    partition=partition,
                    timestamp_ms=record["timestamp"],
                )
                for record in records
            ]
            producer.flush(PATIENCE_S)
            return [future.get(PATIENCE_S).offset for future in waiting]
        finally:
            producer.close()

    def open(self, topic: str, partition: int, start: str, at: int) -> None:
        self._consumer = KafkaConsumer(bootstrap_servers=self._bootstrap, auto_offset_reset="none")
        place = TopicPartition(topic, partition)
        self._consumer.assign([place])
        if start == "earliest":
            self._consumer.seek_to_beginning(place)
        elif start == "latest":
            self._consumer.seek_to_end(place)
        elif start == "offset":
            self._consumer.seek(place, at)
        else:
            self._consumer.seek(place, self._consumer.offsets_for_times({place: at})[place].offset)

    def take(self, count: int, timeout_ms: int) -> list[Found]:
        assert self._consumer is not None
        read: list[Found] = []
        deadline = time.monotonic() + timeout_ms / 1_000
        while len(read) < count and time.monotonic() < deadline:
            polled = self._consumer.poll(timeout_ms=100, max_records=count - len(read))
            for rows in polled.values():
                for row in rows:
                    headers = list(row.headers)
                    read.append(found(row.offset, row.key, row.value, row.timestamp, headers))
        return read

    def close(self) -> None:
        assert self._consumer is not None
        self._consumer.close()

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        self._admin.delete_records({TopicPartition(topic, partition): before})

    def add_partitions(self, topic: str, total: int) -> None:
        self._admin.create_partitions({topic: total})

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])


if __name__ == "__main__":
    serve(Client(sys.argv[1]), kafka.__version__, ["null headers", "records of nothing"])
