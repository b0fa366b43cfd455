"""FetchSnapshot (key 59), versions 0-1, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    RESPONSE_RECORDS,
    STRING,
    UINT16,
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
class FetchSnapshotRequestSnapshotId:
    end_offset: int = wire(INT64, default=0)
    epoch: int = wire(INT32, default=0)


@struct
class FetchSnapshotRequestPartitionSnapshot:
    partition: int = wire(INT32, default=0)
    current_leader_epoch: int = wire(INT32, default=0)
    snapshot_id: FetchSnapshotRequestSnapshotId = wire(
        struct_of(FetchSnapshotRequestSnapshotId), default=FetchSnapshotRequestSnapshotId()
    )
    position: int = wire(INT64, default=0)
    replica_directory_id: bytes = wire(UUID, default=NO_UUID, since=1, tag=0, ignorable=True)


@struct
class FetchSnapshotRequestTopicSnapshot:
    name: str = wire(STRING, default="")
    partitions: list[FetchSnapshotRequestPartitionSnapshot] = wire(
        array_of(FetchSnapshotRequestPartitionSnapshot), default_factory=list
    )


@message(api_key=59, versions=(0, 1), flexible_since=0)
class FetchSnapshotRequest:
    cluster_id: str | None = wire(nullable(STRING), default=None, tag=0)
    replica_id: int = wire(INT32, default=-1)
    max_bytes: int = wire(INT32, default=2147483647)
    topics: list[FetchSnapshotRequestTopicSnapshot] = wire(
        array_of(FetchSnapshotRequestTopicSnapshot), default_factory=list
    )


@frozen_struct
class FetchSnapshotResponseSnapshotId:
    end_offset: int = wire(INT64, default=0)
    epoch: int = wire(INT32, default=0)


@frozen_struct
class LeaderIdAndEpoch:
    leader_id: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=0)


@struct
class FetchSnapshotResponsePartitionSnapshot:
    index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    snapshot_id: FetchSnapshotResponseSnapshotId = wire(
        struct_of(FetchSnapshotResponseSnapshotId), default=FetchSnapshotResponseSnapshotId()
    )
    current_leader: LeaderIdAndEpoch = wire(
        struct_of(LeaderIdAndEpoch), default=LeaderIdAndEpoch(), tag=0
    )
    size: int = wire(INT64, default=0)
    position: int = wire(INT64, default=0)
    unaligned_records: Records = wire(RESPONSE_RECORDS, default=b"")


@struct
class FetchSnapshotResponseTopicSnapshot:
    name: str = wire(STRING, default="")
    partitions: list[FetchSnapshotResponsePartitionSnapshot] = wire(
        array_of(FetchSnapshotResponsePartitionSnapshot), default_factory=list
    )


@struct
class NodeEndpoint:
    node_id: int = wire(INT32, default=0, since=1)
    host: str = wire(STRING, default="", since=1)
    port: int = wire(UINT16, default=0, since=1)


@message(api_key=59, versions=(0, 1), flexible_since=0)
class FetchSnapshotResponse:
    throttle_time_ms: int = wire(INT32, default=0, ignorable=True)
    error_code: int = wire(INT16, default=0)
    topics: list[FetchSnapshotResponseTopicSnapshot] = wire(
        array_of(FetchSnapshotResponseTopicSnapshot), default_factory=list
    )
    node_endpoints: list[NodeEndpoint] = wire(
        array_of(NodeEndpoint), default_factory=list, since=1, tag=0
    )
