"""DescribeQuorum (key 55), versions 0-2, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class DescribeQuorumRequestPartitionData:
    partition_index: int = wire(INT32, default=0)


@struct
class DescribeQuorumRequestTopicData:
    topic_name: str = wire(STRING, default="")
    partitions: list[DescribeQuorumRequestPartitionData] = wire(
        array_of(DescribeQuorumRequestPartitionData), default_factory=list
    )


@message(api_key=55, versions=(0, 2), flexible_since=0)
class DescribeQuorumRequest:
    topics: list[DescribeQuorumRequestTopicData] = wire(
        array_of(DescribeQuorumRequestTopicData), default_factory=list
    )


@struct
class ReplicaState:
    replica_id: int = wire(INT32, default=0)
    replica_directory_id: bytes = wire(UUID, default=NO_UUID, since=2)
    log_end_offset: int = wire(INT64, default=0)
    last_fetch_timestamp: int = wire(INT64, default=-1, since=1, ignorable=True)
    last_caught_up_timestamp: int = wire(INT64, default=-1, since=1, ignorable=True)


@struct
class DescribeQuorumResponsePartitionData:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="", since=2, ignorable=True)
    leader_id: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=0)
    high_watermark: int = wire(INT64, default=0)
    current_voters: list[ReplicaState] = wire(array_of(ReplicaState), default_factory=list)
    observers: list[ReplicaState] = wire(array_of(ReplicaState), default_factory=list)


@struct
class DescribeQuorumResponseTopicData:
    topic_name: str = wire(STRING, default="")
    partitions: list[DescribeQuorumResponsePartitionData] = wire(
        array_of(DescribeQuorumResponsePartitionData), default_factory=list
    )


@struct
class Listener:
    name: str = wire(STRING, default="", since=2)
    host: str = wire(STRING, default="", since=2)
    port: int = wire(UINT16, default=0, since=2)


@struct
class Node:
    node_id: int = wire(INT32, default=0, since=2)
    listeners: list[Listener] = wire(array_of(Listener), default_factory=list, since=2)


@message(api_key=55, versions=(0, 2), flexible_since=0)
class DescribeQuorumResponse:
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="", since=2, ignorable=True)
    topics: list[DescribeQuorumResponseTopicData] = wire(
        array_of(DescribeQuorumResponseTopicData), default_factory=list
    )
    nodes: list[Node] = wire(array_of(Node), default_factory=list, since=2)
