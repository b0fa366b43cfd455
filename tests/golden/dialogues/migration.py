"""A group of consumers moves to the new protocol and back while it lives."""

from typing import Any

from runnel.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from runnel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from runnel.wire.messages.join_group import JoinGroupRequestProtocol
from runnel.wire.messages.sync_group import SyncGroupRequestAssignment
from tests.golden.dialogues.classic import DESCRIBE, beat, join, leave, sync
from tests.golden.talk import Talk, unequal, with_settings

# Version 1 of a subscription to the topic t: without user data, owning nothing, or partition 0.
OWNS_NOTHING = bytes.fromhex("0001 00000001 0001 74 ffffffff 00000000")
OWNS_FIRST = bytes.fromhex("0001 00000001 0001 74 ffffffff 00000001 0001 74 00000001 00000000")
OWNS_BOTH = bytes.fromhex(
    "0001 00000001 0001 74 ffffffff 00000001 0001 74 00000002 00000000 00000001"
)
OWNS_SECOND = bytes.fromhex("0001 00000001 0001 74 ffffffff 00000001 0001 74 00000001 00000001")
# Version 1 of an assignment: partitions of the topic t.
FIRST = bytes.fromhex("0001 00000001 0001 74 00000001 00000000 ffffffff")
SECOND = bytes.fromhex("0001 00000001 0001 74 00000001 00000001 ffffffff")
BOTH = bytes.fromhex("0001 00000001 0001 74 00000002 00000000 00000001 ffffffff")
NEW = "HtFQY4YkS6eiZ1xkCCVjYQ"  # an id as clients of the new protocol choose it
CONSUMERS = ConsumerGroupDescribeRequest(group_ids=["g"])


def says(metadata: bytes) -> list[JoinGroupRequestProtocol]:
    return [JoinGroupRequestProtocol(name="range", metadata=metadata)]


def new_beat(epoch: int, topic_id: bytes, *owned: int) -> ConsumerGroupHeartbeatRequest:
    parts = [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=[*owned])]
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=NEW,
        member_epoch=epoch,
        rebalance_timeout_ms=20_000,
        subscribed_topic_names=["t"],
        topic_partitions=parts if owned else [],
    )


async def _classic(talk: Talk) -> str:
    """One member of the classic protocol that owns both partitions in generation 1."""
    given: dict[str, Any] = {"protocols": says(OWNS_NOTHING)}
    member_id: str = (await talk.ask(join(**given))).member_id
    await talk.ask(join(member_id, **given))
    request = sync(member_id, 1)
    request.assignments = [SyncGroupRequestAssignment(member_id=member_id, assignment=BOTH)]
    await talk.ask(request)
    return member_id


# The hash stands for the topics' metadata, and each broker has a way of its own to compute it.
@unequal("metadata_hash")
async def a_group_moves_to_the_new_protocol_and_back(talk: Talk) -> None:
    await talk.groups_ready()
    topic_id = await talk.topic("t", partitions=2)
    old = await _classic(talk)
    talk.comment("a member of the new protocol joins")
    await talk.ask(new_beat(0, topic_id), on="B")
    await talk.ask(DESCRIBE)
    await talk.ask(CONSUMERS)
    await talk.ask(beat(old, 1))
    await talk.ask(sync(old, 1))
    await talk.ask(beat("stranger", 1))
    await talk.ask(beat(NEW, 2))
    talk.comment("the old one joins again, owning both, and is asked to give up one")
    await talk.ask(join(old, protocols=says(OWNS_BOTH)))
    await talk.ask(sync(old, 1))
    await talk.ask(sync(old, 1, protocol_name="sticky"))
    await talk.ask(sync(old, 7))
    await talk.ask(beat(old, 1))
    talk.comment("it has given it up")
    await talk.ask(join(old, protocols=says(OWNS_FIRST)))
    await talk.ask(sync(old, 2))
    await talk.ask(beat(old, 2))
    await talk.ask(new_beat(2, topic_id), on="B")
    await talk.ask(new_beat(2, topic_id, 1), on="B")
    await talk.ask(CONSUMERS)
    talk.comment("another member of the classic protocol")
    await talk.ask(join(), on="C")
    await talk.ask(join(names=("sticky",)), on="C")
    await talk.ask(join(protocol_type="connect"), on="C")
    await talk.ask(leave(("stranger", None)), on="C")
    await talk.restart()
    await talk.groups_ready()
    await talk.ask(beat(old, 2))
    await talk.ask(CONSUMERS)
    talk.comment("the last member of the new protocol leaves")
    leaving = ConsumerGroupHeartbeatRequest(group_id="g", member_id=NEW, member_epoch=-1)
    await talk.ask(leaving, on="B")
    await talk.ask(DESCRIBE)
    await talk.ask(beat(old, 2))
    await talk.ask(join(old, protocols=says(OWNS_FIRST)))
    request = sync(old, 3)
    request.assignments = [SyncGroupRequestAssignment(member_id=old, assignment=BOTH)]
    await talk.ask(request)
    await talk.ask(DESCRIBE)
    await talk.journal("__consumer_offsets")


