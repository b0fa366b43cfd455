"""What a heartbeat of a consumer group must be like; Kafka's errors, words and order."""

from collections.abc import Sequence
from typing import Final

from runnel.coordinator.groups.consumer_group import ConsumerGroup
from runnel.coordinator.groups.consumer_member import (
    JOINING,
    LEAVING,
    LEAVING_FOR_A_WHILE,
    ConsumerMember,
)
from runnel.coordinator.groups.consumer_reconcile import Reported
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

FIRST_VERSION_WITH_CLIENTS_ID: Final = 1


def ensure_valid(
    request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Sequence[str]
) -> None:
    """Raises INVALID_REQUEST, UNSUPPORTED_ASSIGNOR."""
    why = _blank(request, api_version) or _inconsistent(request)
    if why is not None:
        raise RunnelError(ErrorCode.INVALID_REQUEST, why)
    assignor = request.server_assignor
    if assignor is not None and assignor not in assignors:
        raise RunnelError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def _blank(request: ConsumerGroupHeartbeatRequest, api_version: int) -> str | None:
    needs_id = (
        api_version >= FIRST_VERSION_WITH_CLIENTS_ID
        or request.member_epoch > 0
        or request.member_epoch == LEAVING
    )
    texts = (
        ("MemberId", request.member_id if needs_id else None),
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    )
    for name, text in texts:
        if text is not None and not text.strip():
            return f"{name} can't be empty."
    return None


def _inconsistent(request: ConsumerGroupHeartbeatRequest) -> str | None:
    epoch = request.member_epoch
    if epoch == JOINING:
        if request.rebalance_timeout_ms == -1:
            return "RebalanceTimeoutMs must be provided in first request."
        if request.topic_partitions is None or request.topic_partitions:
            return "TopicPartitions must be empty when (re-)joining."
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            return (
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                "(re-)joining."
            )
    elif epoch == LEAVING_FOR_A_WHILE and request.instance_id is None:
        return "InstanceId can't be null."
    elif epoch < LEAVING_FOR_A_WHILE:
        return "MemberEpoch is invalid."
    return None


def ensure_room(group: ConsumerGroup, member_id: str, max_size: int) -> None:
    if group.member_count >= max_size and member_id not in group.members:
        raise RunnelError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {max_size} members.",
        )


def ensure_epoch(member: ConsumerMember, epoch: int, reported: Reported | None) -> None:
    """The epoch before is fine if the member has not seen the answer that brought the new one.

    It may then own no more than what it has since been given. Raises FENCED_MEMBER_EPOCH.
    """
    if epoch in (JOINING, member.epoch):
        return
    if epoch > member.epoch:
        compared = "greater"
    elif epoch == member.previous_epoch and _is_subset(reported, member):
        return
    else:
        compared = "smaller"
    raise RunnelError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {compared} member epoch ({epoch}) than the one known by "
        f"the group coordinator ({member.epoch}). The member must abandon all its partitions and "
        "rejoin.",
    )


def _is_subset(reported: Reported | None, member: ConsumerMember) -> bool:
    return reported is not None and all(
        index in member.assigned.get(topic_id, ())
        for topic_id, partitions in reported.items()
        for index in partitions
    )


def ensure_released(before: ConsumerMember, member_id: str, instance_id: str) -> None:
    if before.epoch != LEAVING_FOR_A_WHILE:
        raise RunnelError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {before.member_id} member.",
        )


def ensure_static_member(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    member = group.static_member(instance_id)
    if member is None:
        raise RunnelError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise RunnelError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member
