"""aiokafka as a driver: `python -m tests.compat.python.aiokafka_driver HOST:PORT`.

One event loop serves all calls; between two of them it stands still, as does a reader that is
open, which is no other than a slow application.
"""

import sys
import time

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from tests.compat.python.aiokafka_groups import Groups
from tests.compat.serve import Found, Line, decode, decoded_headers, found, serve

LARGE_BYTES = 2 * 1024 * 1024


class Client(Groups):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._consumer: AIOKafkaConsumer | None = None

    def create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        new = NewTopic(topic, partitions, 1, topic_configs=config)
        _raise_any(self._run(self._admin.create_topics([new])).topic_errors)

    def describe(self, topic: str) -> dict[str, str]:
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic)]
        [response] = self._run(self._admin.describe_configs(asked))
        [(code, message, _, _, rows)] = response.resources
        _raise_any([(topic, code, message)])
        return {row[0]: row[1] for row in rows}

    def alter(self, topic: str, config: dict[str, str]) -> None:
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic, config)]
        [response] = self._run(self._admin.alter_configs(asked))
        _raise_any([(row[3], row[0], row[1]) for row in response.resources])

    def partitions(self, topic: str) -> int:
        if topic not in self._run(self._admin.list_topics()):
            return 0
        [described] = self._run(self._admin.describe_topics([topic]))
        return len(described["partitions"])

    def produce(self, topic: str, partition: int, codec: str, records: list[Line]) -> list[int]:
        return self._run(self._produce(topic, partition, codec, records))

    async def _produce(
        self, topic: str, partition: int, codec: str, records: list[Line]
    ) -> list[int]:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if codec == "none" else codec,
            max_request_size=LARGE_BYTES,
            enable_idempotence=True,
            linger_ms=20,
        )
        async with producer:
            waiting = [
                await producer.send(
                    topic,
                    decode(record["value"]),
                    decode(record["key"]),
                    partition,
                    record["timestamp"],
                    decoded_headers(record),
                )
                for record in records
            ]
            return [(await future).offset for future in waiting]

    def open(self, topic: str, partition: int, start: str, at: int) -> None:
        self._run(self._open(TopicPartition(topic, partition), start, at))

    async def _open(self, place: TopicPartition, start: str, at: int) -> None:
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap, auto_offset_reset="none"
        )
        await self._consumer.start()
        self._consumer.assign([place])
        if start == "earliest":
            await self._consumer.seek_to_beginning(place)
        elif start == "latest":
            await self._consumer.seek_to_end(place)
        elif start == "offset":
            self._consumer.seek(place, at)
        else:
            found_at = await self._consumer.offsets_for_times({place: at})
            self._consumer.seek(place, found_at[place].offset)

    def take(self, count: int, timeout_ms: int) -> list[Found]:
        return self._run(self._take(count, timeout_ms))

    async def _take(self, count: int, timeout_ms: int) -> list[Found]:
        assert self._consumer is not None
        read: list[Found] = []
        deadline = time.monotonic() + timeout_ms / 1_000
        while len(read) < count and time.monotonic() < deadline:
            polled = await self._consumer.getmany(timeout_ms=100, max_records=count - len(read))
            for rows in polled.values():
                for row in rows:
                    headers = list(row.headers)
                    read.append(found(row.offset, row.key, row.value, row.timestamp, headers))
        return read

    def close(self) -> None:
        assert self._consumer is not None
        self._run(self._consumer.stop())

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        asked = {TopicPartition(topic, partition): RecordsToDelete(before)}
        self._run(self._admin.delete_records(asked))

    def add_partitions(self, topic: str, total: int) -> None:
        self._run(self._admin.create_partitions({topic: NewPartitions(total)}))

    def delete(self, topic: str) -> None:
        _raise_any(self._run(self._admin.delete_topics([topic])).topic_error_codes)


def _raise_any(rows: list[tuple[str | int, ...]]) -> None:
    """The admin client leaves it to its caller to look at the codes: (topic, code, ...)."""
    for topic, code, *message in rows:
        if code:
            raise for_code(code)(f"{topic}: {message}")


if __name__ == "__main__":
    serve(Client(sys.argv[1]), aiokafka.__version__, ["null headers", "records of nothing"])
