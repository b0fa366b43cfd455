"""OffsetForLeaderEpoch (key 23), versions 2-4, flexible from 4.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    array_of,
    message,
    struct,
    wire,
)


@struct
class OffsetForLeaderPartition:
    partition: int = wire(INT32, default=0)
    current_leader_epoch: int = wire(INT32, default=-1, ignorable=True)
    leader_epoch: int = wire(INT32, default=0)


@struct
class OffsetForLeaderTopic:
    topic: str = wire(STRING, default="")
    partitions: list[OffsetForLeaderPartition] = wire(
        array_of(OffsetForLeaderPartition), default_factory=list
    )


@message(api_key=23, versions=(2, 4), flexible_since=4)
class OffsetForLeaderEpochRequest:
    replica_id: int = wire(INT32, default=-2, since=3, ignorable=True)
    topics: list[OffsetForLeaderTopic] = wire(array_of(OffsetForLeaderTopic), default_factory=list)


@struct
class EpochEndOffset:
    error_code: int = wire(INT16, default=0)
    partition: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=-1, ignorable=True)
    end_offset: int = wire(INT64, default=-1)


@struct
class OffsetForLeaderTopicResult:
    topic: str = wire(STRING, default="")
    partitions: list[EpochEndOffset] = wire(array_of(EpochEndOffset), default_factory=list)


@message(api_key=23, versions=(2, 4), flexible_since=4)
class OffsetForLeaderEpochResponse:
    throttle_time_ms: int = wire(INT32, default=0, ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = wire(
        array_of(OffsetForLeaderTopicResult), default_factory=list
    )
