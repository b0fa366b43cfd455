"""Offsets of groups without members: committed, fetched, deleted, and there after a restart."""

import asyncio

import pytest

from runnel.coordinator.groups.machine import GroupMachine
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.apis import APIS, ApiKey
from runnel.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from runnel.wire.messages.delete_groups import DeleteGroupsRequest
from runnel.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from runnel.wire.messages.describe_groups import DescribeGroupsRequest
from runnel.wire.messages.list_groups import ListGroupsRequest
from runnel.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from runnel.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.support.asking import create
from tests.support.asking_groups import (
    commit,
    commit_request,
    fetch_offsets,
    find,
    txn_commit_request,
)
from tests.support.desk import Desk, at_desk

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", APIS[ApiKey.OFFSET_COMMIT].versions)
def test_every_version_commits(version: int) -> None:
    async def test(desk: Desk) -> None:
        topic_id = await create(desk, partitions=2)
        await find(desk, "g")
        assert await commit(
            desk, {0: 5, 1: 6}, version=version, metadata="note", topic_id=topic_id
        ) == [0, 0]
        expected = {("t", 0): (5, "note", 0), ("t", 1): (6, "note", 0)}
        assert await fetch_offsets(desk, indexes=(0, 1)) == expected
        await desk.restart()
        assert await fetch_offsets(desk, indexes=None) == expected

    at_desk(test)


@pytest.mark.parametrize("version", APIS[ApiKey.OFFSET_FETCH].versions)
def test_every_version_fetches(version: int) -> None:
    async def test(desk: Desk) -> None:
        topic_id = await create(desk, partitions=2)
        await find(desk, "g")
        await commit(desk, {1: 6}, metadata="note")
        if version < 8:
            asked = OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])
            response = await desk.ask(OffsetFetchRequest(group_id="g", topics=[asked]), version)
            topics = response.topics
        else:
            named = OffsetFetchRequestTopics(name="t", topic_id=topic_id, partition_indexes=[0, 1])
            group = OffsetFetchRequestGroup(group_id="g", topics=[named])
            response = await desk.ask(OffsetFetchRequest(groups=[group]), version)
            topics = response.groups[0].topics
        (topic,) = topics
        assert (topic.topic_id if version >= 10 else topic.name) in (topic_id, "t")
        nothing, there = topic.partitions
        assert (nothing.committed_offset, nothing.metadata, nothing.error_code) == (-1, "", 0)
        assert (there.committed_offset, there.metadata, there.error_code) == (6, "note", 0)
        assert there.committed_leader_epoch == (3 if version >= 5 else -1)

    at_desk(test)


def test_several_groups_are_fetched_at_once_each_with_its_error() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        await commit(desk, {0: 5}, group="g")
        await commit(desk, {0: 8}, group="h")
        asked = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=each, topics=None) for each in "ghi"]
        )
        response = await desk.ask(asked)
        found = {
            each.group_id: [p.committed_offset for topic in each.topics for p in topic.partitions]
            for each in response.groups
        }
        assert found == {"g": [5], "h": [8], "i": []}

    at_desk(test)


def test_what_is_not_there_is_refused_and_the_rest_committed() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        assert await commit(desk, {0: 5, 9: 1}) == [UNKNOWN, 0]
        assert await commit(desk, {0: 5, -1: 1}) == [UNKNOWN, 0]
        assert await commit(desk, {0: 5}, topic="absent") == [UNKNOWN]
        assert await commit(desk, {0: 5}, topic_id=b"x" * 16, version=10) == [
            ErrorCode.UNKNOWN_TOPIC_ID
        ]
        assert await fetch_offsets(desk, indexes=None) == {("t", 0): (5, "", 0)}

    at_desk(test)


def test_metadata_may_be_as_long_as_the_setting_says() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert await commit(desk, {0: 1}, metadata="x" * 11) == [too_large]
        assert await commit(desk, {0: 1}, metadata="\U0001f600" * 6) == [too_large]
        assert await fetch_offsets(desk) == {("t", 0): (-1, "", 0)}
        assert await commit(desk, {0: 1}, metadata="\U0001f600" * 5) == [0]
        assert await commit(desk, {0: 1}, metadata="é" * 10) == [0]

    at_desk(test, {"offset.metadata.max.bytes": "10"})