@unequal("metadata_hash")  # as above
@with_settings({"group.consumer.migration.policy": "disabled"})
async def a_group_that_may_not_move(talk: Talk) -> None:
    await talk.groups_ready()
    topic_id = await talk.topic("t", partitions=2)
    old = await _classic(talk)
    await talk.ask(new_beat(0, topic_id), on="B")
    await talk.ask(beat(old, 1))
    await talk.ask(leave((old, None)))
    await talk.ask(new_beat(0, topic_id), on="B")
    await talk.ask(CONSUMERS)
    await talk.ask(join(protocols=says(OWNS_NOTHING)))
    await talk.ask(leave((NEW, None)))
    await talk.ask(CONSUMERS)
    talk.comment("an empty group is of either kind")
    await _classic(talk)
    await talk.journal("__consumer_offsets")


async def static_members_move_to_the_new_protocol_and_back(talk: Talk) -> None:
    await talk.groups_ready()
    topic_id = await talk.topic("t", partitions=2)
    given: dict[str, Any] = {"protocols": says(OWNS_NOTHING)}
    one = (await talk.ask(join(group_instance_id="one", **given))).member_id
    request = sync(one, 1, group_instance_id="one")
    request.assignments = [SyncGroupRequestAssignment(member_id=one, assignment=BOTH)]
    await talk.ask(request)
    await talk.send(join(group_instance_id="two", **given), on="B")
    await talk.ask(join(one, group_instance_id="one", **given))
    two = (await talk.expect(on="B")).member_id
    await talk.send(sync(two, 2, group_instance_id="two"), on="B")
    request = sync(one, 2, group_instance_id="one")
    request.assignments = [
        SyncGroupRequestAssignment(member_id=one, assignment=FIRST),
        SyncGroupRequestAssignment(member_id=two, assignment=SECOND),
    ]
    await talk.ask(request)
    await talk.expect(on="B")
    talk.comment("one comes back with the new protocol")
    moved = new_beat(0, topic_id)
    moved.instance_id = "one"
    await talk.ask(moved, on="C")
    await talk.ask(CONSUMERS)
    await talk.ask(beat(one, 2, "one"))
    await talk.ask(join(one, group_instance_id="one", **given))
    await talk.ask(beat(two, 2, "two"), on="B")
    await talk.ask(join(two, group_instance_id="two", protocols=says(OWNS_SECOND)), on="B")
    await talk.ask(sync(two, 3, group_instance_id="two"), on="B")
    await talk.ask(sync(two, 2, group_instance_id="two"), on="B")
    talk.comment("and back with the classic one")
    again = (await talk.ask(join(group_instance_id="one", protocols=says(OWNS_FIRST)))).member_id
    await talk.ask(DESCRIBE)
    await talk.ask(sync(again, 2, group_instance_id="one"))
    await talk.ask(sync(again, 3, group_instance_id="one"))
    await talk.ask(beat(two, 2, "two"), on="B")
    await talk.ask(beat(two, 3, "two"), on="B")
    # Not the journal: Kafka writes the member that came back as one of the consumer group, too, and
    # deletes it in the same batch.
    await talk.restart()
    await talk.groups_ready()
    await talk.ask(DESCRIBE)
    await talk.ask(beat(two, 2, "two"), on="B")
