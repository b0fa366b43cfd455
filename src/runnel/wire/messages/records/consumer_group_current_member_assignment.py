"""ConsumerGroupCurrentMemberAssignment (key 8); value: version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT32,
    INT8,
    STRING,
    UUID,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@message(api_key=8, versions=(0, 0))
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: str = wire(STRING, default="")
    member_id: str = wire(STRING, default="")


@struct
class TopicPartitions:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[int] = wire(array_of(INT32), default_factory=list)
    assignment_epochs: list[int] | None = wire(
        nullable(array_of(INT32)), default_factory=list, tag=0
    )


@message(api_key=8, versions=(0, 0), flexible_since=0)
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: int = wire(INT32, default=0)
    previous_member_epoch: int = wire(INT32, default=0)
    state: int = wire(INT8, default=0)
    assigned_partitions: list[TopicPartitions] = wire(
        array_of(TopicPartitions), default_factory=list
    )
    partitions_pending_revocation: list[TopicPartitions] = wire(
        array_of(TopicPartitions), default_factory=list
    )
