"""A broker dies between any two writes: a transaction is whole or not there, and it ends."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count

import pytest

from runnel.client.raw import ClosedError
from runnel.errors import ErrorCode
from tests.support.asking import create
from tests.support.asking_groups import fetch_offsets, find
from tests.support.desk import Desk, at_desk
from tests.support.transactions import FEW, Outage, Sender, committed

BOTH = pytest.mark.parametrize("is_new", [False, True], ids=["old", "new"])


async def copy(sender: Sender, number: int) -> None:
    """One transaction that writes to two partitions and says how far its reader has come."""
    for index in range(2):
        assert (await sender.send(b"%d" % number, index=index)).error_code == 0
    assert await sender.send_offsets({0: number}) == [0]


async def seen(desk: Desk) -> tuple[list[bytes | None], int]:
    """What is committed. Both partitions must have the same, and nothing may be open."""
    found = await committed(desk)
    assert await committed(desk, index=1) == found
    for index in range(2):
        partition = desk.broker.partitions.get("t", index)
        assert partition.last_stable_offset == partition.log.log_end_offset, "something hangs"
    offsets = await fetch_offsets(desk, require_stable=True)
    return found, offsets["t", 0][0]


async def prepare(desk: Desk, *, is_new: bool) -> Sender:
    await create(desk, partitions=2)
    await find(desk, "g")
    sender = Sender(desk, is_new=is_new)
    await sender.init()
    await copy(sender, 1)
    await sender.commit()
    return sender


def crashes_survived(test: Callable[[Desk, int], Awaitable[bool]]) -> int:
    """How many there are: a crash after no write, after one, and so on to the end of the test."""
    for after_writes in count():
        happened = False

        async def run(desk: Desk, after_writes: int = after_writes) -> None:
            nonlocal happened
            happened = await test(desk, after_writes)

        at_desk(run, FEW)
        if not happened:
            break
    return after_writes


@BOTH
@pytest.mark.parametrize("commit", [False, True], ids=["abort", "commit"])
def test_a_crash_anywhere_and_the_next_owner_finds_all_or_nothing(
    is_new: bool, commit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: set[int] = set()

    async def test(desk: Desk, after_writes: int) -> bool:
        sender = await prepare(desk, is_new=is_new)
        with Outage(monkeypatch, after_writes) as outage, suppress(ClosedError):
            await copy(sender, 2)
            await sender.end(commit=commit)
        await desk.restart()
        following = Sender(desk, is_new=is_new)
        assert (await following.init()).error_code == 0
        values, offset = await seen(desk)
        assert (values, offset) in (([b"1"], 1), ([b"1", b"2"], 2)), after_writes
        outcomes.add(offset)
        zombie = await sender.produce(b"zombie")
        assert zombie.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        await copy(following, 3)
        await following.commit()
        assert await seen(desk) == ([*values, b"3"], 3)
        await desk.restart()
        assert await seen(desk) == ([*values, b"3"], 3)
        return outage.happened

    assert crashes_survived(test) >= 7, "the records and markers of one transaction"
    assert outcomes == ({1, 2} if commit else {1})


@BOTH
@pytest.mark.parametrize("commit", [False, True], ids=["abort", "commit"])
def test_a_crash_at_the_end_and_the_same_producer_asks_again(
    is_new: bool, commit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(desk: Desk, after_writes: int) -> bool:
        sender = await prepare(desk, is_new=is_new)
        await copy(sender, 2)
        with Outage(monkeypatch, after_writes) as outage, suppress(ClosedError):
            await sender.end(commit=commit, keeps_epoch=True)
        await desk.restart()
        ended = await sender.end(commit=commit)
        assert ended.error_code == 0, (after_writes, ended)
        assert sender.epoch == (2 if is_new else 0)
        values = [b"1", *[b"2"] * commit]
        assert await seen(desk) == (values, 2 if commit else 1)
        await copy(sender, 3)
        await sender.commit()
        assert await seen(desk) == ([*values, b"3"], 3)
        return outage.happened

    assert crashes_survived(test) == 5, "Prepare, three markers, Complete"


@BOTH
def test_the_same_where_an_answer_waits_for_the_disk(is_new: bool) -> None:
    """With runnel.durability=ack nothing is committed before its fsync, markers among it."""

    async def test(desk: Desk) -> None:
        sender = await prepare(desk, is_new=is_new)
        for number in range(2, 6):
            await copy(sender, number)
            await (sender.abort() if number % 2 else sender.commit())
        expected = [b"1", b"2", b"4"]
        following = Sender(desk, is_new=is_new)
        assert (await following.init()).error_code == 0
        assert await seen(desk) == (expected, 4)
        await copy(following, 9)
        await desk.restart()
        assert following.state == "Ongoing"
        await following.commit()
        await Sender(desk, is_new=is_new).init()
        assert await seen(desk) == ([*expected, b"9"], 9)

    at_desk(test, {**FEW, "runnel.durability": "ack"})
