"""Consumer groups at the desk: heartbeats to a whole broker, and what a restart brings back."""

import asyncio

from runnel.errors import ErrorCode
from runnel.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from runnel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from runnel.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from runnel.wire.messages.find_coordinator import FindCoordinatorRequest
from runnel.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.desk import Desk, at_desk

ONE_SHARD = {"offsets.topic.num.partitions": "1"}


async def restart(desk: Desk) -> None:
    await desk.restart()
    await asyncio.sleep(1)
    assert not desk.broker.groups.is_loading()


async def prepare(desk: Desk, *topics: str, partitions: int = 4) -> None:
    await desk.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    await desk.ask(
        CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
                for name in topics
            ]
        )
    )


def joining(member_id: str, *topics: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=list(topics),
        topic_partitions=[],
    )


def partitions_of(response: ConsumerGroupHeartbeatResponse) -> list[int]:
    assert not response.error_code, response.error_message
    assert response.assignment is not None
    return sorted(
        index for topic in response.assignment.topic_partitions for index in topic.partitions
    )


def test_one_member_has_all_partitions_and_a_restart_keeps_them() -> None:
    async def talk(desk: Desk) -> None:
        await prepare(desk, "t")
        joined = await desk.ask(joining("a", "t"))
        assert partitions_of(joined) == [0, 1, 2, 3]
        assert (joined.member_id, joined.member_epoch) == ("a", 2)
        assert joined.heartbeat_interval_ms == 5_000
        before = await desk.ask(ConsumerGroupDescribeRequest(group_ids=["g"]))
        assert before.groups[0].group_state == "Stable"
        await restart(desk)
        assert await desk.ask(ConsumerGroupDescribeRequest(group_ids=["g"])) == before
        beat = await desk.ask(
            ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=2)
        )
        assert (beat.error_code, beat.member_epoch, beat.assignment) == (0, 2, None)
        left = await desk.ask(
            ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=-1)
        )
        assert (left.error_code, left.member_epoch) == (0, -1)
        gone = await desk.ask(ConsumerGroupDescribeRequest(group_ids=["g"]))
        assert (gone.groups[0].group_state, gone.groups[0].members) == ("Empty", [])

    at_desk(talk, ONE_SHARD)


def test_a_partition_goes_over_only_when_its_owner_let_go() -> None:
    async def talk(desk: Desk) -> None:
        await prepare(desk, "t")
        first = await desk.ask(joining("a", "t"))
        assert first.assignment is not None
        topic_id = first.assignment.topic_partitions[0].topic_id
        await asyncio.sleep(2)
        second = await desk.ask(joining("b", "t"))
        assert (partitions_of(second), second.member_epoch) == ([], 3)
        told = await desk.ask(
            ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=2)
        )
        kept = partitions_of(told)
        assert (len(kept), told.member_epoch) == (2, 2), "it stays in its epoch until it let go"
        waits = await desk.ask(
            ConsumerGroupHeartbeatRequest(group_id="g", member_id="b", member_epoch=3)
        )
        assert (waits.assignment, waits.member_epoch) == (None, 3)
        revoked = await desk.ask(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="a",
                member_epoch=2,
                topic_partitions=[
                    ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=kept)
                ],
            )
        )
        assert revoked.member_epoch == 3
        await restart(desk)
        given = await desk.ask(
            ConsumerGroupHeartbeatRequest(group_id="g", member_id="b", member_epoch=3)
        )
        assert sorted(partitions_of(given) + kept) == [0, 1, 2, 3]

    at_desk(talk, ONE_SHARD)


def test_who_is_not_a_member_is_told_so() -> None:
    async def talk(desk: Desk) -> None:
        await prepare(desk, "t")
        stray = ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=3)
        assert (await desk.ask(stray)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        await desk.ask(joining("b", "t"))
        assert (await desk.ask(stray)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        ahead = ConsumerGroupHeartbeatRequest(group_id="g", member_id="b", member_epoch=9)
        assert (await desk.ask(ahead)).error_code == ErrorCode.FENCED_MEMBER_EPOCH

    at_desk(talk, ONE_SHARD)


def test_what_is_set_for_a_group_holds_for_it_alone() -> None:
    async def talk(desk: Desk) -> None:
        await prepare(desk, "t")
        wanted = {"consumer.heartbeat.interval.ms": "6000", "consumer.session.timeout.ms": "50000"}
        resource = AlterConfigsResource(
            resource_type=32,
            resource_name="g",
            configs=[AlterableConfig(name=name, value=value) for name, value in wanted.items()],
        )
        altered = await desk.ask(IncrementalAlterConfigsRequest(resources=[resource]))
        assert altered.responses[0].error_code == 0, altered
        assert (await desk.ask(joining("a", "t"))).heartbeat_interval_ms == 6_000
        other = joining("a", "t")
        other.group_id = "other"
        assert (await desk.ask(other)).heartbeat_interval_ms == 5_000
        await asyncio.sleep(47)
        described = await desk.ask(ConsumerGroupDescribeRequest(group_ids=["g", "other"]))
        assert [len(group.members) for group in described.groups] == [1, 0]
        await asyncio.sleep(5)
        described = await desk.ask(ConsumerGroupDescribeRequest(group_ids=["g"]))
        assert described.groups[0].members == []

    at_desk(talk, ONE_SHARD)
