"""ListOffsets (key 2), versions 1-11, flexible from 6.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    INT8,
    STRING,
    array_of,
    message,
    struct,
    wire,
)


@struct
class ListOffsetsPartition:
    partition_index: int = wire(INT32, default=0)
    current_leader_epoch: int = wire(INT32, default=-1, since=4, ignorable=True)
    timestamp: int = wire(INT64, default=0)


@struct
class ListOffsetsTopic:
    name: str = wire(STRING, default="")
    partitions: list[ListOffsetsPartition] = wire(
        array_of(ListOffsetsPartition), default_factory=list
    )


@message(api_key=2, versions=(1, 11), flexible_since=6)
class ListOffsetsRequest:
    replica_id: int = wire(INT32, default=0)
    isolation_level: int = wire(INT8, default=0, since=2)
    topics: list[ListOffsetsTopic] = wire(array_of(ListOffsetsTopic), default_factory=list)
    timeout_ms: int = wire(INT32, default=0, since=10, ignorable=True)


@struct
class ListOffsetsPartitionResponse:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    timestamp: int = wire(INT64, default=-1)
    offset: int = wire(INT64, default=-1)
    leader_epoch: int = wire(INT32, default=-1, since=4)


@struct
class ListOffsetsTopicResponse:
    name: str = wire(STRING, default="")
    partitions: list[ListOffsetsPartitionResponse] = wire(
        array_of(ListOffsetsPartitionResponse), default_factory=list
    )


@message(api_key=2, versions=(1, 11), flexible_since=6)
class ListOffsetsResponse:
    throttle_time_ms: int = wire(INT32, default=0, since=2, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = wire(
        array_of(ListOffsetsTopicResponse), default_factory=list
    )
