"""ShareGroupTargetAssignmentMember (key 13); value: version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT32,
    STRING,
    UUID,
    array_of,
    message,
    struct,
    wire,
)


@message(api_key=13, versions=(0, 0))
class ShareGroupTargetAssignmentMemberKey:
    group_id: str = wire(STRING, default="")
    member_id: str = wire(STRING, default="")


@struct
class TopicPartition:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@message(api_key=13, versions=(0, 0), flexible_since=0)
class ShareGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicPartition] = wire(array_of(TopicPartition), default_factory=list)
