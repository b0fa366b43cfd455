"""The runtime under coordinators: nothing is told that may be lost, and a refusal changes nothing.

Method: a broker at a desk; its journal is `__consumer_offsets`, its leadership is given and taken
as the cluster would.
"""

import asyncio
import errno
import itertools

import pytest

from runnel.broker.coordinators import SETTLE_TIMEOUT_MS
from runnel.broker.partition import Partition
from runnel.broker.settling import settle
from runnel.broker.waiting import Parked
from runnel.client.raw import decode_reply, encode_frame
from runnel.coordinator.groups.machine import GroupMachine
from runnel.coordinator.runtime import Shard
from runnel.errors import ErrorCode, WireError
from runnel.wire.messages.list_groups import ListGroupsRequest
from runnel.wire.messages.offset_commit import OffsetCommitRequest
from tests.support.asking import create
from tests.support.asking_groups import commit, commit_request, fetch_offsets, find
from tests.support.desk import Desk, at_desk

COMMIT_VERSION = 9
SYNCED = {"runnel.durability": "ack"}


def _partition(desk: Desk, group: str = "g") -> Partition:
    index = desk.broker.groups.index_of(group)
    return desk.broker.partitions.get("__consumer_offsets", index)


def _send(desk: Desk, request: OffsetCommitRequest) -> None:
    desk.put(encode_frame(request, COMMIT_VERSION, correlation_id=7, client_id="desk"))


async def _codes(desk: Desk) -> list[int]:
    _, response = decode_reply(8, COMMIT_VERSION, await desk.next_frame())
    return [each.error_code for topic in response.topics for each in topic.partitions]


def _resign(desk: Desk, partition: Partition) -> None:
    partition.resign(2, partition.leader_epoch + 1)
    desk.broker.groups.role_changed(partition)


def _lead(desk: Desk, partition: Partition) -> None:
    partition.lead(1, partition.leader_epoch + 1, 1, 1)
    desk.broker.groups.role_changed(partition)


def test_a_reply_waits_for_the_disk_where_the_disk_decides() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        partition = _partition(desk)
        _send(desk, commit_request({0: 5}))
        assert partition.log.log_end_offset == 1
        assert not desk.has_reply
        assert await _codes(desk) == [0]
        assert partition.log.flushed_offset == partition.high_watermark == 1

    at_desk(test, SYNCED)


def test_a_coordinator_demoted_between_append_and_high_watermark() -> None:
    """S22 (KAFKA-20634): it does not say that it committed; the next one has what the log has."""

    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        assert await commit(desk, {0: 1}) == [0]
        partition = _partition(desk)
        _send(desk, commit_request({0: 5}))
        await asyncio.sleep(0)  # the end of the turn: what was gathered is written
        assert partition.log.log_end_offset == 2
        _resign(desk, partition)
        assert await _codes(desk) == [ErrorCode.NOT_COORDINATOR]
        assert await commit(desk, {0: 9}) == [ErrorCode.NOT_COORDINATOR]
        partition.log.truncate_to(1)  # as the new leader would have it
        _lead(desk, partition)
        await desk.broker.groups.wait_loaded()
        assert await fetch_offsets(desk) == {("t", 0): (1, "", 0)}

    at_desk(test, SYNCED)


def test_a_high_watermark_of_another_epoch_acknowledges_nothing() -> None:
    """R38: the log goes on, in an epoch in which others may have written these offsets."""

    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        partition = _partition(desk)
        _send(desk, commit_request({0: 5}))
        _resign(desk, partition)
        _lead(desk, partition)
        assert await _codes(desk) == [ErrorCode.NOT_COORDINATOR]
        await desk.broker.groups.wait_loaded()
        assert await fetch_offsets(desk) == {("t", 0): (5, "", 0)}  # unknown outcome: it is there
        assert await commit(desk, {0: 6}) == [0]

    at_desk(test, SYNCED)


def test_a_read_waits_for_what_it_has_seen() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        partition = _partition(desk)
        _send(desk, commit_request({0: 5}))
        reading = asyncio.ensure_future(fetch_offsets(_other_desk(desk)))
        await asyncio.sleep(0)
        assert partition.high_watermark == 0
        assert await reading == {("t", 0): (5, "", 0)}
        assert partition.high_watermark == 1

    at_desk(test, SYNCED)


def _other_desk(desk: Desk) -> Desk:
    return Desk(desk.broker, desk.clock)


def test_a_commit_that_takes_too_long_has_failed() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        partition = _partition(desk)
        partition._flush_soon = lambda _partition, _delay_ms: None
        began_ms = desk.clock.monotonic_ms()
        assert await commit(desk, {0: 5}) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        assert 300 <= desk.clock.monotonic_ms() - began_ms <= 500
        assert partition.high_watermark == 0

    settings = {"offsets.commit.timeout.ms": "300", "runnel.flush.interval.ms": "60000"}
    at_desk(test, {**SYNCED, **settings})


def test_a_full_disk_is_an_error_and_nothing_has_changed() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        assert await commit(desk, {0: 1}) == [0]
        desk.disk.fail("write", errno.ENOSPC, path="__consumer_offsets")
        assert await commit(desk, {0: 5}) == [ErrorCode.NOT_COORDINATOR]
        machine = desk.broker.groups.shard_of("g").machine
        found = machine.offsets.committed.get("g", "t", 0)
        assert found is not None
        assert found.offset == 1
        desk.disk.heal()
        await desk.restart()
        assert await fetch_offsets(desk) == {("t", 0): (1, "", 0)}

    at_desk(test)


