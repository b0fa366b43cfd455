"""TxnOffsetCommit (key 28), versions 0-5, flexible from 3.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: int = wire(INT32, default=0)
    committed_offset: int = wire(INT64, default=0)
    committed_leader_epoch: int = wire(INT32, default=-1, since=2, ignorable=True)
    committed_metadata: str | None = wire(nullable(STRING), default="")


@struct
class TxnOffsetCommitRequestTopic:
    name: str = wire(STRING, default="")
    partitions: list[TxnOffsetCommitRequestPartition] = wire(
        array_of(TxnOffsetCommitRequestPartition), default_factory=list
    )


@message(api_key=28, versions=(0, 5), flexible_since=3)
class TxnOffsetCommitRequest:
    transactional_id: str = wire(STRING, default="")
    group_id: str = wire(STRING, default="")
    producer_id: int = wire(INT64, default=0)
    producer_epoch: int = wire(INT16, default=0)
    generation_id: int = wire(INT32, default=-1, since=3)
    member_id: str = wire(STRING, default="", since=3)
    group_instance_id: str | None = wire(nullable(STRING), default=None, since=3)
    topics: list[TxnOffsetCommitRequestTopic] = wire(
        array_of(TxnOffsetCommitRequestTopic), default_factory=list
    )


@struct
class TxnOffsetCommitResponsePartition:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)


@struct
class TxnOffsetCommitResponseTopic:
    name: str = wire(STRING, default="")
    partitions: list[TxnOffsetCommitResponsePartition] = wire(
        array_of(TxnOffsetCommitResponsePartition), default_factory=list
    )


@message(api_key=28, versions=(0, 5), flexible_since=3)
class TxnOffsetCommitResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    topics: list[TxnOffsetCommitResponseTopic] = wire(
        array_of(TxnOffsetCommitResponseTopic), default_factory=list
    )
