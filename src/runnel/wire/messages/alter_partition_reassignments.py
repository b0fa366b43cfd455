"""AlterPartitionReassignments (key 45), versions 0-1, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class ReassignablePartition:
    partition_index: int = wire(INT32, default=0)
    replicas: list[int] | None = wire(nullable(array_of(INT32)), default=None)


@struct
class ReassignableTopic:
    name: str = wire(STRING, default="")
    partitions: list[ReassignablePartition] = wire(
        array_of(ReassignablePartition), default_factory=list
    )


@message(api_key=45, versions=(0, 1), flexible_since=0)
class AlterPartitionReassignmentsRequest:
    timeout_ms: int = wire(INT32, default=60000)
    allow_replication_factor_change: bool = wire(BOOL, default=True, since=1)
    topics: list[ReassignableTopic] = wire(array_of(ReassignableTopic), default_factory=list)


@struct
class ReassignablePartitionResponse:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")


@struct
class ReassignableTopicResponse:
    name: str = wire(STRING, default="")
    partitions: list[ReassignablePartitionResponse] = wire(
        array_of(ReassignablePartitionResponse), default_factory=list
    )


@message(api_key=45, versions=(0, 1), flexible_since=0)
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    allow_replication_factor_change: bool = wire(BOOL, default=True, since=1, ignorable=True)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
    responses: list[ReassignableTopicResponse] = wire(
        array_of(ReassignableTopicResponse), default_factory=list
    )
