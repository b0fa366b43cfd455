"""Goal: an idle session looks at nothing, and yet hears of all that happens to a partition."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tests.support.asking import FETCH_BY_NAME, batch, create, fetch_request, produce
from tests.support.desk import Desk, at_desk

PARTITIONS = 3
WAIT_MS = 500


class Consumer:
    """One session over all partitions of the topic `t`."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.session_id = 0
        self._epoch = 0

    def request(self, offsets: dict[int, int] | None = None, **fields: int) -> FetchRequest:
        rows = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in (offsets or {}).items()
        ]
        request = FetchRequest(
            session_id=self.session_id,
            session_epoch=self._epoch,
            max_wait_ms=fields.get("max_wait_ms", WAIT_MS),
            min_bytes=fields.get("min_bytes", 1),
            isolation_level=fields.get("isolation_level", 0),
            topics=[FetchTopic(topic="t", partitions=rows)] if rows else [],
        )
        self._epoch += 1
        return request

    async def fetch(self, offsets: dict[int, int] | None = None, **fields: int) -> FetchResponse:
        reply = await self.desk.ask(self.request(offsets, **fields), FETCH_BY_NAME)
        assert isinstance(reply, FetchResponse)
        assert reply.error_code == 0
        self.session_id = reply.session_id
        return reply

    async def told(self, **fields: int) -> list[int]:
        """The partitions of the next reply."""
        reply = await self.fetch(None, **fields)
        return [row.partition_index for topic in reply.responses for row in topic.partitions]


def _waiting_on(desk: Desk, index: int = 0) -> int:
    return len(desk.broker.partitions.get("t", index).waiters)


def _idle(test: Callable[[Desk, Consumer], Awaitable[None]]) -> None:
    """A consumer that has been told nothing twice, and so has its watch."""

    async def run(desk: Desk) -> None:
        await create(desk, partitions=PARTITIONS)
        consumer = Consumer(Desk(desk.broker, desk.clock))
        await consumer.fetch(dict.fromkeys(range(PARTITIONS), 0))
        assert await consumer.told() == []
        assert await consumer.told() == []
        assert [_waiting_on(desk, index) for index in range(PARTITIONS)] == [1] * PARTITIONS
        await test(desk, consumer)

    at_desk(run)


def test_records_come_at_once_whether_it_waits_or_not() -> None:
    async def test(desk: Desk, consumer: Consumer) -> None:
        waiting = asyncio.ensure_future(consumer.told())
        await asyncio.sleep(0.1)
        before_ms = desk.clock.monotonic_ms()
        await produce(desk, batch(b"v"), index=1)
        assert await waiting == [1]
        assert desk.clock.monotonic_ms() - before_ms < 5
        assert [_waiting_on(desk, index) for index in range(PARTITIONS)] == [0] * PARTITIONS
        assert (await consumer.fetch({1: 1})).responses == []
        await produce(desk, batch(b"w"), index=2)
        before_ms = desk.clock.monotonic_ms()
        assert await consumer.told() == [2]
        assert desk.clock.monotonic_ms() - before_ms < 5

    _idle(test)


def test_an_idle_fetch_waits_as_long_as_it_says() -> None:
    async def test(desk: Desk, consumer: Consumer) -> None:
        before_ms = desk.clock.monotonic_ms()
        assert await consumer.told() == []
        assert WAIT_MS <= desk.clock.monotonic_ms() - before_ms <= WAIT_MS * 7 / 6
        before_ms = desk.clock.monotonic_ms()
        assert await consumer.told(max_wait_ms=0) == []
        assert await consumer.told() == []
        assert await consumer.told(min_bytes=0) == []
        assert desk.clock.monotonic_ms() - before_ms < WAIT_MS * 7 / 6

    _idle(test)


def test_another_start_of_the_log_and_another_epoch_are_news() -> None:
    async def test(desk: Desk, consumer: Consumer) -> None:
        await produce(desk, batch(b"v"))
        await consumer.fetch({0: 1})
        assert await consumer.told() == []
        partition = desk.broker.partitions.get("t", 0)
        partition.log.delete_records(1)
        assert await consumer.told() == [0]
        assert await consumer.told() == []
        partition.lead(1, partition.leader_epoch + 1, 1, 1)
        await asyncio.sleep(0.01)
        assert _waiting_on(desk) == 0, "what the reader believes is compared again"

    _idle(test)


def test_what_the_client_says_anew_is_planned_anew() -> None:
    async def test(desk: Desk, consumer: Consumer) -> None:
        await produce(desk, batch(b"v"))
        assert await consumer.told() == [0]
        await consumer.fetch({0: 1})
        assert await consumer.told() == []
        reply = await consumer.fetch({0: 0})  # it goes back, and nothing has moved
        assert [row.partition_index for row in reply.responses[0].partitions] == [0]
        await consumer.fetch({0: 1})
        assert await consumer.told() == []
        assert await consumer.told(isolation_level=1) == []

    _idle(test)


def test_more_is_waited_for_if_one_record_is_not_enough() -> None:
    async def test(desk: Desk, consumer: Consumer) -> None:
        waiting = asyncio.ensure_future(consumer.told(max_wait_ms=60_000, min_bytes=1500))
        await asyncio.sleep(0.1)
        for index in (0, 2):
            assert not waiting.done()
            await produce(desk, batch(bytes(1000)), index=index)
            await asyncio.sleep(0.1)
        assert sorted(await waiting) == [0, 2]

    _idle(test)


@pytest.mark.parametrize("waits", [False, True])
def test_a_session_that_is_closed_leaves_nothing_behind(waits: bool) -> None:
    async def test(desk: Desk, consumer: Consumer) -> None:
        fetching = asyncio.ensure_future(consumer.told()) if waits else None
        await asyncio.sleep(0.01)
        ending = FetchRequest(session_id=consumer.session_id, session_epoch=-1, topics=[])
        await desk.ask(ending, FETCH_BY_NAME)
        assert _waiting_on(desk) == waits
        if fetching is not None:
            await produce(desk, batch(b"v"))
            assert await fetching == [0], "it waited in the session, and is answered"
        assert _waiting_on(desk) == 0

    _idle(test)


def test_who_has_no_session_stands_in_no_list_afterwards() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        for _ in range(3):
            await desk.ask(fetch_request(max_wait_ms=100), FETCH_BY_NAME)
            assert _waiting_on(desk) == 0

    at_desk(test)
