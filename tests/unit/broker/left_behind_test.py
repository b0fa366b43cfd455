"""Goal: what is deleted, and whoever is gone, leaves nothing in memory, however often it happens.

Method: the same load again and again, and Runnel's objects are counted after each. The collector of
cycles is off meanwhile: in a broker it comes next to never to what has lived for a while.
"""

import asyncio
import gc
import traceback
from collections import Counter
from collections.abc import Iterator
from errno import EIO

import pytest

from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.delete_groups import DeleteGroupsRequest
from runnel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from runnel.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from runnel.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from runnel.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.asking import FETCH_BY_NAME, batch, create, produce
from tests.support.asking_groups import commit, find
from tests.support.classic_members import join_request
from tests.support.desk import Desk, at_desk

SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
PARTITIONS = 7
MEMBERS = 3
ROUND_S = 130  # deleted files are gone, and the timers of sessions and rebalances have come up
# What a session keeps until its slot is needed, as in Kafka; and the history of the fake store.
OF_SESSIONS = {"Session", "SessionPartition", "FetchPartition", "Place", "Watch", "Waitable"}
MAY_GROW = OF_SESSIONS | {"Entry", "Change", "Changes"}


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def counted() -> Counter[str]:
    kinds = (type(each) for each in gc.get_objects())
    ours = (kind for kind in kinds if str(kind.__module__).startswith("runnel."))
    return Counter(kind.__qualname__ for kind in ours)


async def delete_topic(desk: Desk, name: str) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1000)
    (result,) = (await desk.ask(request)).responses
    assert result.error_code == 0


async def fetch_and_go(desk: Desk, name: str) -> None:
    """A consumer that opens a session, and is gone while its next fetch waits."""
    client = Desk(desk.broker, desk.clock)
    asked = [FetchPartition(partition=n, partition_max_bytes=1 << 20) for n in range(PARTITIONS)]
    fetch = FetchRequest(min_bytes=1, topics=[FetchTopic(topic=name, partitions=asked)])
    fetch.session_epoch = 0
    opened = await client.ask(fetch, FETCH_BY_NAME)
    assert opened.session_id
    again = FetchRequest(max_wait_ms=30_000, min_bytes=1 << 20, session_id=opened.session_id)
    again.session_epoch = 1
    waiting = asyncio.ensure_future(client.ask(again, FETCH_BY_NAME))
    await asyncio.sleep(1)
    assert not waiting.done()
    waiting.cancel()
    client.close("")


async def join_and_leave(desk: Desk, name: str) -> None:
    """Members of a classic group that join one after the other, commit, and leave."""
    clients = [Desk(desk.broker, desk.clock) for _ in range(MEMBERS)]
    requests = [join_request(group_id=name, topics=(name,)) for _ in clients]
    for client, request in zip(clients, requests, strict=True):
        request.member_id = (await client.ask(request)).member_id
    answers = await asyncio.gather(
        *(client.ask(request) for client, request in zip(clients, requests, strict=True))
    )
    generation = max(answer.generation_id for answer in answers)
    members = [request.member_id for request in requests]
    plan = [SyncGroupRequestAssignment(member_id=each, assignment=b"all") for each in members]
    for client, member in zip(clients, members, strict=True):
        sync = SyncGroupRequest(group_id=name, generation_id=generation, member_id=member)
        sync.protocol_type, sync.protocol_name, sync.assignments = "consumer", "range", plan
        assert (await client.ask(sync)).error_code == 0
        codes = await commit(client, {0: 1}, group=name, topic=name, member=member,
                             generation=generation)  # fmt: skip
        assert codes == [0]
    for client, member in zip(clients, members, strict=True):
        await client.ask(
            LeaveGroupRequest(group_id=name, members=[MemberIdentity(member_id=member)])
        )
        client.close("")
    (deleted,) = (await desk.ask(DeleteGroupsRequest(groups_names=[name]))).results
    assert deleted.error_code == 0


def test_topics_and_groups_that_come_and_go_leave_nothing(no_collector: None) -> None:
    async def test(desk: Desk) -> None:
        await find(desk, "g")
        counts = []
        for number in range(5):
            name = f"passing-{number}"
            await create(desk, name, PARTITIONS)
            await produce(desk, batch(b"one"), topic=name)
            await fetch_and_go(desk, name)
            await join_and_leave(desk, name)
            await delete_topic(desk, name)
            await asyncio.sleep(ROUND_S)
            counts.append(counted())
        assert counts[-1]["SessionPartition"] == 5 * PARTITIONS, "the load is not what it says"
        grown = {kind: n for kind, n in (counts[-1] - counts[1]).items() if kind not in MAY_GROW}
        assert grown == {}

    at_desk(test, SETTINGS)


def test_a_log_that_cannot_be_opened_is_refused_without_end_and_forgotten() -> None:
    async def test(desk: Desk) -> None:
        desk.disk.fail("open", EIO, path="broken-0")
        await create(desk, "broken", 1)
        partitions, lengths = desk.broker.partitions, []
        for _ in range(3):
            with pytest.raises(RunnelError) as refused:
                partitions.get("broken", 0)
            assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            lengths.append(len(traceback.extract_tb(refused.value.__traceback__)))
        assert len(set(lengths)) == 1, "each time it keeps the frames of the times before"
        await delete_topic(desk, "broken")
        with pytest.raises(RunnelError) as refused:
            partitions.get("broken", 0)
        assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    at_desk(test)
