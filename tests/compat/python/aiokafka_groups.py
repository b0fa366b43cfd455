"""aiokafka's groups and transactions, for its driver; the calls are in `group_calls.py`."""

import asyncio
import time
from collections.abc import Coroutine
from typing import TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.structs import ConsumerRecord, OffsetAndMetadata

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

Answer = TypeVar("Answer")


class Groups:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._loop = asyncio.new_event_loop()
        self._admin: AIOKafkaAdminClient = self._run(self._start_admin())
        self._members: dict[str, AIOKafkaConsumer] = {}

    def _run(self, body: "Coroutine[None, None, Answer]") -> Answer:
        return self._loop.run_until_complete(body)

    async def _start_admin(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        await admin.start()
        return admin

    def join(self, member: str, group: str, topic: str, protocol: str) -> None:
        if protocol != "classic":
            raise UnsupportedError("it has the classic protocol alone")
        self._members[member] = self._run(self._joined(group, topic))

    async def _joined(self, group: str, *topics: str) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            *topics,
            bootstrap_servers=self._bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        # It waits for an assignment here; with two members that is a rebalance of both.
        await consumer.start()
        return consumer

    def poll(self, member: str, timeout_ms: int) -> list[PolledLine]:
        polled = self._run(self._members[member].getmany(timeout_ms=timeout_ms))
        return [_polled(row) for rows in polled.values() for row in rows]

    def assigned(self, member: str) -> list[int]:
        return [place.partition for place in self._members[member].assignment()]

    def commit(self, member: str) -> None:
        self._run(self._members[member].commit())

    def leave(self, member: str) -> None:
        self._run(self._members.pop(member).stop())

    def commit_offset(
        self, group: str, topic: str, partition: int, offset: int, metadata: str
    ) -> None:
        self._run(self._commit_offset(group, TopicPartition(topic, partition), offset, metadata))

    async def _commit_offset(
        self, group: str, place: TopicPartition, offset: int, metadata: str
    ) -> None:
        consumer = await self._joined(group)
        try:
            consumer.assign([place])
            await consumer.commit({place: OffsetAndMetadata(offset, metadata)})
        finally:
            await consumer.stop()

    def committed(self, group: str, topic: str, partition: int) -> CommittedLine | None:
        place = TopicPartition(topic, partition)
        asked = self._admin.list_consumer_group_offsets(group, partitions=[place])
        row = self._run(asked)[place]
        return None if row.offset < 0 else {"offset": row.offset, "metadata": row.metadata}

    def list_groups(self) -> list[str]:
        return [row[0] for row in self._run(self._admin.list_consumer_groups())]

    def describe_group(self, group: str) -> GroupLine:
        [response] = self._run(self._admin.describe_consumer_groups([group]))
        [(_, _, state, _, _, members, *_)] = response.groups
        return {"state": state.lower(), "members": len(members)}

    def delete_group(self, group: str) -> None:
        raise UnsupportedError("its admin client cannot delete groups")

    def transaction(
        self, transactional_id: str, topic: str, records: list[Line], commit: bool
    ) -> None:
        self._run(self._transaction(transactional_id, topic, records, commit=commit))

    async def _transaction(
        self, transactional_id: str, topic: str, records: list[Line], *, commit: bool
    ) -> None:
        async with self._producer(transactional_id) as producer:
            await producer.begin_transaction()
            for index, record in enumerate(records):
                await producer.send(
                    topic,
                    decode(record["value"]),
                    decode(record["key"]),
                    index % 2,
                    record["timestamp"],
                    decoded_headers(record),
                )
            await _end(producer, commit=commit)

    def copy(
        self, transactional_id: str, group: str, topic: str, target: str, count: int, commit: bool
    ) -> None:
        self._run(self._copy(transactional_id, group, topic, target, count, commit=commit))

    async def _copy(
        self,
        transactional_id: str,
        group: str,
        topic: str,
        target: str,
        count: int,
        *,
        commit: bool,
    ) -> None:
        consumer = await self._joined(group, topic)
        async with self._producer(transactional_id) as producer:
            await producer.begin_transaction()
            left, deadline = count, time.monotonic() + 2 * PATIENCE_S
            offsets: dict[TopicPartition, int] = {}
            while left:
                assert time.monotonic() < deadline, f"{left} of {count} records not read"
                polled = await consumer.getmany(timeout_ms=500, max_records=left)
                for place, rows in polled.items():
                    for row in rows:
                        value = COPIED + row.value
                        headers = list(row.headers)
                        await producer.send(
                            target, value, row.key, place.partition, row.timestamp, headers
                        )
                        offsets[place] = row.offset + 1
                        left -= 1
            await producer.send_offsets_to_transaction(offsets, group)
            await _end(producer, commit=commit)
        await consumer.stop()

    def _producer(self, transactional_id: str) -> AIOKafkaProducer:
        return AIOKafkaProducer(
            bootstrap_servers=self._bootstrap, transactional_id=transactional_id
        )


async def _end(producer: AIOKafkaProducer, *, commit: bool) -> None:
    await producer.flush()  # so that the log has what is aborted
    await (producer.commit_transaction() if commit else producer.abort_transaction())


def _polled(row: "ConsumerRecord[bytes, bytes]") -> PolledLine:
    line = found(row.offset, row.key, row.value, row.timestamp, list(row.headers))
    return {**line, "partition": row.partition}
