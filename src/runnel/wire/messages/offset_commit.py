"""OffsetCommit (key 8), versions 2-10, flexible from 8.

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
class OffsetCommitRequestPartition:
    partition_index: int = wire(INT32, default=0)
    committed_offset: int = wire(INT64, default=0)
    committed_leader_epoch: int = wire(INT32, default=-1, since=6, ignorable=True)
    committed_metadata: str | None = wire(nullable(STRING), default="")


@struct
class OffsetCommitRequestTopic:
    name: str = wire(STRING, default="", until=9, ignorable=True)
    topic_id: bytes = wire(UUID, default=NO_UUID, since=10, ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = wire(
        array_of(OffsetCommitRequestPartition), default_factory=list
    )


@message(api_key=8, versions=(2, 10), flexible_since=8)
class OffsetCommitRequest:
    group_id: str = wire(STRING, default="")
    generation_id_or_member_epoch: int = wire(INT32, default=-1, ignorable=True)
    member_id: str = wire(STRING, default="", ignorable=True)
    group_instance_id: str | None = wire(nullable(STRING), default=None, since=7)
    retention_time_ms: int = wire(INT64, default=-1, until=4, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = wire(
        array_of(OffsetCommitRequestTopic), default_factory=list
    )


@struct
class OffsetCommitResponsePartition:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)


@struct
class OffsetCommitResponseTopic:
    name: str = wire(STRING, default="", until=9, ignorable=True)
    topic_id: bytes = wire(UUID, default=NO_UUID, since=10, ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = wire(
        array_of(OffsetCommitResponsePartition), default_factory=list
    )


@message(api_key=8, versions=(2, 10), flexible_since=8)
class OffsetCommitResponse:
    throttle_time_ms: int = wire(INT32, default=0, since=3, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = wire(
        array_of(OffsetCommitResponseTopic), default_factory=list
    )
