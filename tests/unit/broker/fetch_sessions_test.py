"""Goal: a fetch session tells only news, and all of them."""

import pytest

from runnel.broker.security import Operation, Resource
from runnel.errors import ErrorCode
from runnel.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from tests.support.asking import (
    FETCH_BY_NAME,
    batch,
    create,
    fetch_request,
    produce,
)
from tests.support.desk import Desk, at_desk


def test_fetch_sessions_tell_only_news() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=3)
        topics = [
            FetchTopic(
                topic="t",
                partitions=[
                    FetchPartition(partition=n, partition_max_bytes=9999) for n in (0, 1, 2)
                ],
            )
        ]
        full = await desk.ask(FetchRequest(session_epoch=0, topics=topics), FETCH_BY_NAME)
        assert full.session_id > 0
        assert len(full.responses[0].partitions) == 3
        session = {"session_id": full.session_id}
        quiet = await desk.ask(FetchRequest(**session, session_epoch=1), FETCH_BY_NAME)
        assert quiet.responses == []
        await produce(desk, batch(b"v"), index=1)
        news = await desk.ask(FetchRequest(**session, session_epoch=2), FETCH_BY_NAME)
        (told,) = news.responses[0].partitions
        assert told.partition_index == 1
        wrong = await desk.ask(FetchRequest(**session, session_epoch=2), FETCH_BY_NAME)
        assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        forget = [ForgottenTopic(topic="t", partitions=[1])]
        request = FetchRequest(**session, session_epoch=3, forgotten_topics_data=forget)
        assert (await desk.ask(request, FETCH_BY_NAME)).responses == []
        unknown = await desk.ask(FetchRequest(session_id=99, session_epoch=4), FETCH_BY_NAME)
        assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    at_desk(test)


def test_an_epoch_that_nobody_has_opens_no_session() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        for epoch in (-2, -256, 5):
            answer = await desk.ask(fetch_request(session_epoch=epoch), FETCH_BY_NAME)
            assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            assert answer.session_id == 0

    at_desk(test)


async def opened(desk: Desk, *asked: FetchPartition) -> int:
    """A session for these partitions of `t`, of which all was told."""
    topics = [FetchTopic(topic="t", partitions=list(asked))]
    full = await desk.ask(FetchRequest(session_epoch=0, topics=topics), FETCH_BY_NAME)
    assert full.session_id > 0
    assert len(full.responses[0].partitions) == len(asked)
    session_id: int = full.session_id
    return session_id


class NobodyReads:
    """An authorizer, so long as that is so."""

    def __init__(self) -> None:
        self.is_so = False

    def allows(
        self, _principal: str, _host: str, operation: Operation, _resource: Resource, _name: str
    ) -> bool:
        return not self.is_so or operation is not Operation.READ


@pytest.mark.parametrize("has_records", [False, True])
def test_a_right_that_is_taken_away_ends_a_session_that_has_it(*, has_records: bool) -> None:
    """Where a partition was found last is remembered; that one may read it is not."""

    async def test(desk: Desk) -> None:
        await create(desk)
        rights = desk.broker._dispatch._authorizer = NobodyReads()
        session_id = await opened(desk, FetchPartition(partition=0, partition_max_bytes=9999))
        if has_records:
            await produce(desk, batch(b"v"))
        rights.is_so = True
        told = await desk.ask(FetchRequest(session_id=session_id, session_epoch=1), FETCH_BY_NAME)
        (refused,) = told.responses[0].partitions
        assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert not refused.records

    at_desk(test)


def test_a_session_that_went_another_way_is_told_at_once() -> None:
    """Though nothing else is new, and again as long as it does not turn."""

    async def test(desk: Desk) -> None:
        await create(desk)
        await produce(desk, batch(b"a"))
        asked = FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=9999)
        session_id = await opened(desk, asked)
        desk.broker.partitions.get("t", 0).lead(1, 4, 1, 1)
        asked.last_fetched_epoch = 3  # of which nothing is known here: the one before ends at 1
        topics = [FetchTopic(topic="t", partitions=[asked])]
        before_ms = desk.clock.monotonic_ms()
        for epoch in (1, 2):
            request = FetchRequest(
                session_id=session_id,
                session_epoch=epoch,
                topics=topics if epoch == 1 else [],
                max_wait_ms=5000,
                min_bytes=1,
            )
            told = await desk.ask(request, FETCH_BY_NAME)
            (data,) = told.responses[0].partitions
            assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 1)
        assert desk.clock.monotonic_ms() - before_ms < 100, "there is nothing to wait for"

    at_desk(test)


def test_what_works_again_is_told() -> None:
    """Once; and with all that the error did not say."""

    async def test(desk: Desk) -> None:
        await create(desk)
        asked = FetchPartition(partition=0, partition_max_bytes=9999)
        session_id = await opened(desk, asked)
        partition = desk.broker.partitions.get("t", 0)
        told = []
        for epoch in range(1, 6):
            if epoch == 2:
                partition.resign(2, partition.leader_epoch)
            elif epoch == 4:
                partition.lead(1, partition.leader_epoch, 1, 1)
            request = FetchRequest(session_id=session_id, session_epoch=epoch)
            answer = await desk.ask(request, FETCH_BY_NAME)
            told.append(
                [each.error_code for topic in answer.responses for each in topic.partitions]
            )
        wrong = ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert told == [[], [wrong], [wrong], [0], []]

    at_desk(test)
