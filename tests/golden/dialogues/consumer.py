"""The consumer group protocol (KIP-848).

The hash of a group's topics is another function here than in Kafka: only equality matters.
"""

from typing import Any

from runnel.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from runnel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from runnel.wire.messages.describe_groups import DescribeGroupsRequest
from runnel.wire.messages.heartbeat import HeartbeatRequest
from runnel.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from runnel.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from runnel.wire.messages.list_groups import ListGroupsRequest
from runnel.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from runnel.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from runnel.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.golden.talk import Talk, unequal, with_settings

HASH = "metadata_hash"
DESCRIBE = ConsumerGroupDescribeRequest(group_ids=["g"])
QUICK = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
}
PROMPT = {"group.consumer.assignment.interval.ms": "0"}


def joining(member_id: str, **fields: Any) -> ConsumerGroupHeartbeatRequest:  # noqa: ANN401
    return ConsumerGroupHeartbeatRequest(
        **{
            "group_id": "g",
            "member_id": member_id,
            "member_epoch": 0,
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
            **fields,
        }
    )


def beating(member_id: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatRequest:  # noqa: ANN401
    return ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, **fields
    )


def owning(topic_id: bytes, *indexes: int) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    return [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=list(indexes))
    ]


def committing(member_id: str, epoch: int, index: int = 0) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=index, committed_offset=5)
    return OffsetCommitRequest(
        group_id="g",
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
    )


@unequal(HASH)
async def a_consumer_joins_and_leaves(talk: Talk) -> None:
    await talk.groups_ready()
    topic_id = await talk.topic("t", partitions=2)
    await talk.ask(joining("a"))
    await talk.ask(beating("a", 2))
    await talk.ask(beating("a", 2, topic_partitions=owning(topic_id, 0, 1)))
    await talk.ask(DESCRIBE)
    await talk.ask(DESCRIBE, 0)
    await talk.ask(DescribeGroupsRequest(groups=["g"]))
    await talk.ask(ListGroupsRequest())
    await talk.ask(committing("a", 2), 9)
    fetched = OffsetFetchRequestGroup(group_id="g", member_id="a", member_epoch=2, topics=None)
    await talk.ask(OffsetFetchRequest(groups=[fetched]), 9)
    await talk.restart()
    await talk.ask(beating("a", 2))
    await talk.ask(DESCRIBE)
    await talk.ask(beating("a", -1))
    await talk.ask(DESCRIBE)
    await talk.wait_ms(1500)  # targets are computed a second apart
    await talk.ask(joining("b"))
    await talk.journal("__consumer_offsets")


@unequal(HASH)
@with_settings(PROMPT)
async def a_second_consumer_gets_what_the_first_let_go(talk: Talk) -> None:
    await talk.groups_ready()
    topic_id = await talk.topic("t", partitions=4)
    await talk.ask(joining("a"))
    await talk.ask(joining("b"))
    await talk.ask(beating("b", 3))
    await talk.ask(beating("a", 2, topic_partitions=owning(topic_id, 0, 1, 2, 3)))
    await talk.ask(DESCRIBE)
    await talk.ask(beating("a", 2, topic_partitions=owning(topic_id, 0, 1, 2, 3)))
    await talk.ask(beating("b", 3))
    await talk.ask(committing("a", 2, 3), 9)
    await talk.ask(beating("a", 2, topic_partitions=owning(topic_id, 0, 1)))
    await talk.ask(committing("a", 2, 0), 9)
    await talk.ask(committing("a", 2, 3), 9)
    await talk.ask(beating("b", 3))
    await talk.ask(beating("a", 3, topic_partitions=owning(topic_id, 0, 1)))
    await talk.ask(DESCRIBE)
    await talk.ask(beating("b", -1))
    await talk.ask(beating("a", 3))
    await talk.journal("__consumer_offsets")


