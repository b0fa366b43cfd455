"""Offsets that a transaction commits: they count with its marker, or never."""

import pytest

from runnel.errors import ErrorCode
from runnel.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.support.asking import create
from tests.support.asking_groups import commit, fetch_offsets, find
from tests.support.desk import Desk, at_desk
from tests.support.transactions import FEW, Sender

BOTH = pytest.mark.parametrize("is_new", [False, True], ids=["old", "new"])


async def offset(desk: Desk) -> int:
    found = await fetch_offsets(desk)
    return found["t", 0][0]


@BOTH
def test_offsets_count_when_the_transaction_commits(is_new: bool) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        sender = Sender(desk, is_new=is_new)
        await sender.init()
        await sender.send(b"x")
        assert await sender.send_offsets({0: 5}) == [0]
        assert await offset(desk) == -1
        await sender.commit()
        assert await offset(desk) == 5
        assert await sender.send_offsets({0: 9}) == [0]
        await sender.abort()
        assert await offset(desk) == 5
        assert await sender.send_offsets({0: 7}) == [0]
        await desk.restart()
        assert await offset(desk) == 5
        await sender.commit()
        assert await offset(desk) == 7
        await desk.restart()
        assert await offset(desk) == 7

    at_desk(test, FEW)


def test_what_was_deleted_waits_for_no_marker_after_a_restart_either() -> None:
    """Nor if the partition was committed anew, which makes the tombstone no last word."""

    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        sender = Sender(desk)
        await sender.init()
        assert await sender.send_offsets({0: 5}) == [0]
        asked = [OffsetDeleteRequestPartition(partition_index=0)]
        topic = OffsetDeleteRequestTopic(name="t", partitions=asked)
        await desk.ask(OffsetDeleteRequest(group_id="g", topics=[topic]))
        assert await commit(desk, {0: 3}) == [0]
        for _ in range(2):
            assert await fetch_offsets(desk, require_stable=True) == {("t", 0): (3, "", 0)}
            await desk.restart()
        await sender.commit()
        assert await offset(desk) == 3

    at_desk(test, FEW)


def test_a_group_that_was_not_added_is_refused() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        sender = Sender(desk, is_new=False)
        await sender.init()
        assert await sender.commit_offsets({0: 1}) == [ErrorCode.INVALID_TXN_STATE]
        assert await sender.send_offsets({0: 1}) == [0]
        await sender.commit()
        assert await offset(desk) == 1

    at_desk(test, FEW)


@BOTH
def test_a_zombies_offsets_are_refused(is_new: bool) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        zombie, sender = Sender(desk, is_new=is_new), Sender(desk, is_new=is_new)
        await zombie.init()
        assert await zombie.send_offsets({0: 3}) == [0]
        await sender.init()
        assert await zombie.commit_offsets({0: 4}) == [ErrorCode.INVALID_PRODUCER_EPOCH]
        assert await sender.send_offsets({0: 8}) == [0]
        await sender.commit()
        assert await offset(desk) == 8

    at_desk(test, FEW)


def test_a_stale_generation_is_refused_and_nothing_is_pending() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        sender = Sender(desk)
        await sender.init()
        answer = await sender.send_offsets({0: 3}, generation=7, member="m")
        assert answer == [ErrorCode.ILLEGAL_GENERATION]
        await sender.abort()
        assert await offset(desk) == -1

    at_desk(test, FEW)


def test_the_first_offsets_of_all_bring_their_topic_into_being() -> None:
    """A producer looks for the group's coordinator only when the group is in its transaction."""

    async def test(desk: Desk) -> None:
        await create(desk)
        sender = Sender(desk, is_new=False)
        await sender.init()
        assert await sender.send_offsets({0: 5}) == [0]
        await sender.commit()
        assert await offset(desk) == 5

    at_desk(test, FEW)
