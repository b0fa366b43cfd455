"""GroupMetadata, the one record of a classic group: written from a group, read back into it.

A group that is there already keeps what the record does not say: who waits for what, all protocols
that a member knows, its running session. So the same code serves a start and a running group.
"""

from collections.abc import Mapping
from typing import Final

from runnel.coordinator.groups.classic_group import ClassicGroup, ClassicState
from runnel.coordinator.groups.classic_member import NO_ASSIGNMENT, ClassicMember
from runnel.coordinator.records import JournalRecord
from runnel.errors import WireError
from runnel.wire.compiler import codec_for
from runnel.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from runnel.wire.messages.join_group import JoinGroupRequestProtocol
from runnel.wire.messages.records.group_metadata import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

VALUE_VERSION: Final = 3  # as Kafka 4.3 writes it
_VERSION_BYTES: Final = 2  # stands before a subscription


def new_group(group_id: str, now_ms: int) -> JournalRecord:
    """A group that somebody is about to join."""
    value = GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=now_ms)
    return JournalRecord(GroupMetadataKey(group=group_id), value, VALUE_VERSION)


def snapshot(group: ClassicGroup, assignments: Mapping[str, bytes], now_ms: int) -> JournalRecord:
    """The group's generation with these assignments; who has none is given an empty one."""
    members = [
        _stored(member, group.protocol_name, assignments.get(member.member_id, NO_ASSIGNMENT))
        for member in group.members.values()
    ]
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=now_ms,
        members=members,
    )
    return JournalRecord(GroupMetadataKey(group=group.group_id), value, VALUE_VERSION)


def replace_member(
    record: JournalRecord, old_id: str, new: ClassicMember, protocol_name: str | None
) -> JournalRecord:
    """The same generation, in which a static member came back with another id."""
    value = record.value
    assert isinstance(value, GroupMetadataValue)
    for place, member in enumerate(value.members):
        if member.member_id == old_id:
            value.members[place] = _stored(new, protocol_name, member.assignment)
    if value.leader == old_id:
        value.leader = new.member_id
    return record


def _stored(member: ClassicMember, protocol_name: str | None, assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol_name),
        assignment=assignment,
    )


def restore(group: ClassicGroup, value: GroupMetadataValue) -> None:
    group.protocol_type = value.protocol_type
    group.protocol_name = value.protocol
    group.generation_id = value.generation
    stored_ids = {stored.member_id for stored in value.members}
    for member_id in [each for each in group.members if each not in stored_ids]:
        group.remove(member_id)
    for stored in value.members:
        known = group.members.get(stored.member_id)
        if known is None:
            group.add(_loaded(stored, value.protocol))
        else:
            known.assignment = stored.assignment
    group.leader_id = value.leader
    group.move_to(
        ClassicState.STABLE if value.members else ClassicState.EMPTY, value.current_state_timestamp
    )
    group.subscribed_topics = subscribed_topics(group)


def _loaded(stored: MemberMetadata, protocol_name: str | None) -> ClassicMember:
    timeout_ms = stored.rebalance_timeout
    return ClassicMember(
        stored.member_id,
        stored.group_instance_id,
        stored.client_id,
        stored.client_host,
        stored.session_timeout if timeout_ms == -1 else timeout_ms,
        stored.session_timeout,
        [JoinGroupRequestProtocol(name=protocol_name or "", metadata=stored.subscription)],
        stored.assignment,
    )


def subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """None if the group is not one of consumers, or a member's words cannot be read."""
    if not group.uses_consumer_protocol:
        return None
    if not group.members:
        return frozenset()
    if group.protocol_name is None:
        return None
    read = codec_for(ConsumerProtocolSubscription, 0).read  # a prefix of all later versions
    topics: set[str] = set()
    try:
        for member in group.members.values():
            metadata = memoryview(member.metadata(group.protocol_name))
            topics.update(read(metadata, _VERSION_BYTES)[0].topics)
    except WireError:
        return None
    return frozenset(topics)
