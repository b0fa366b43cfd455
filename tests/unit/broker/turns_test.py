"""Long work of administrators takes turns with the requests of others."""

import pytest

from runnel.broker import turns
from runnel.client.raw import decode_reply, encode_frame
from runnel.coordinator.groups import offset_deletion
from runnel.coordinator.records import JournalRecord
from runnel.errors import ErrorCode
from runnel.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from runnel.wire.messages.list_groups import ListGroupsRequest
from runnel.wire.messages.list_transactions import ListTransactionsRequest
from runnel.wire.messages.records.transaction_log import TransactionLogKey, TransactionLogValue
from tests.support.asking import create
from tests.support.asking_groups import commit, fetch_offsets, find
from tests.support.desk import Desk, at_desk
from tests.support.transactions import FEW, Sender

DELETE_VERSION = 2
COUNT = 35


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURN_STEPS", 1)
    monkeypatch.setattr(offset_deletion, "TOMBSTONES_PER_BATCH", 10)


async def many_offsets(desk: Desk, group: str = "g") -> None:
    await create(desk, partitions=COUNT)
    await find(desk, group)
    assert await commit(desk, dict.fromkeys(range(COUNT), 5), group=group) == [0] * COUNT


def begin_to_delete(desk: Desk, *groups: str) -> None:
    request = DeleteGroupsRequest(groups_names=list(groups))
    desk.put(encode_frame(request, DELETE_VERSION, correlation_id=7, client_id="desk"))


async def deleted(desk: Desk) -> list[int]:
    response: DeleteGroupsResponse
    _, response = decode_reply(42, DELETE_VERSION, await desk.next_frame())
    return [each.error_code for each in response.results]


def test_others_are_served_while_a_group_with_many_offsets_is_deleted() -> None:
    async def test(desk: Desk) -> None:
        await many_offsets(desk)
        other = Desk(desk.broker, desk.clock)
        begin_to_delete(desk, "g", "nobody")
        assert await commit(other, {0: 1}, group="other") == [0]
        assert not desk.has_reply
        assert await commit(other, {0: 8}) == [0], "into what is being deleted"
        assert await deleted(desk) == [0, ErrorCode.GROUP_ID_NOT_FOUND]
        assert await fetch_offsets(desk) == {("t", 0): (-1, "", 0)}
        listed = (await desk.ask(ListGroupsRequest())).groups
        assert [each.group_id for each in listed] == ["other"]
        await desk.restart()
        assert await fetch_offsets(desk) == {("t", 0): (-1, "", 0)}

    at_desk(test, FEW)


def test_a_coordinator_that_resigns_meanwhile_deletes_no_more() -> None:
    async def test(desk: Desk) -> None:
        await many_offsets(desk)
        begin_to_delete(desk, "g")
        partition = desk.broker.partitions.get("__consumer_offsets", 0)
        partition.resign(2, partition.leader_epoch + 1)
        desk.broker.groups.role_changed(partition)
        assert await deleted(desk) == [ErrorCode.NOT_COORDINATOR]

    at_desk(test, FEW)


def test_others_are_served_while_very_many_groups_are_listed() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        shard = desk.broker.groups.shard_of("g")
        for number in range(1_000):
            shard.machine.ensure_group(f"g{number}")
        desk.put(encode_frame(ListGroupsRequest(), 5, correlation_id=7, client_id="desk"))
        assert await commit(Desk(desk.broker, desk.clock), {0: 1}, group="new") == [0]
        assert not desk.has_reply
        _, response = decode_reply(16, 5, await desk.next_frame())
        assert {each.group_id for each in response.groups} >= {f"g{at}" for at in range(1_000)}

    at_desk(test, FEW)


def test_others_are_served_while_very_many_transactional_ids_are_listed() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        await Sender(desk).init()
        shard = desk.broker.transactions.shard_of("tx")
        for number in range(1_000):
            key = TransactionLogKey(transactional_id=f"tx{number}")
            shard.write([JournalRecord(key, TransactionLogValue(producer_id=number), 0)])
        desk.put(encode_frame(ListTransactionsRequest(), 2, correlation_id=7, client_id="desk"))
        assert await commit(Desk(desk.broker, desk.clock), {0: 1}) == [0]
        assert not desk.has_reply
        _, response = decode_reply(66, 2, await desk.next_frame())
        assert len(response.transaction_states) == 1_001

    at_desk(test, FEW)
