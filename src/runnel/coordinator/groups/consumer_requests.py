"""What a heartbeat of a consumer group says about its member, and what the member is told."""

from dataclasses import replace

from runnel.coordinator.groups.caller import Caller
from runnel.coordinator.groups.consumer_member import ConsumerMember, Owned
from runnel.coordinator.groups.consumer_reconcile import Reported
from runnel.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)


def changed_by(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, caller: Caller
) -> ConsumerMember:
    """What the request does not say stays as it was: almost always everything."""
    if says_nothing_new(member, request, caller):
        return member
    topics, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        client_id=caller.client_id,
        client_host=caller.host,
        topics=member.topics if topics is None else frozenset(topics),
        regex=member.regex if regex is None else regex,
        server_assignor=request.server_assignor or member.server_assignor,
        classic=None,
    )


def says_nothing_new(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, caller: Caller
) -> bool:
    """A static member names its instance every time."""
    return (
        request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rebalance_timeout_ms == -1
        and request.instance_id == member.instance_id
        and request.rack_id is None
        and request.server_assignor is None
        and caller.client_id == member.client_id
        and caller.host == member.client_host
        and member.classic is None
    )


def reported_by(request: ConsumerGroupHeartbeatRequest) -> Reported | None:
    if request.topic_partitions is None:
        return None
    reported: dict[bytes, list[int]] = {}
    for topic in request.topic_partitions:
        reported.setdefault(topic.topic_id, []).extend(topic.partitions)
    return reported


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """All that is not optional is said: after an error a client says everything again."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    return (
        request.rebalance_timeout_ms != -1
        and (names is not None or regex is not None)
        and request.topic_partitions is not None
    )


def told(assigned: Owned) -> Assignment:
    return Assignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(
                topic_id=topic_id, partitions=sorted(epochs)
            )
            for topic_id, epochs in assigned.items()
        ]
    )