def test_a_generation_needs_a_group() -> None:
    """R37."""

    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        absent = ErrorCode.GROUP_ID_NOT_FOUND
        assert await commit(desk, {0: 1}, member="m", generation=3) == [absent]
        assert await commit(desk, {0: 1}, member="m", generation=3, version=8) == [
            ErrorCode.ILLEGAL_GENERATION
        ]
        assert await commit(desk, {0: 1}) == [0]
        assert await commit(desk, {0: 2}, member="m", generation=3) == [ErrorCode.UNKNOWN_MEMBER_ID]
        assert await fetch_offsets(desk) == {("t", 0): (1, "", 0)}

    at_desk(test)


def test_without_the_internal_topic_there_is_no_coordinator() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        assert await commit(desk, {0: 1}) == [ErrorCode.NOT_COORDINATOR]

    at_desk(test)


def test_offsets_in_a_transaction_wait_for_its_marker() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        await find(desk, "g")
        await commit(desk, {0: 1})
        machine = desk.broker.groups.shard_of("g").machine
        _commit_in_transaction(machine, {0: 50, 1: 51})
        unstable = (-1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)
        for _ in range(2):
            assert await fetch_offsets(desk, indexes=(0, 1)) == {
                ("t", 0): (1, "", 0),
                ("t", 1): (-1, "", 0),
            }
            assert await fetch_offsets(desk, indexes=(0, 1), require_stable=True) == {
                ("t", 0): unstable,
                ("t", 1): unstable,
            }
            await desk.restart()
        machine = desk.broker.groups.shard_of("g").machine
        machine.end_transaction(7, is_commit=True)
        assert await fetch_offsets(desk, indexes=(0, 1), require_stable=True) == {
            ("t", 0): (50, "", 0),
            ("t", 1): (51, "", 0),
        }
        _commit_in_transaction(machine, {0: 90})
        machine.end_transaction(7, is_commit=False)
        assert await fetch_offsets(desk, require_stable=True) == {("t", 0): (50, "", 0)}

    at_desk(test)


def test_a_producer_is_told_of_a_stale_member_in_words_it_knows() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        joining = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        member = await desk.ask(joining)
        assert member.error_code == 0, member
        machine = desk.broker.groups.shard_of("g").machine
        for epoch in (member.member_epoch - 1, member.member_epoch + 1):
            request = txn_commit_request({0: 5}, member="m", generation=epoch)
            with pytest.raises(RunnelError) as refused:
                machine.offsets.commit_in_transaction(request, request.topics)
            assert refused.value.code is ErrorCode.ILLEGAL_GENERATION
        assert await commit(desk, {0: 5}, member="m", generation=member.member_epoch - 1) == [
            ErrorCode.STALE_MEMBER_EPOCH
        ]
        request = txn_commit_request({0: 5}, member="m", generation=member.member_epoch)
        (answer,) = machine.offsets.commit_in_transaction(request, request.topics)
        assert [each.error_code for each in answer.partitions] == [0]

    at_desk(test)


def _commit_in_transaction(machine: GroupMachine, offsets: dict[int, int]) -> None:
    """As the handler does once the transaction is known to be open."""
    request = txn_commit_request(offsets)
    machine.offsets.commit_in_transaction(request, request.topics)


def test_a_later_commit_wins_over_an_earlier_one_in_a_transaction() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        machine = desk.broker.groups.shard_of("g").machine
        _commit_in_transaction(machine, {0: 50})
        await commit(desk, {0: 60})
        machine.end_transaction(7, is_commit=True)
        assert await fetch_offsets(desk) == {("t", 0): (60, "", 0)}

    at_desk(test)


