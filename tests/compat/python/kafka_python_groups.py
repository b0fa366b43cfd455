"""kafka-python's groups and transactions, for its driver; the calls are in `group_calls.py`."""

import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import NoError
from kafka.structs import OffsetAndMetadata

from tests.compat.checks import PATIENCE_S
from tests.compat.serve import (
    COPIED,
    CommittedLine,
    GroupLine,
    Line,
    PolledLine,
    UnsupportedError,
    decode,
    decoded_headers,
    found,
)


class Groups:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        self._members: dict[str, KafkaConsumer] = {}

    def join(self, member: str, group: str, topic: str, protocol: str) -> None:
        if protocol != "classic":
            raise UnsupportedError("it has the classic protocol alone")
        self._members[member] = self._joined(group, topic)

    def _joined(self, group: str, topic: str) -> KafkaConsumer:
        return KafkaConsumer(
            topic,
            bootstrap_servers=self._bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )

    def poll(self, member: str, timeout_ms: int) -> list[PolledLine]:
        polled = self._members[member].poll(timeout_ms=timeout_ms)
        return [_polled(row) for rows in polled.values() for row in rows]

    def assigned(self, member: str) -> list[int]:
        return [place.partition for place in self._members[member].assignment()]

    def commit(self, member: str) -> None:
        self._members[member].commit()

    def leave(self, member: str) -> None:
        self._members.pop(member).close()

    def commit_offset(
        self, group: str, topic: str, partition: int, offset: int, metadata: str
    ) -> None:
        place = TopicPartition(topic, partition)
        answer = self._admin.alter_group_offsets(
            group, {place: OffsetAndMetadata(offset, metadata, -1)}
        )
        for error in answer.values():
            if error is not NoError:
                raise error

    def committed(self, group: str, topic: str, partition: int) -> CommittedLine | None:
        place = TopicPartition(topic, partition)
        row = self._admin.list_group_offsets({group: [place]})[group][place]
        return None if row.offset < 0 else {"offset": row.offset, "metadata": row.metadata}

    def list_groups(self) -> list[str]:
        return [row["group_id"] for row in self._admin.list_groups()]

    def describe_group(self, group: str) -> GroupLine:
        described = self._admin.describe_groups([group])[group]
        return {"state": described["group_state"].lower(), "members": len(described["members"])}

    def delete_group(self, group: str) -> None:
        answer = self._admin.delete_groups([group])
        if answer[group] != "OK" and answer[group] is not NoError:
            raise ValueError(answer[group])

    def transaction(
        self, transactional_id: str, topic: str, records: list[Line], commit: bool
    ) -> None:
        producer = self._transactional(transactional_id)
        try:
            producer.begin_transaction()
            for index, record in enumerate(records):
                producer.send(
                    topic,
                    decode(record["value"]),
                    decode(record["key"]),
                    decoded_headers(record),
                    partition=index % 2,
                    timestamp_ms=record["timestamp"],
                )
            _end(producer, commit=commit)
        finally:
            producer.close()

    def copy(
        self, transactional_id: str, group: str, topic: str, target: str, count: int, commit: bool
    ) -> None:
        consumer = self._joined(group, topic)
        producer = self._transactional(transactional_id)
        try:
            producer.begin_transaction()
            left, deadline = count, time.monotonic() + 2 * PATIENCE_S
            offsets: dict[TopicPartition, OffsetAndMetadata] = {}
            while left:
                assert time.monotonic() < deadline, f"{left} of {count} records not read"
                for place, rows in consumer.poll(timeout_ms=500, max_records=left).items():
                    for row in rows:
                        producer.send(
                            target,
                            COPIED + row.value,
                            row.key,
                            list(row.headers),
                            partition=place.partition,
                            timestamp_ms=row.timestamp,
                        )
                        offsets[place] = OffsetAndMetadata(row.offset + 1, "", -1)
                        left -= 1
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            _end(producer, commit=commit)
        finally:
            producer.close()
            consumer.close()

    def _transactional(self, transactional_id: str) -> KafkaProducer:
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap, transactional_id=transactional_id
        )
        producer.init_transactions()
        return producer


def _end(producer: KafkaProducer, *, commit: bool) -> None:
    producer.flush(PATIENCE_S)  # so that the log has what is aborted
    if commit:
        producer.commit_transaction()
    else:
        producer.abort_transaction()


def _polled(row: ConsumerRecord) -> PolledLine:
    line = found(row.offset, row.key, row.value, row.timestamp, list(row.headers))
    return {**line, "partition": row.partition}