@unequal(HASH)
@with_settings(PROMPT)
async def heartbeats_that_no_group_takes(talk: Talk) -> None:
    await talk.groups_ready()
    topic_id = await talk.topic("t", partitions=2)
    await talk.ask(beating("a", 2))
    await talk.ask(beating("a", -1))
    await talk.ask(joining(""))
    await talk.ask(joining("a", group_id=""))
    await talk.ask(joining("a", instance_id=""))
    await talk.ask(joining("a", rack_id=" "))
    await talk.ask(joining("a", rebalance_timeout_ms=-1))
    await talk.ask(joining("a", topic_partitions=None))
    await talk.ask(joining("a", topic_partitions=owning(topic_id, 0)))
    await talk.ask(joining("a", subscribed_topic_names=None))
    await talk.ask(joining("a", server_assignor="best"))
    await talk.ask(beating("a", -2))
    await talk.ask(beating("a", -3))
    await talk.ask(beating("", 2))
    await talk.ask(joining("a"))
    await talk.ask(joining("b"))
    await talk.ask(beating("x", 1))
    await talk.ask(beating("x", -1))
    await talk.ask(beating("a", 6))
    await talk.ask(beating("b", 2))
    await talk.ask(committing("x", 1), 9)
    await talk.ask(committing("a", 8), 9)
    await talk.ask(committing("b", 2), 9)
    await talk.ask(committing("a", 2), 8)
    await talk.ask(committing("a", -1), 9)
    stale = OffsetFetchRequestGroup(group_id="g", member_id="a", member_epoch=10, topics=None)
    nobody = OffsetFetchRequestGroup(group_id="g", member_id="x", member_epoch=1, topics=None)
    await talk.ask(OffsetFetchRequest(groups=[stale]), 9)
    await talk.ask(OffsetFetchRequest(groups=[nobody]), 9)
    unknown = ConsumerGroupDescribeRequest(group_ids=["", "unknown"])
    await talk.ask(unknown)


@unequal(HASH)
@with_settings(PROMPT)
async def static_consumers_come_back(talk: Talk) -> None:
    await talk.groups_ready()
    topic_id = await talk.topic("t", partitions=2)
    await talk.ask(joining("a", instance_id="i"))
    await talk.ask(joining("b", instance_id="j"))
    await talk.ask(beating("a", 2, instance_id="i", topic_partitions=owning(topic_id, 0)))
    await talk.ask(beating("a", 2, instance_id="i", topic_partitions=owning(topic_id, 0)))
    await talk.ask(beating("b", 3, instance_id="j"))
    await talk.ask(joining("a2", instance_id="i"))
    await talk.ask(beating("a", -2, instance_id="i"))
    await talk.ask(DESCRIBE)
    await talk.ask(joining("a2", instance_id="i"))
    await talk.ask(beating("a", 3, instance_id="i"))
    await talk.ask(beating("z", 2, instance_id="z"))
    await talk.ask(beating("a", -1, instance_id="i"))
    await talk.ask(DESCRIBE)
    await talk.ask(beating("a2", -1, instance_id="i"))
    await talk.ask(DESCRIBE)
    await talk.journal("__consumer_offsets")


@unequal(HASH)
@with_settings(PROMPT)
async def consumers_by_regular_expression(talk: Talk) -> None:
    await talk.groups_ready()
    await talk.topic("orders", partitions=1)
    await talk.topic("bills", partitions=1)
    for pattern in ("[", "(", "*", "a**", "\\", "a{1001}", "(?!a)"):
        asked = joining("x", subscribed_topic_names=None, subscribed_topic_regex=pattern)
        await talk.ask(asked)
    await talk.ask(joining("a", subscribed_topic_names=["bills"], subscribed_topic_regex="ord.*"))
    await talk.wait_ms(500)
    await talk.ask(beating("a", 2))
    await talk.ask(DESCRIBE)
    await talk.ask(joining("b", subscribed_topic_names=None, subscribed_topic_regex="ord.*"))
    await talk.ask(beating("a", -1))
    await talk.ask(beating("b", 4))
    await talk.ask(DESCRIBE)