def test_offsets_are_deleted_one_by_one() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=3)
        await find(desk, "g")
        await commit(desk, {0: 1, 1: 2})
        machine = desk.broker.groups.shard_of("g").machine
        _commit_in_transaction(machine, {2: 3})
        asked = [OffsetDeleteRequestPartition(partition_index=index) for index in (0, 2, 7)]
        topic = OffsetDeleteRequestTopic(name="t", partitions=asked)
        response = await desk.ask(OffsetDeleteRequest(group_id="g", topics=[topic]))
        results = [(p.partition_index, p.error_code) for t in response.topics for p in t.partitions]
        assert (response.error_code, results) == (0, [(7, UNKNOWN), (0, 0), (2, 0)])
        await desk.restart()
        desk.broker.groups.shard_of("g").machine.end_transaction(7, is_commit=True)
        assert await fetch_offsets(desk, indexes=None) == {("t", 1): (2, "", 0)}
        refused = await desk.ask(OffsetDeleteRequest(group_id="absent", topics=[topic]))
        assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        refused = await desk.ask(OffsetDeleteRequest(group_id="", topics=[topic]))
        assert refused.error_code == ErrorCode.INVALID_GROUP_ID

    at_desk(test)


def test_a_group_is_listed_described_and_deleted() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        await find(desk, "g")
        await commit(desk, {0: 1, 1: 2})
        await commit(desk, {0: 1}, group="other")
        listed = await desk.ask(ListGroupsRequest())
        assert sorted(
            (each.group_id, each.protocol_type, each.group_state, each.group_type)
            for each in listed.groups
        ) == [("g", "", "Empty", "classic"), ("other", "", "Empty", "classic")]
        for states, types, count in (
            (["eMPTY", "Stable"], [], 2),
            (["Stable"], [], 0),
            ([], ["classic"], 2),
            ([], ["Consumer"], 0),
        ):
            asked = ListGroupsRequest(states_filter=states, types_filter=types)
            assert len((await desk.ask(asked)).groups) == count

        wanted = DescribeGroupsRequest(groups=["g", "absent"], include_authorized_operations=True)
        there, absent = (await desk.ask(wanted)).groups
        assert (there.error_code, there.group_state, there.members) == (0, "Empty", [])
        assert there.authorized_operations == 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
        assert (absent.error_code, absent.group_state, absent.error_message) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            "Dead",
            "Group absent not found.",
        )
        _, absent = (await desk.ask(wanted, 5)).groups
        assert (absent.error_code, absent.group_state) == (0, "Dead")

        response = await desk.ask(DeleteGroupsRequest(groups_names=["g", "absent", "g"]))
        assert [(each.group_id, each.error_code) for each in response.results] == [
            ("g", 0),
            ("absent", ErrorCode.GROUP_ID_NOT_FOUND),
        ]
        for _ in range(2):
            listed = await desk.ask(ListGroupsRequest())
            assert [each.group_id for each in listed.groups] == ["other"]
            assert await fetch_offsets(desk, indexes=None) == {}
            await desk.restart()

    at_desk(test)


def test_a_topic_made_anew_has_none_of_the_offsets_of_the_old() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await create(desk, "kept")
        await find(desk, "g")
        await commit(desk, {0: 9})
        await commit(desk, {0: 3}, topic="kept")
        deleted = await desk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
        assert deleted.responses[0].error_code == 0
        await create(desk)
        for _ in range(2):
            assert await fetch_offsets(desk, indexes=None) == {("kept", 0): (3, "", 0)}
            await desk.restart()

    at_desk(test)


def test_very_many_offsets_of_a_deleted_topic_go_in_steps() -> None:
    """And what is committed to the new topic between two steps stays."""

    async def test(desk: Desk) -> None:
        await create(desk, partitions=2500)
        await find(desk, "g")
        await commit(desk, dict.fromkeys(range(2500), 9))
        machine = desk.broker.groups.shard_of("g").machine
        machine.topics_deleted({"t": desk.broker.partitions.get("t", 0).log.topic_id})
        left = machine.offsets.committed.by_group["g"]["t"]
        assert len(left) == 1500
        assert await commit(desk, {2400: 3}) == [0]
        await asyncio.sleep(0.1)
        assert await fetch_offsets(desk, indexes=None) == {("t", 2400): (3, "", 0)}

    at_desk(test)


