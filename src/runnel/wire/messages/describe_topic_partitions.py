"""DescribeTopicPartitions (key 75), version 0, flexible from 0.

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


@struct
class TopicRequest:
    name: str = wire(STRING, default="")


@struct
class DescribeTopicPartitionsRequestCursor:
    topic_name: str = wire(STRING, default="")
    partition_index: int = wire(INT32, default=0)


@message(api_key=75, versions=(0, 0), flexible_since=0)
class DescribeTopicPartitionsRequest:
    topics: list[TopicRequest] = wire(array_of(TopicRequest), default_factory=list)
    response_partition_limit: int = wire(INT32, default=2000)
    cursor: DescribeTopicPartitionsRequestCursor | None = wire(
        nullable(struct_of(DescribeTopicPartitionsRequestCursor)), default=None
    )


@struct
class DescribeTopicPartitionsResponsePartition:
    error_code: int = wire(INT16, default=0)
    partition_index: int = wire(INT32, default=0)
    leader_id: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=-1, ignorable=True)
    replica_nodes: list[int] = wire(array_of(INT32), default_factory=list)
    isr_nodes: list[int] = wire(array_of(INT32), default_factory=list)
    eligible_leader_replicas: list[int] | None = wire(nullable(array_of(INT32)), default=None)
    last_known_elr: list[int] | None = wire(nullable(array_of(INT32)), default=None)
    offline_replicas: list[int] = wire(array_of(INT32), default_factory=list, ignorable=True)


@struct
class DescribeTopicPartitionsResponseTopic:
    error_code: int = wire(INT16, default=0)
    name: str | None = wire(nullable(STRING), default="")
    topic_id: bytes = wire(UUID, default=NO_UUID, ignorable=True)
    is_internal: bool = wire(BOOL, default=False, ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = wire(
        array_of(DescribeTopicPartitionsResponsePartition), default_factory=list
    )
    topic_authorized_operations: int = wire(INT32, default=-2147483648)


@struct
class DescribeTopicPartitionsResponseCursor:
    topic_name: str = wire(STRING, default="")
    partition_index: int = wire(INT32, default=0)


@message(api_key=75, versions=(0, 0), flexible_since=0)
class DescribeTopicPartitionsResponse:
    throttle_time_ms: int = wire(INT32, default=0, ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = wire(
        array_of(DescribeTopicPartitionsResponseTopic), default_factory=list
    )
    next_cursor: DescribeTopicPartitionsResponseCursor | None = wire(
        nullable(struct_of(DescribeTopicPartitionsResponseCursor)), default=None
    )
