"""aiokafka against a broker: create, produce, read back by assignment, list and delete.

Run as `python -m tests.compat.python.aiokafka_suite HOST:PORT` in the environment of
requirements.txt. Each check has an event loop of its own, so that one cannot disturb the next.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.errors import KafkaError

from tests.compat.checks import (
    COMPRESSIONS,
    FIRST_TIMESTAMP_MS,
    PATIENCE_S,
    Checks,
    Placed,
    Record,
    make_record,
    require_equal,
    topic_name,
)

COUNT = 500
PARTITION_COUNT = 2
TOPIC_ALREADY_EXISTS = 36


class Suite:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[AIOKafkaAdminClient]:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        await admin.start()
        try:
            yield admin
        finally:
            await admin.close()

    async def creates_topic(self) -> None:
        topic = await self._create("twice")
        async with self._admin() as admin:
            assert topic in await admin.list_topics(), "not listed"
            again = await admin.create_topics([NewTopic(topic, PARTITION_COUNT, 1)])
            assert again.topic_errors[0][1] == TOPIC_ALREADY_EXISTS, again

    async def reads_back_equal(self, compression: str, idempotent: bool = True) -> None:
        topic = await self._create(f"{compression}-{idempotent}")
        sent = await self._produce(topic, None, compression, idempotent)
        require_equal(sent, await self._read(topic, len(sent)))

    async def lists_offsets(self) -> None:
        topic = await self._create("offsets")
        await self._produce(topic, 0)
        partition = TopicPartition(topic, 0)
        async with AIOKafkaConsumer(bootstrap_servers=self._bootstrap) as consumer:
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: COUNT}
            times = await consumer.offsets_for_times({partition: FIRST_TIMESTAMP_MS + 400})
            assert times[partition].offset == 400, times

    async def deletes(self) -> None:
        topic = await self._create("deleted")
        await self._produce(topic, 0)
        async with self._admin() as admin:
            await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(300)})
            assert (await self._read(topic, COUNT - 300))[0].offset == 300
            await admin.delete_topics([topic])

    async def _create(self, purpose: str) -> str:
        topic = topic_name("aiokafka", purpose)
        async with self._admin() as admin:
            created = await admin.create_topics([NewTopic(topic, PARTITION_COUNT, 1)])
            assert created.topic_errors[0][1] == 0, created
            await _listed(admin, topic)
        return topic

    async def _produce(
        self, topic: str, partition: int | None, compression: str = "none", idempotent: bool = True
    ) -> list[Placed]:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if compression == "none" else compression,
            enable_idempotence=idempotent,
            linger_ms=20,
        )
        sent: list[Placed] = []
        async with producer:
            waiting = []
            for index in range(COUNT):
                record = make_record(index, null_header=False)
                future = await producer.send(
                    topic,
                    record.value,
                    record.key,
                    partition,
                    record.timestamp_ms,
                    list(record.headers),
                )
                waiting.append((record, future))
            for record, future in waiting:
                place = await future
                sent.append(Placed(place.partition, place.offset, record))
        return sent

    async def _read(self, topic: str, count: int) -> list[Placed]:
        read: list[Placed] = []
        partitions = [TopicPartition(topic, index) for index in range(PARTITION_COUNT)]
        async with AIOKafkaConsumer(bootstrap_servers=self._bootstrap) as consumer:
            consumer.assign(partitions)
            await consumer.seek_to_beginning(*partitions)
            while len(read) < count:
                found = await asyncio.wait_for(consumer.getone(), PATIENCE_S)
                record = Record(found.key, found.value, found.timestamp, tuple(found.headers))
                read.append(Placed(found.partition, found.offset, record))
        return read


async def _listed(admin: AIOKafkaAdminClient, topic: str) -> None:
    """Wait until metadata shows the topic, which may be after the controller's answer."""
    for _ in range(250):
        if topic in await admin.list_topics():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{topic} is not listed")


def _run(body: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(body())


def main() -> None:
    checks = Checks((KafkaError,))
    suite = Suite(sys.argv[1])
    checks.check("create a topic, create it again, list", partial(_run, suite.creates_topic))
    for compression in COMPRESSIONS:
        body = partial(suite.reads_back_equal, compression)
        checks.check(f"produce, read: {compression}", partial(_run, body))
    plain = partial(suite.reads_back_equal, "none", False)
    checks.check("produce, read: acks=1", partial(_run, plain))
    checks.check("list offsets: earliest, latest, by time", partial(_run, suite.lists_offsets))
    checks.check("delete records, delete a topic", partial(_run, suite.deletes))
    checks.end()


if __name__ == "__main__":
    main()
