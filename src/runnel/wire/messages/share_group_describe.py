"""ShareGroupDescribe (key 77), version 1, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    STRING,
    UUID,
    array_of,
    message,
    nullable,
    struct,
    struct_of,
    wire,
)


@message(api_key=77, versions=(1, 1), flexible_since=0)
class ShareGroupDescribeRequest:
    group_ids: list[str] = wire(array_of(STRING), default_factory=list)
    include_authorized_operations: bool = wire(BOOL, default=False)


@struct
class TopicPartitions:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    topic_name: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = wire(array_of(TopicPartitions), default_factory=list)


@struct
class Member:
    member_id: str = wire(STRING, default="")
    rack_id: str | None = wire(nullable(STRING), default=None)
    member_epoch: int = wire(INT32, default=0)
    client_id: str = wire(STRING, default="")
    client_host: str = wire(STRING, default="")
    subscribed_topic_names: list[str] = wire(array_of(STRING), default_factory=list)
    assignment: Assignment = wire(struct_of(Assignment), default_factory=Assignment)


@struct
class DescribedGroup:
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    group_id: str = wire(STRING, default="")
    group_state: str = wire(STRING, default="")
    group_epoch: int = wire(INT32, default=0)
    assignment_epoch: int = wire(INT32, default=0)
    assignor_name: str = wire(STRING, default="")
    members: list[Member] = wire(array_of(Member), default_factory=list)
    authorized_operations: int = wire(INT32, default=-2147483648)


@message(api_key=77, versions=(1, 1), flexible_since=0)
class ShareGroupDescribeResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    groups: list[DescribedGroup] = wire(array_of(DescribedGroup), default_factory=list)