@unequal(HASH)
@with_settings(QUICK)
async def consumers_are_fenced_in_time(talk: Talk) -> None:
    await talk.groups_ready()
    topic_id = await talk.topic("t", partitions=2)
    await talk.ask(joining("a", rebalance_timeout_ms=1000))
    await talk.ask(joining("b", rebalance_timeout_ms=1000))
    told = beating("a", 2, topic_partitions=owning(topic_id, 0, 1))
    await talk.ask(told)
    await talk.wait_ms(1500)
    await talk.ask(told)
    await talk.ask(beating("b", 3))
    await talk.wait_ms(3000)
    await talk.ask(beating("b", 4))
    await talk.ask(DESCRIBE)


@unequal(HASH)
@with_settings(PROMPT)
async def consumers_change_what_they_subscribe_to(talk: Talk) -> None:
    await talk.groups_ready()
    first = await talk.topic("t", partitions=1)
    second = await talk.topic("u", partitions=1)
    await talk.ask(joining("a", subscribed_topic_names=["t", "u", "later"]))
    both = [*owning(first, 0), *owning(second, 0)]
    await talk.ask(beating("a", 2, topic_partitions=both))
    await talk.ask(beating("a", 2, subscribed_topic_names=["u", "later"], topic_partitions=both))
    await talk.ask(beating("a", 2, topic_partitions=owning(second, 0)))
    third = await talk.topic("later", partitions=1)
    await talk.wait_ms(500)
    await talk.ask(beating("a", 3, topic_partitions=owning(second, 0)))
    await talk.ask(beating("a", 4, topic_partitions=[*owning(second, 0), *owning(third, 0)]))
    await talk.ask(joining("b", subscribed_topic_names=["t"], server_assignor="range"))
    await talk.ask(DESCRIBE)
    await talk.journal("__consumer_offsets")


# A subscription and an assignment of the classic protocol in version 1: topic t.
SUBSCRIPTION = b"\0\1\0\0\0\1\0\1t\xff\xff\xff\xff\0\0\0\0"
ASSIGNMENT = b"\0\1\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\1\xff\xff\xff\xff"


def classic(member_id: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        member_id=member_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
    )


@unequal(HASH)
@with_settings(PROMPT)
async def a_classic_group_moves_over_and_back(talk: Talk) -> None:
    await talk.groups_ready()
    topic_id = await talk.topic("t", partitions=2)
    old = (await talk.ask(classic(""), 9)).member_id
    joined = await talk.ask(classic(old), 9)
    given = [SyncGroupRequestAssignment(member_id=old, assignment=ASSIGNMENT)]
    sync = SyncGroupRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=old,
        protocol_type="consumer",
        protocol_name="range",
        assignments=given,
    )
    await talk.ask(sync)
    await talk.ask(joining("new"))
    await talk.ask(DESCRIBE)
    await talk.ask(HeartbeatRequest(group_id="g", generation_id=1, member_id=old))
    again = await talk.ask(classic(old), 9)
    sync = SyncGroupRequest(
        group_id="g",
        generation_id=again.generation_id,
        member_id=old,
        protocol_type="consumer",
        protocol_name="range",
    )
    await talk.ask(sync)
    await talk.ask(HeartbeatRequest(group_id="g", generation_id=9, member_id=old))
    await talk.ask(HeartbeatRequest(group_id="g", generation_id=2, member_id="new"))
    await talk.ask(beating("new", 2, topic_partitions=[]))
    await talk.ask(DESCRIBE)
    await talk.ask(beating("new", -1, topic_partitions=owning(topic_id, 1)))
    await talk.ask(DescribeGroupsRequest(groups=["g"]))
    await talk.ask(HeartbeatRequest(group_id="g", generation_id=2, member_id=old))
    await talk.ask(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=old)]))
    await talk.ask(ListGroupsRequest())
