"""confluent-kafka's groups and transactions, for its driver; the calls are in `group_calls.py`."""

import time
from typing import Any, cast

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.compat.checks import PATIENCE_S
from tests.compat.serve import (
    COPIED,
    CommittedLine,
    GroupLine,
    Line,
    PolledLine,
    decode,
    decoded_headers,
    found,
)

Settings = dict[str, str | int | float | bool]


class Groups:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin = AdminClient(settings)
        self._members: dict[str, Consumer] = {}

    def join(self, member: str, group: str, topic: str, protocol: str) -> None:
        self._members[member] = self._joined(group, topic, protocol)

    def _joined(self, group: str, topic: str, protocol: str = "classic") -> Consumer:
        consumer = Consumer(
            {
                **self._settings,
                "group.id": group,
                "group.protocol": protocol,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": self.isolation(),
            }
        )
        consumer.subscribe([topic])
        return consumer

    def isolation(self) -> str:
        return "read_committed"

    def poll(self, member: str, timeout_ms: int) -> list[PolledLine]:
        messages = self._members[member].consume(500, timeout=timeout_ms / 1_000)
        return [_polled(message) for message in messages]

    def assigned(self, member: str) -> list[int]:
        return [place.partition for place in self._members[member].assignment()]

    def commit(self, member: str) -> None:
        self._members[member].commit(asynchronous=False)

    def leave(self, member: str) -> None:
        self._members.pop(member).close()

    def commit_offset(
        self, group: str, topic: str, partition: int, offset: int, metadata: str
    ) -> None:
        place = TopicPartition(topic, partition, offset, metadata)
        asked = ConsumerGroupTopicPartitions(group, [place])
        answer = done(self._admin.alter_consumer_group_offsets([asked]))
        for row in answer.topic_partitions:
            if row.error is not None:
                raise KafkaException(row.error)

    def committed(self, group: str, topic: str, partition: int) -> CommittedLine | None:
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition)])
        [row] = done(self._admin.list_consumer_group_offsets([asked])).topic_partitions
        if row.error is not None:
            raise KafkaException(row.error)
        return None if row.offset < 0 else {"offset": row.offset, "metadata": row.metadata}

    def list_groups(self) -> list[str]:
        listed = self._admin.list_consumer_groups().result(PATIENCE_S)
        return [row.group_id for row in listed.valid]

    def describe_group(self, group: str) -> GroupLine:
        described = done(self._admin.describe_consumer_groups([group]))
        return {"state": described.state.name.lower(), "members": len(described.members)}

    def delete_group(self, group: str) -> None:
        done(self._admin.delete_consumer_groups([group]))

    def transaction(
        self, transactional_id: str, topic: str, records: list[Line], commit: bool
    ) -> None:
        producer = self._transactional(transactional_id)
        producer.begin_transaction()
        for index, record in enumerate(records):
            producer.produce(
                topic,
                decode(record["value"]),
                decode(record["key"]),
                partition=index % 2,
                timestamp=record["timestamp"],
                headers=list(decoded_headers(record)),
            )
        _end(producer, commit=commit)

    def copy(
        self, transactional_id: str, group: str, topic: str, target: str, count: int, commit: bool
    ) -> None:
        consumer = self._joined(group, topic)
        producer = self._transactional(transactional_id)
        producer.begin_transaction()
        left, deadline = count, time.monotonic() + 2 * PATIENCE_S
        while left:
            assert time.monotonic() < deadline, f"{left} of {count} records not read"
            for message in consumer.consume(left, timeout=0.5):
                if message.error() is not None:
                    raise KafkaException(message.error())
                left -= 1
                producer.produce(
                    target,
                    COPIED + (message.value() or b""),
                    message.key(),
                    partition=cast(int, message.partition()),
                    timestamp=message.timestamp()[1],
                    headers=list(_headers(message)),
                )
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        )
        _end(producer, commit=commit)
        consumer.close()

    def _transactional(self, transactional_id: str) -> Producer:
        producer = Producer({**self._settings, "transactional.id": transactional_id})
        producer.init_transactions(PATIENCE_S)
        return producer


def _end(producer: Producer, *, commit: bool) -> None:
    if commit:
        producer.commit_transaction(PATIENCE_S)
    else:
        producer.flush(PATIENCE_S)  # so that the log has what is aborted
        producer.abort_transaction(PATIENCE_S)


def _polled(message: "Message[bytes, bytes]") -> PolledLine:
    if message.error() is not None:
        raise KafkaException(message.error())
    line = found(
        cast(int, message.offset()),
        message.key(),
        message.value(),
        message.timestamp()[1],
        _headers(message),
    )
    return {**line, "partition": cast(int, message.partition())}


def _headers(message: "Message[bytes, bytes]") -> list[tuple[str, bytes | None]]:
    return cast(list[tuple[str, bytes | None]], message.headers() or [])


def done(futures: dict[Any, Any]) -> Any:  # noqa: ANN401  # each admin call has its own answer
    return next(iter(futures.values())).result(PATIENCE_S)