EXPIRY = {"offsets.retention.minutes": "2", "offsets.retention.check.interval.ms": "1000"}


def test_offsets_expire_when_nobody_commits() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=2)
        await find(desk, "g")
        await commit(desk, {0: 1}, group="old")
        await commit(desk, {0: 1, 1: 2})
        await asyncio.sleep(100)
        await commit(desk, {1: 3})
        await desk.restart()
        await asyncio.sleep(30)
        assert await fetch_offsets(desk, indexes=None) == {("t", 1): (3, "", 0)}
        listed = await desk.ask(ListGroupsRequest())
        assert [each.group_id for each in listed.groups] == ["g"]
        await desk.restart()
        listed = await desk.ask(ListGroupsRequest())
        assert [each.group_id for each in listed.groups] == ["g"]

    at_desk(test, EXPIRY)


def test_what_members_subscribe_to_does_not_expire() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await create(desk, "u")
        await find(desk, "g")
        await commit(desk, {0: 1})
        await commit(desk, {0: 2}, topic="u")
        joining = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        member = await desk.ask(joining)
        for _ in range(5):
            await asyncio.sleep(30)
            beat = ConsumerGroupHeartbeatRequest(
                group_id="g", member_id="m", member_epoch=member.member_epoch
            )
            assert (await desk.ask(beat)).error_code == 0
        assert await fetch_offsets(desk, indexes=None) == {("t", 0): (1, "", 0)}
        leaving = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1)
        assert (await desk.ask(leaving)).error_code == 0
        await asyncio.sleep(2)
        assert await fetch_offsets(desk, indexes=None) == {}
        assert (await desk.ask(ListGroupsRequest())).groups == []

    at_desk(test, EXPIRY)


def test_older_clients_say_themselves_how_long() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        await commit(desk, {0: 1}, version=4, retention_ms=60_000)
        await asyncio.sleep(50)
        assert await fetch_offsets(desk, indexes=None) != {}
        await desk.restart()
        await asyncio.sleep(50)
        assert await fetch_offsets(desk, indexes=None) == {}

    at_desk(test, EXPIRY)


def test_no_offset_expires_while_a_transaction_is_open() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        await commit(desk, {0: 1})
        machine = desk.broker.groups.shard_of("g").machine
        _commit_in_transaction(machine, {0: 50})
        await asyncio.sleep(130)
        assert await fetch_offsets(desk, indexes=None) == {("t", 0): (1, "", 0)}
        machine.end_transaction(7, is_commit=False)
        await asyncio.sleep(2)
        assert await fetch_offsets(desk, indexes=None) == {}
        assert not machine.groups

    at_desk(test, EXPIRY)


def test_a_commit_that_the_journal_cannot_take_changes_nothing() -> None:
    async def test(desk: Desk) -> None:
        await create(desk, partitions=500)
        await find(desk, "g")
        await commit(desk, {0: 1})
        wanted = commit_request(dict.fromkeys(range(500), 2), metadata="x" * 4096)
        response = await desk.ask(wanted, 9)
        (topic,) = response.topics
        assert {each.error_code for each in topic.partitions} == {ErrorCode.UNKNOWN_SERVER_ERROR}
        assert await fetch_offsets(desk, indexes=None) == {("t", 0): (1, "", 0)}

    at_desk(test)


def test_far_too_many_offsets_at_once_are_refused_before_any_work() -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, "g")
        await commit(desk, {0: 1})
        wanted = commit_request({0: 2})
        wanted.topics[0].partitions *= 20_001
        response = await desk.ask(wanted, 9)
        codes = {each.error_code for topic in response.topics for each in topic.partitions}
        assert codes == {ErrorCode.UNKNOWN_SERVER_ERROR}
        assert await fetch_offsets(desk, indexes=None) == {("t", 0): (1, "", 0)}

    at_desk(test)
