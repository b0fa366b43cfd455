"""Fetch (key 1), versions 4-18, flexible from 12.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    INT8,
    RESPONSE_RECORDS,
    STRING,
    UUID,
    Records,
    array_of,
    frozen_struct,
    message,
    nullable,
    struct,
    struct_of,
    wire,
)


@frozen_struct
class ReplicaState:
    replica_id: int = wire(INT32, default=-1, since=15)
    replica_epoch: int = wire(INT64, default=-1, since=15)


@struct
class FetchPartition:
    partition: int = wire(INT32, default=0)
    current_leader_epoch: int = wire(INT32, default=-1, since=9, ignorable=True)
    fetch_offset: int = wire(INT64, default=0)
    last_fetched_epoch: int = wire(INT32, default=-1, since=12)
    log_start_offset: int = wire(INT64, default=-1, since=5, ignorable=True)
    partition_max_bytes: int = wire(INT32, default=0)
    replica_directory_id: bytes = wire(UUID, default=NO_UUID, since=17, tag=0, ignorable=True)
    high_watermark: int = wire(INT64, default=9223372036854775807, since=18, tag=1, ignorable=True)


@struct
class FetchTopic:
    topic: str = wire(STRING, default="", until=12, ignorable=True)
    topic_id: bytes = wire(UUID, default=NO_UUID, since=13, ignorable=True)
    partitions: list[FetchPartition] = wire(array_of(FetchPartition), default_factory=list)


@struct
class ForgottenTopic:
    topic: str = wire(STRING, default="", since=7, until=12, ignorable=True)
    topic_id: bytes = wire(UUID, default=NO_UUID, since=13, ignorable=True)
    partitions: list[int] = wire(array_of(INT32), default_factory=list, since=7)


@message(api_key=1, versions=(4, 18), flexible_since=12)
class FetchRequest:
    cluster_id: str | None = wire(nullable(STRING), default=None, since=12, tag=0, ignorable=True)
    replica_id: int = wire(INT32, default=-1, until=14)
    replica_state: ReplicaState = wire(
        struct_of(ReplicaState), default=ReplicaState(), since=15, tag=1
    )
    max_wait_ms: int = wire(INT32, default=0)
    min_bytes: int = wire(INT32, default=0)
    max_bytes: int = wire(INT32, default=2147483647, ignorable=True)
    isolation_level: int = wire(INT8, default=0, ignorable=True)
    session_id: int = wire(INT32, default=0, since=7, ignorable=True)
    session_epoch: int = wire(INT32, default=-1, since=7, ignorable=True)
    topics: list[FetchTopic] = wire(array_of(FetchTopic), default_factory=list)
    forgotten_topics_data: list[ForgottenTopic] = wire(
        array_of(ForgottenTopic), default_factory=list, since=7
    )
    rack_id: str = wire(STRING, default="", since=11, ignorable=True)


@frozen_struct
class EpochEndOffset:
    epoch: int = wire(INT32, default=-1, since=12)
    end_offset: int = wire(INT64, default=-1, since=12)


@frozen_struct
class LeaderIdAndEpoch:
    leader_id: int = wire(INT32, default=-1, since=12)
    leader_epoch: int = wire(INT32, default=-1, since=12)


@frozen_struct
class SnapshotId:
    end_offset: int = wire(INT64, default=-1)
    epoch: int = wire(INT32, default=-1)


@struct
class AbortedTransaction:
    producer_id: int = wire(INT64, default=0)
    first_offset: int = wire(INT64, default=0)


@struct
class PartitionData:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    high_watermark: int = wire(INT64, default=0)
    last_stable_offset: int = wire(INT64, default=-1, ignorable=True)
    log_start_offset: int = wire(INT64, default=-1, since=5, ignorable=True)
    diverging_epoch: EpochEndOffset = wire(
        struct_of(EpochEndOffset), default=EpochEndOffset(), since=12, tag=0
    )
    current_leader: LeaderIdAndEpoch = wire(
        struct_of(LeaderIdAndEpoch), default=LeaderIdAndEpoch(), since=12, tag=1
    )
    snapshot_id: SnapshotId = wire(struct_of(SnapshotId), default=SnapshotId(), since=12, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = wire(
        nullable(array_of(AbortedTransaction)), default_factory=list, ignorable=True
    )
    preferred_read_replica: int = wire(INT32, default=-1, since=11)
    records: Records | None = wire(nullable(RESPONSE_RECORDS), default=None)


@struct
class FetchableTopicResponse:
    topic: str = wire(STRING, default="", until=12, ignorable=True)
    topic_id: bytes = wire(UUID, default=NO_UUID, since=13, ignorable=True)
    partitions: list[PartitionData] = wire(array_of(PartitionData), default_factory=list)


@struct
class NodeEndpoint:
    node_id: int = wire(INT32, default=0, since=16)
    host: str = wire(STRING, default="", since=16)
    port: int = wire(INT32, default=0, since=16)
    rack: str | None = wire(nullable(STRING), default=None, since=16)


@message(api_key=1, versions=(4, 18), flexible_since=12)
class FetchResponse:
    throttle_time_ms: int = wire(INT32, default=0, ignorable=True)
    error_code: int = wire(INT16, default=0, since=7, ignorable=True)
    session_id: int = wire(INT32, default=0, since=7)
    responses: list[FetchableTopicResponse] = wire(
        array_of(FetchableTopicResponse), default_factory=list
    )
    node_endpoints: list[NodeEndpoint] = wire(
        array_of(NodeEndpoint), default_factory=list, since=16, tag=0
    )
