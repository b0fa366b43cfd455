"""DescribeShareGroupOffsets (key 90), versions 0-1, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class DescribeShareGroupOffsetsRequestGroup:
    group_id: str = wire(STRING, default="")
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = wire(
        nullable(array_of(DescribeShareGroupOffsetsRequestTopic)), default_factory=list
    )


@message(api_key=90, versions=(0, 1), flexible_since=0)
class DescribeShareGroupOffsetsRequest:
    groups: list[DescribeShareGroupOffsetsRequestGroup] = wire(
        array_of(DescribeShareGroupOffsetsRequestGroup), default_factory=list
    )


@struct
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: int = wire(INT32, default=0)
    start_offset: int = wire(INT64, default=0)
    leader_epoch: int = wire(INT32, default=0)
    lag: int = wire(INT64, default=-1, since=1, ignorable=True)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)


@struct
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: str = wire(STRING, default="")
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = wire(
        array_of(DescribeShareGroupOffsetsResponsePartition), default_factory=list
    )


@struct
class DescribeShareGroupOffsetsResponseGroup:
    group_id: str = wire(STRING, default="")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = wire(
        array_of(DescribeShareGroupOffsetsResponseTopic), default_factory=list
    )
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)


@message(api_key=90, versions=(0, 1), flexible_since=0)
class DescribeShareGroupOffsetsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = wire(
        array_of(DescribeShareGroupOffsetsResponseGroup), default_factory=list
    )
