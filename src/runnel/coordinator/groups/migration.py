"""From one group protocol to the other while the group lives: what is to be written.

Up: the first member of the new protocol joins a classic group of consumers. Down: the last one is
gone from a group whose other members speak the classic protocol. Either way the group's old
records are deleted and its new ones written in one batch, so that it is one or the other.
"""

from collections.abc import Callable, Iterable
from typing import Final

from runnel.config.coordination import GroupSettings
from runnel.coordinator.groups.classic_group import CONSUMER_PROTOCOL_TYPE, ClassicGroup
from runnel.coordinator.groups.classic_member import ClassicMember
from runnel.coordinator.groups.classic_records import snapshot
from runnel.coordinator.groups.consumer_group import NO_TARGET, ConsumerGroup
from runnel.coordinator.groups.consumer_member import ClassicPart, ConsumerMember
from runnel.coordinator.groups.consumer_records import (
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from runnel.coordinator.groups.embedded import (
    assigned_parts,
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from runnel.coordinator.groups.topics_view import TopicsView
from runnel.coordinator.records import JournalRecord
from runnel.errors import ErrorCode, RunnelError, WireError
from runnel.wire.messages.join_group import JoinGroupRequestProtocol

NEVER: Final = 0  # so the next target is computed at once
UP: Final = frozenset({"upgrade", "bidirectional"})
DOWN: Final = frozenset({"downgrade", "bidirectional"})
CLIENTS_OWN: Final = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
"""Assignors whose members lose nothing with the user data. librdkafka's leader copies into every
assignment what the member said of its last one, so to refuse it, as Kafka does, is to refuse every
group of librdkafka's sticky consumers that was ever rebalanced."""


class CustomAssignorError(Exception):
    """An assignor of the clients' own told its members more than their partitions."""


def ensure_may_go_up(group: ClassicGroup, settings: GroupSettings) -> None:
    """Raises GROUP_ID_NOT_FOUND: there is no such group of the new protocol."""
    if settings.group_consumer_migration_policy.lower() not in UP:
        raise _stays(group, "online upgrade is disabled.")
    if not group.uses_consumer_protocol:
        raise _stays(group, "the group does not use the consumer embedded protocol.")
    if group.member_count > settings.group_consumer_max_size:
        raise _stays(group, "the group size exceeds the consumer group maximum size.")


def _stays(group: ClassicGroup, why: str) -> RunnelError:
    return RunnelError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {why}",
    )


def ensure_classic_may_join(group: ConsumerGroup, settings: GroupSettings) -> None:
    if settings.group_consumer_migration_policy.lower() == "disabled":
        raise RunnelError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol because "
            "the group migration is disabled.",
        )


def may_go_down(left: Iterable[ConsumerMember], settings: GroupSettings) -> bool:
    """Whether those that would be left could be a classic group."""
    members = list(left)
    return (
        settings.group_consumer_migration_policy.lower() in DOWN
        and 0 < len(members) <= settings.group_max_size
        and all(member.classic is not None for member in members)
    )


def upgrade_records(
    group: ClassicGroup, topics: TopicsView, hash_of: Callable[[Iterable[str]], int]
) -> list[JournalRecord]:
    """Every member has what it was last assigned. Raises GROUP_ID_NOT_FOUND."""
    taken: set[tuple[bytes, int]] = set()
    try:
        members = [_upgraded(group, member, topics, taken) for member in group.members.values()]
    except WireError:
        raise _stays(group, "the embedded consumer protocol is malformed.") from None
    except CustomAssignorError:
        raise _stays(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch "
            "to a default assignor before re-attempting the upgrade.",
        ) from None
    group_id, epoch = group.group_id, group.generation_id
    return [
        *group.tombstones(),
        *(member_record(group_id, member) for member in members),
        epoch_record(group_id, epoch, hash_of({name for each in members for name in each.topics})),
        *(
            target_record(
                group_id,
                member.member_id,
                {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()},
            )
            for member in members
        ),
        target_epoch_record(group_id, epoch, NEVER),
        *(current_record(group_id, member) for member in members),
    ]


def _upgraded(
    group: ClassicGroup, member: ClassicMember, topics: TopicsView, taken: set[tuple[bytes, int]]
) -> ConsumerMember:
    """What the leader gave to two of them by mistake, the first one keeps."""
    known = [each for each in member.protocols if each.name == group.protocol_name]
    subscription = read_subscription((known or member.protocols)[0].metadata)
    epoch = group.generation_id
    assignment = read_assignment(member.assignment)
    if assignment.user_data and group.protocol_name not in CLIENTS_OWN:
        raise CustomAssignorError
    assigned: dict[bytes, dict[int, int]] = {}
    for topic_id, indexes in assigned_parts(assignment, topics).items():
        free = [index for index in indexes if (topic_id, index) not in taken]
        taken.update((topic_id, index) for index in free)
        assigned[topic_id] = dict.fromkeys(free, epoch)
    return ConsumerMember(
        member_id=member.member_id,
        epoch=epoch,
        previous_epoch=epoch,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        assigned=assigned,
        classic=ClassicPart(
            member.session_timeout_ms,
            tuple((each.name, each.metadata) for each in member.protocols),
        ),
    )


def downgraded(
    group: ConsumerGroup,
    left: Iterable[ConsumerMember],
    topics: TopicsView,
    heir_of: str | None = None,
) -> ClassicGroup:
    """The group as a classic one, of those members; `heir_of`: whose part a new one takes over.

    Every member has what it should have had in the end. Raises WireError.
    """
    classic = ClassicGroup(group.group_id)
    classic.generation_id = group.epoch
    classic.protocol_type = CONSUMER_PROTOCOL_TYPE
    for member in left:
        classic.add(_downgraded(member))
    classic.protocol_name = classic.select_protocol()
    for each in classic.members.values():
        is_known = each.member_id in group.targets
        target = group.targets.get(each.member_id if is_known else heir_of or "", NO_TARGET)
        version = version_of(each.metadata(classic.protocol_name))
        each.assignment = write_assignment(target, version, topics)
    return classic


def _downgraded(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        [
            JoinGroupRequestProtocol(name=name, metadata=metadata)
            for name, metadata in member.classic.protocols
        ],
    )


def downgrade_records(
    group: ConsumerGroup, classic: ClassicGroup, now_ms: int
) -> list[JournalRecord]:
    assignments = {each.member_id: each.assignment for each in classic.members.values()}
    return [*group.tombstones(), snapshot(classic, assignments, now_ms)]
