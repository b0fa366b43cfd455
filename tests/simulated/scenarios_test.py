"""The named scenarios of groups and fetch sessions. Those of transactions: tests/unit/transactions.

S34 is here as far as fetch sessions go; a right that is taken away needs rights to begin with.
"""

import asyncio

from runnel.errors import ErrorCode
from runnel.types import TopicPartition
from runnel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest
from runnel.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.simulated.calls import committed_offsets
from tests.support.asking import FETCH_BY_NAME, batch, create, produce
from tests.support.desk import Desk, at_desk

SETTINGS = {"offsets.topic.num.partitions": "1", "group.consumer.assignment.interval.ms": "0"}


def _fetch(index: int, *, session_id: int, epoch: int, named: bool) -> FetchRequest:
    asked = FetchPartition(partition=index, partition_max_bytes=9999)
    topics = [FetchTopic(topic="t", partitions=[asked])] if named else []
    return FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics)


def test_s34_a_fetch_session_does_not_outlive_its_broker() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        await produce(desk, batch(b"zero"), index=0)
        await produce(desk, batch(b"one"), index=1)
        full = await desk.ask(_fetch(0, session_id=0, epoch=0, named=True), FETCH_BY_NAME)
        assert full.session_id > 0
        await desk.restart()
        went_on = _fetch(0, session_id=full.session_id, epoch=1, named=False)
        answer = await desk.ask(went_on, FETCH_BY_NAME)
        assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert answer.responses == []

    at_desk(test)


def test_s34_an_id_that_another_client_got_after_the_restart_serves_nobody_else() -> None:
    """The new broker draws the same number for another client, which is in an epoch of its own."""

    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        drawn = desk.broker._services.sessions._random
        before = drawn.getstate()
        full = await desk.ask(_fetch(0, session_id=0, epoch=0, named=True), FETCH_BY_NAME)
        for epoch in (1, 2):
            quiet = _fetch(0, session_id=full.session_id, epoch=epoch, named=False)
            assert (await desk.ask(quiet, FETCH_BY_NAME)).error_code == 0
        await desk.restart()
        desk.broker._services.sessions._random.setstate(before)
        other = Desk(desk.broker, desk.clock)
        theirs = await other.ask(_fetch(1, session_id=0, epoch=0, named=True), FETCH_BY_NAME)
        assert theirs.session_id == full.session_id
        await produce(desk, batch(b"one"), index=1)
        went_on = _fetch(0, session_id=full.session_id, epoch=3, named=False)
        answer = await desk.ask(went_on, FETCH_BY_NAME)
        assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert answer.responses == []
        news = await other.ask(
            _fetch(1, session_id=theirs.session_id, epoch=1, named=False), FETCH_BY_NAME
        )
        assert [told.partition_index for told in news.responses[0].partitions] == [1]

    at_desk(test)


def _beat(
    member: str, epoch: int, topic_id: bytes = b"", owned: list[int] | None = None
) -> ConsumerGroupHeartbeatRequest:
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member, member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms = 60_000
        request.subscribed_topic_names = ["t"]
        request.topic_partitions = []
    elif owned is not None:
        request.topic_partitions = [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=owned)
        ]
    return request


def _given(response: ConsumerGroupHeartbeatResponse) -> list[int]:
    assert response.assignment is not None, response
    return [index for topic in response.assignment.topic_partitions for index in topic.partitions]


def _commit(member: str, epoch: int, index: int, offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    return OffsetCommitRequest(
        group_id="g", member_id=member, generation_id_or_member_epoch=epoch, topics=[topic]
    )


class _AtDesk:
    """The desk as a `Caller`."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def call(self, request: object, version: int, *, timeout_s: float = 2.0) -> object:
        async with asyncio.timeout(timeout_s):
            return await self._desk.ask(request, version)

    def close(self) -> None: ...


def test_s35_who_gives_a_partition_up_late_commits_until_then_and_not_after() -> None:
    async def test(desk: Desk) -> None:
        topic_id = await create(desk, partitions=2)
        await desk.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
        first = await desk.ask(_beat("old", 0))
        assert sorted(_given(first)) == [0, 1]
        await asyncio.sleep(2)
        waits = await desk.ask(_beat("new", 0))
        assert _given(waits) == []
        told = await desk.ask(_beat("old", first.member_epoch, topic_id, [0, 1]))
        (kept,) = _given(told)
        (moved,) = {0, 1} - {kept}
        assert told.member_epoch == first.member_epoch, "it has not let go yet"

        # Late: the new owner asks and asks, and nothing is its own; the old one still commits.
        for _ in range(5):
            await asyncio.sleep(1)
            beat = await desk.ask(_beat("new", waits.member_epoch))
            assert beat.assignment is None
            again = await desk.ask(_beat("old", first.member_epoch, topic_id, [0, 1]))
            assert again.member_epoch == first.member_epoch
        answer = await desk.ask(_commit("old", first.member_epoch, moved, 7), 9)
        assert answer.topics[0].partitions[0].error_code == 0

        freed = await desk.ask(_beat("old", first.member_epoch, topic_id, [kept]))
        assert freed.member_epoch == waits.member_epoch
        gained = await desk.ask(_beat("new", waits.member_epoch, topic_id, []))
        assert _given(gained) == [moved]
        for epoch in (first.member_epoch, first.member_epoch - 1):
            answer = await desk.ask(_commit("old", epoch, moved, 3), 9)
            assert answer.topics[0].partitions[0].error_code == ErrorCode.STALE_MEMBER_EPOCH
        await desk.restart()
        answer = await desk.ask(_commit("old", first.member_epoch, moved, 3), 9)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.STALE_MEMBER_EPOCH
        place = TopicPartition("t", moved)
        assert await committed_offsets(_AtDesk(desk), "g", [place]) == {place: 7}
        answer = await desk.ask(_commit("new", gained.member_epoch, moved, 9), 9)
        assert answer.topics[0].partitions[0].error_code == 0

    at_desk(test, SETTINGS)
