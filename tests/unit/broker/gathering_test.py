"""Commits of many connections in one turn of the loop: one batch, and an answer for each in order.

Method: desks beside each other at one broker put their requests before the loop goes on.
"""

import asyncio
import errno
import gc
from collections.abc import Awaitable, Callable

import pytest

from runnel.broker import journal
from runnel.broker.gathering import LEFT_ALONE, LONE_TURNS, TURN_MAX
from runnel.client.raw import ClosedError, decode_reply, encode_frame
from runnel.errors import ErrorCode
from runnel.wire.apis import ApiKey
from runnel.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from runnel.wire.messages.heartbeat import HeartbeatRequest
from tests.support.asking import create
from tests.support.asking_groups import commit, commit_request, fetch_offsets, find
from tests.support.desk import Desk, at_desk

VERSION = 9
HEARTBEAT_VERSION = 4
SYNCED = {"runnel.durability": "ack"}


def _put(desk: Desk, offset: int, *, group: str = "g", number: int = 7) -> None:
    request = commit_request({0: offset}, group=group)
    desk.put(encode_frame(request, VERSION, correlation_id=number, client_id="desk"))


async def _told(desk: Desk) -> tuple[int, list[int]]:
    """Correlation id and error codes of the next reply."""
    number, response = decode_reply(ApiKey.OFFSET_COMMIT, VERSION, await desk.next_frame())
    return number, [each.error_code for topic in response.topics for each in topic.partitions]


def _batches(desk: Desk, group: str = "g") -> list[int]:
    """How many records each batch of the group's journal has."""
    index = desk.broker.groups.index_of(group)
    log = desk.broker.partitions.get("__consumer_offsets", index).log
    return [header.last_offset_delta + 1 for _, header in log.segments[0].headers()]