def test_until_it_is_loaded_clients_are_told_to_come_again() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        for offset in range(200):
            await commit(desk, {0: offset})
        partition = _partition(desk)
        _resign(desk, partition)
        _lead(desk, partition)
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await commit(desk, {0: 5}) == [loading]
        assert (await desk.ask(ListGroupsRequest())).error_code == loading
        await desk.broker.groups.wait_loaded()
        assert await fetch_offsets(desk) == {("t", 0): (199, "", 0)}

    at_desk(test)


def test_leadership_may_end_while_it_is_loaded() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        await commit(desk, {0: 5})
        partition = _partition(desk)
        for _ in range(3):
            _resign(desk, partition)
            _lead(desk, partition)
        _resign(desk, partition)
        await desk.broker.groups.wait_loaded()
        assert await commit(desk, {0: 6}) == [ErrorCode.NOT_COORDINATOR]
        _lead(desk, partition)
        await desk.broker.groups.wait_loaded()
        assert await fetch_offsets(desk) == {("t", 0): (5, "", 0)}

    at_desk(test)


class _Journal:
    """Stands for `Shard.replay`, which fails as long as it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        self._error = error
        self._replay = Shard.replay
        self.is_broken = False
        self.tried_ms: list[int] = []
        monkeypatch.setattr(Shard, "replay", lambda *given: self.replay(*given))

    def replay(self, shard: Shard[GroupMachine], key: bytes, value: bytes | None, id_: int) -> None:
        if self.is_broken:
            self.tried_ms.append(shard.clock.monotonic_ms())
            raise self._error
        self._replay(shard, key, value, id_)


@pytest.mark.parametrize("error", [WireError("a bad record"), OSError(5, "EIO"), KeyError("a bug")])
def test_a_journal_that_cannot_be_read_costs_its_groups_alone_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        await commit(desk, {0: 5})
        await commit(desk, {0: 7}, group="other")
        assert _partition(desk) is not _partition(desk, "other")
        partition = _partition(desk)
        _resign(desk, partition)
        journal.is_broken = True
        _lead(desk, partition)
        await desk.broker.groups.wait_loaded()
        assert await commit(desk, {0: 6}) == [ErrorCode.NOT_COORDINATOR]
        assert await fetch_offsets(desk, group="other") == {("t", 0): (7, "", 0)}
        assert len((await desk.ask(ListGroupsRequest())).groups) == 1
        desk.broker.groups.role_changed(partition)  # an image that says nothing new about it
        await asyncio.sleep(300)
        tried_ms = journal.tried_ms
        waits_ms = [then - now for now, then in itertools.pairwise(tried_ms)]
        assert waits_ms == pytest.approx(
            [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000], abs=100
        )
        assert await commit(desk, {0: 6}) == [ErrorCode.NOT_COORDINATOR]
        journal.is_broken = False
        await asyncio.sleep(61)
        assert await fetch_offsets(desk) == {("t", 0): (5, "", 0)}
        assert await commit(desk, {0: 6}) == [0]

    journal = _Journal(monkeypatch, error)
    at_desk(test)
    assert "cannot be loaded" in caplog.text
    assert "runnel storage verify /data/__consumer_offsets-" in caplog.text


def test_who_does_not_lead_any_more_does_not_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        await commit(desk, {0: 5})
        partition = _partition(desk)
        _resign(desk, partition)
        journal.is_broken = True
        _lead(desk, partition)
        await desk.broker.groups.wait_loaded()
        assert len(journal.tried_ms) == 1
        _resign(desk, partition)
        await asyncio.sleep(300)
        assert len(journal.tried_ms) == 1
        journal.is_broken = False
        _lead(desk, partition)
        await desk.broker.groups.wait_loaded()
        assert await fetch_offsets(desk) == {("t", 0): (5, "", 0)}

    journal = _Journal(monkeypatch, WireError("a bad record"))
    at_desk(test)


def test_timers_of_a_shard_that_was_closed_do_nothing() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        shard: Shard[GroupMachine] = desk.broker.groups.shard_of("g")
        done: list[str] = []
        shard.after(1000, lambda: done.append("open"))
        await asyncio.sleep(1.1)
        shard.after(1000, lambda: done.append("closed"))
        _resign(desk, _partition(desk))
        await asyncio.sleep(1.1)
        assert done == ["open"]

    at_desk(test)


def test_whoever_waits_hears_of_the_end() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        shard = desk.broker.groups.shard_of("g")
        deferred = shard.defer()
        deferred.answer("first")
        deferred.answer("second")
        assert deferred.response == "first"
        assert deferred not in shard.deferred
        waiting = shard.defer()
        _resign(desk, _partition(desk))
        assert not shard.is_open
        assert waiting.response is None  # its request asks the shard, which says NOT_COORDINATOR

    at_desk(test)


def test_an_answer_that_was_due_later_outwaits_a_disk_that_takes_minutes() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        shard, partition = desk.broker.groups.shard_of("g"), _partition(desk)
        deferred = shard.defer()
        answer = settle([shard], deferred, lambda code: f"{code}")
        assert isinstance(answer, Parked)
        told: list[str] = []
        desk.broker._waiting.park(answer, told.append)
        flush_soon, partition._flush_soon = partition._flush_soon, lambda _it, _delay_ms: None
        shard.append([(b"\0\x7f", b"")])
        deferred.answer("it")
        await asyncio.sleep(2 * SETTLE_TIMEOUT_MS / 1000)
        assert told == []
        flush_soon(partition, 0)
        await asyncio.sleep(1)
        assert told == ["it"]

    at_desk(test, {**SYNCED, "runnel.flush.interval.ms": "600000"})
