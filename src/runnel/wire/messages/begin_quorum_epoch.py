"""BeginQuorumEpoch (key 53), versions 0-1, flexible from 1.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
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
class BeginQuorumEpochRequestPartitionData:
    partition_index: int = wire(INT32, default=0)
    voter_directory_id: bytes = wire(UUID, default=NO_UUID, since=1, ignorable=True)
    leader_id: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=0)


@struct
class BeginQuorumEpochRequestTopicData:
    topic_name: str = wire(STRING, default="")
    partitions: list[BeginQuorumEpochRequestPartitionData] = wire(
        array_of(BeginQuorumEpochRequestPartitionData), default_factory=list
    )


@struct
class LeaderEndpoint:
    name: str = wire(STRING, default="", since=1)
    host: str = wire(STRING, default="", since=1)
    port: int = wire(UINT16, default=0, since=1)


@message(api_key=53, versions=(0, 1), flexible_since=1)
class BeginQuorumEpochRequest:
    cluster_id: str | None = wire(nullable(STRING), default=None)
    voter_id: int = wire(INT32, default=-1, since=1, ignorable=True)
    topics: list[BeginQuorumEpochRequestTopicData] = wire(
        array_of(BeginQuorumEpochRequestTopicData), default_factory=list
    )
    leader_endpoints: list[LeaderEndpoint] = wire(
        array_of(LeaderEndpoint), default_factory=list, since=1, ignorable=True
    )


@struct
class BeginQuorumEpochResponsePartitionData:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    leader_id: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=0)


@struct
class BeginQuorumEpochResponseTopicData:
    topic_name: str = wire(STRING, default="")
    partitions: list[BeginQuorumEpochResponsePartitionData] = wire(
        array_of(BeginQuorumEpochResponsePartitionData), default_factory=list
    )


@struct
class NodeEndpoint:
    node_id: int = wire(INT32, default=0, since=1)
    host: str = wire(STRING, default="", since=1)
    port: int = wire(UINT16, default=0, since=1)


@message(api_key=53, versions=(0, 1), flexible_since=1)
class BeginQuorumEpochResponse:
    error_code: int = wire(INT16, default=0)
    topics: list[BeginQuorumEpochResponseTopicData] = wire(
        array_of(BeginQuorumEpochResponseTopicData), default_factory=list
    )
    node_endpoints: list[NodeEndpoint] = wire(
        array_of(NodeEndpoint), default_factory=list, since=1, tag=0
    )
