"""ConsumerGroupDescribe: a consumer group as its administrators see it."""

from collections.abc import Collection, Mapping
from typing import Final

from runnel.coordinator.groups.consumer_group import NO_TARGET, ConsumerGroup
from runnel.coordinator.groups.consumer_member import ConsumerMember
from runnel.coordinator.groups.topics_view import TopicsView
from runnel.wire.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


def describe(group: ConsumerGroup, topics: TopicsView, default_assignor: str) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.preferred_assignor(group.members.values()) or default_assignor,
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, topics: TopicsView) -> Member:
    target = group.targets.get(member.member_id, NO_TARGET)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(_owned(member), topics),
        target_assignment=_assignment(target, topics),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _owned(member: ConsumerMember) -> dict[bytes, set[int]]:
    """What it was told to give up is its own until it has."""
    found: dict[bytes, set[int]] = {}
    for owned in (member.assigned, member.pending_revocation):
        for topic_id, epochs in owned.items():
            found.setdefault(topic_id, set()).update(epochs)
    return found


def _assignment(partitions: Mapping[bytes, Collection[int]], topics: TopicsView) -> Assignment:
    """Topics that are gone have no name to be told by."""
    named = ((topics.name_of(each), each, partitions[each]) for each in partitions)
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(indexes))
            for name, topic_id, indexes in named
            if name is not None
        ]
    )