def _with_group(
    test: Callable[[Desk, list[Desk]], Awaitable[None]], settings: dict[str, str] | None = None
) -> None:
    """A topic and a group that has committed 0, and three more connections."""

    async def run(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        assert await commit(desk, {0: 0}) == [0]
        await test(desk, [Desk(desk.broker, desk.clock) for _ in range(3)])

    at_desk(run, settings)


@pytest.mark.parametrize("settings", [{}, SYNCED])
def test_what_comes_in_one_turn_is_one_batch_and_all_are_answered(settings: dict[str, str]) -> None:
    async def test(desk: Desk, others: list[Desk]) -> None:
        for offset, each in enumerate(others, 1):
            _put(each, offset)
        assert not any(each.has_reply for each in others)
        assert [await _told(each) for each in others] == [(7, [0])] * 3
        assert _batches(desk) == [1, 3]
        assert await fetch_offsets(desk) == {("t", 0): (3, "", 0)}
        await desk.restart()
        assert await fetch_offsets(desk) == {("t", 0): (3, "", 0)}

    _with_group(test, settings)


def test_a_commit_waits_for_no_other_turn() -> None:
    async def test(desk: Desk, _: list[Desk]) -> None:
        _put(desk, 5)
        await asyncio.sleep(0)
        assert desk.has_reply

    _with_group(test)


def test_commits_that_come_one_by_one_are_written_as_they_come_until_two_meet() -> None:
    async def test(desk: Desk, others: list[Desk]) -> None:
        for offset in range(LONE_TURNS):
            assert await commit(desk, {0: offset}) == [0]
        for offset in range(LEFT_ALONE):
            _put(desk, offset)
            assert desk.has_reply, "it was not left for the end of the turn"
            assert await _told(desk) == (7, [0])
        for _ in range(2):
            before = len(_batches(desk))
            for offset, each in enumerate(others, 1):
                _put(each, offset)
                assert not each.has_reply
            assert [await _told(each) for each in others] == [(7, [0])] * 3
            assert _batches(desk)[before:] == [3]

    _with_group(test)


def test_replies_of_one_connection_keep_their_order() -> None:
    """Commits follow each other; what is not one waits for them, and so do those after it."""

    async def test(desk: Desk, _: list[Desk]) -> None:
        _put(desk, 1, number=1)
        _put(desk, 2, number=2, group="absent")  # written at once: its answer is due before
        heartbeat = HeartbeatRequest(group_id="g", member_id="nobody")
        frame = encode_frame(heartbeat, HEARTBEAT_VERSION, correlation_id=3, client_id="desk")
        last = commit_request({0: 4})
        desk.put(frame + encode_frame(last, VERSION, correlation_id=4, client_id="desk"))
        assert await _told(desk) == (1, [0])
        assert await _told(desk) == (2, [0])
        number, response = decode_reply(12, HEARTBEAT_VERSION, await desk.next_frame())
        assert (number, response.error_code) == (3, ErrorCode.UNKNOWN_MEMBER_ID)
        assert await _told(desk) == (4, [0])

    _with_group(test)


def test_more_than_may_be_in_flight_are_answered_all_the_same() -> None:
    async def test(desk: Desk, _: list[Desk]) -> None:
        frames = [
            encode_frame(commit_request({0: offset}), VERSION, correlation_id=offset)
            for offset in range(1, 14)
        ]
        desk.put(b"".join(frames))
        assert [await _told(desk) for _ in frames] == [(n, [0]) for n in range(1, 14)]
        assert _batches(desk) == [1, 5, 5, 3]
        assert await fetch_offsets(desk) == {("t", 0): (13, "", 0)}

    _with_group(test)


def test_whoever_asks_in_the_same_turn_sees_it() -> None:
    async def test(desk: Desk, others: list[Desk]) -> None:
        _put(others[0], 5)
        reading = asyncio.ensure_future(fetch_offsets(desk))
        assert await reading == {("t", 0): (5, "", 0)}
        assert await _told(others[0]) == (7, [0])

    _with_group(test)


def test_a_disk_that_refuses_is_told_to_all_and_nothing_has_changed() -> None:
    async def test(desk: Desk, others: list[Desk]) -> None:
        desk.disk.fail("write", errno.ENOSPC, path="__consumer_offsets")
        for offset, each in enumerate(others, 1):
            _put(each, offset)
        refused = (7, [ErrorCode.NOT_COORDINATOR])
        assert [await _told(each) for each in others] == [refused] * 3
        found = desk.broker.groups.shard_of("g").machine.offsets.committed.get("g", "t", 0)
        assert found is not None
        assert found.offset == 0
        desk.disk.heal()
        await desk.restart()
        assert await fetch_offsets(desk) == {("t", 0): (0, "", 0)}

    _with_group(test)


def test_an_fsync_that_fails_is_told_at_once() -> None:
    async def test(desk: Desk, others: list[Desk]) -> None:
        desk.disk.fail("sync", errno.EIO, path="__consumer_offsets")
        began_ms = desk.clock.monotonic_ms()
        for offset, each in enumerate(others, 1):
            _put(each, offset)
        refused = (7, [ErrorCode.NOT_COORDINATOR])
        assert [await _told(each) for each in others] == [refused] * 3
        assert desk.clock.monotonic_ms() - began_ms < 1_000

    _with_group(test, SYNCED)


@pytest.mark.parametrize("somebody_asks", [False, True])
def test_a_bug_that_keeps_it_from_being_written_is_told_to_who_gathered(
    somebody_asks: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And to nobody else, though one who asks meanwhile has it written."""

    async def test(desk: Desk, others: list[Desk]) -> None:
        for offset, each in enumerate(others, 1):
            _put(each, offset)
        with monkeypatch.context() as patch:
            patch.setattr(journal, "encode_pairs", None)
            if somebody_asks:
                assert await fetch_offsets(desk) == {("t", 0): (0, "", 0)}
            told = [await _told(each) for each in others]
        assert told == [(7, [ErrorCode.UNKNOWN_SERVER_ERROR])] * 3
        assert "3 commits failed" in caplog.text
        assert await commit(desk, {0: 9}) == [0]

    _with_group(test)


def test_what_was_refused_before_keeps_its_own_error() -> None:
    async def test(desk: Desk, _: list[Desk]) -> None:
        desk.disk.fail("write", errno.ENOSPC, path="__consumer_offsets")
        absent = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await commit(desk, {0: 1, 99: 1}) == [*absent, ErrorCode.NOT_COORDINATOR]

    _with_group(test)


def test_leadership_that_ends_in_the_same_turn_is_told() -> None:
    async def test(desk: Desk, others: list[Desk]) -> None:
        _put(others[0], 5)
        partition = desk.broker.partitions.get(
            "__consumer_offsets", desk.broker.groups.index_of("g")
        )
        partition.resign(2, partition.leader_epoch + 1)
        desk.broker.groups.role_changed(partition)
        assert await _told(others[0]) == (7, [ErrorCode.NOT_COORDINATOR])
        assert partition.log.log_end_offset == 1

    _with_group(test)


def test_a_connection_that_goes_takes_nobody_with_it() -> None:
    """What it committed is written: it was heard."""

    async def test(desk: Desk, others: list[Desk]) -> None:
        _put(others[0], 5)
        _put(others[1], 6)
        others[1].close("the peer is gone")
        assert await _told(others[0]) == (7, [0])
        with pytest.raises(ClosedError):
            await others[1].next_frame()
        assert await fetch_offsets(desk) == {("t", 0): (6, "", 0)}

    _with_group(test)


def test_one_turn_gathers_only_so_many() -> None:
    async def test(desk: Desk, _: list[Desk]) -> None:
        others = [Desk(desk.broker, desk.clock) for _ in range(TURN_MAX // 5 + 1)]
        for each in others:
            for offset in range(5):
                _put(each, offset)
        assert others[-1].has_reply
        assert not others[0].has_reply
        for each in others:
            assert [await _told(each) for _ in range(5)] == [(7, [0])] * 5

    _with_group(test)


def test_under_quotas_each_is_written_by_itself() -> None:
    async def test(desk: Desk, others: list[Desk]) -> None:
        entity = AlterClientQuotasRequestEntityData(entity_type="client-id", entity_name="other")
        limit = OpData(key="request_percentage", value=50.0)
        entry = AlterClientQuotasRequestEntryData(entity=[entity], ops=[limit])
        await desk.ask(AlterClientQuotasRequest(entries=[entry]))
        for offset, each in enumerate(others, 1):
            _put(each, offset)
            assert each.has_reply
        assert _batches(desk) == [1, 1, 1, 1]

    _with_group(test)


def test_a_broker_that_is_killed_writes_nothing_more() -> None:
    async def test(desk: Desk, others: list[Desk]) -> None:
        _put(others[0], 5)
        desk.broker.kill()
        await asyncio.sleep(0)
        assert not others[0].has_reply
        assert _batches(desk) == [1]

    _with_group(test)


def test_a_commit_leaves_no_cycles_behind() -> None:
    """To collect them took a third of the time that commits took."""

    async def test(_desk: Desk, others: list[Desk]) -> None:
        async def turns(count: int) -> None:
            for offset in range(count):
                for each in others:
                    _put(each, offset)
                await asyncio.sleep(0)

        await turns(2)
        gc.collect()
        gc.disable()
        try:
            await turns(100)
            assert gc.collect() < 100
        finally:
            gc.enable()

    _with_group(test)
