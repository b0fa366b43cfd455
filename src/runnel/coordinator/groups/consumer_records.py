"""The records of a consumer group, as Kafka's coordinator writes them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from runnel.coordinator.groups.consumer_member import ConsumerMember
from runnel.coordinator.records import JournalRecord
from runnel.wire.messages.records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from runnel.wire.messages.records.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey,
)
from runnel.wire.messages.records.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from runnel.wire.messages.records.consumer_group_partition_metadata import (
    ConsumerGroupPartitionMetadataKey,
)
from runnel.wire.messages.records.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from runnel.wire.messages.records.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from runnel.wire.messages.records.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

KEYS: Final[tuple[type[Any], ...]] = (
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupRegularExpressionKey,
)
Target = Mapping[bytes, frozenset[int]]
"""What a member shall have in the end: partitions by topic id."""


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> JournalRecord:
    return JournalRecord(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member_record(group_id: str, member: ConsumerMember) -> JournalRecord:
    return JournalRecord(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        member.metadata_value(),
    )


def current_record(group_id: str, member: ConsumerMember) -> JournalRecord:
    return JournalRecord(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        member.assignment_value(),
    )


def target_record(group_id: str, member_id: str, target: Target) -> JournalRecord:
    return JournalRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in sorted(target.items())
            ]
        ),
    )


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> JournalRecord:
    return JournalRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=timestamp_ms
        ),
    )


def regex_record(
    group_id: str, regex: str, topics: Iterable[str], version: int, timestamp_ms: int
) -> JournalRecord:
    return JournalRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        ConsumerGroupRegularExpressionValue(
            topics=sorted(topics), version=version, timestamp=timestamp_ms
        ),
    )


def regex_tombstone(group_id: str, regex: str) -> JournalRecord:
    return JournalRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None
    )


def partition_metadata_tombstone(group_id: str) -> JournalRecord:
    """Kafka before 4.1 kept there what the hash stands for now."""
    return JournalRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[JournalRecord]:
    """In the order that replay needs: a member that owns something is not forgotten."""
    return [
        JournalRecord(
            ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None
        ),
        JournalRecord(
            ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
        ),
        JournalRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(
    group_id: str, member_ids: Iterable[str], regexes: Iterable[str]
) -> list[JournalRecord]:
    """What ends a group and all that it holds."""
    ids = list(member_ids)
    return [
        *(
            JournalRecord(
                ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id),
                None,
            )
            for member_id in ids
        ),
        *(
            JournalRecord(
                ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
            )
            for member_id in ids
        ),
        JournalRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(
            JournalRecord(
                ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None
            )
            for member_id in ids
        ),
        *(regex_tombstone(group_id, regex) for regex in regexes),
        partition_metadata_tombstone(group_id),
        JournalRecord(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]
