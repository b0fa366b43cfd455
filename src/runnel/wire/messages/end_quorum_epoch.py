"""EndQuorumEpoch (key 54), versions 0-1, flexible from 1.

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
class ReplicaInfo:
    candidate_id: int = wire(INT32, default=0, since=1)
    candidate_directory_id: bytes = wire(UUID, default=NO_UUID, since=1)


@struct
class EndQuorumEpochRequestPartitionData:
    partition_index: int = wire(INT32, default=0)
    leader_id: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=0)
    preferred_successors: list[int] = wire(
        array_of(INT32), default_factory=list, until=0, ignorable=True
    )
    preferred_candidates: list[ReplicaInfo] = wire(
        array_of(ReplicaInfo), default_factory=list, since=1, ignorable=True
    )


@struct
class EndQuorumEpochRequestTopicData:
    topic_name: str = wire(STRING, default="")
    partitions: list[EndQuorumEpochRequestPartitionData] = wire(
        array_of(EndQuorumEpochRequestPartitionData), default_factory=list
    )


@struct
class LeaderEndpoint:
    name: str = wire(STRING, default="", since=1)
    host: str = wire(STRING, default="", since=1)
    port: int = wire(UINT16, default=0, since=1)


@message(api_key=54, versions=(0, 1), flexible_since=1)
class EndQuorumEpochRequest:
    cluster_id: str | None = wire(nullable(STRING), default=None)
    topics: list[EndQuorumEpochRequestTopicData] = wire(
        array_of(EndQuorumEpochRequestTopicData), default_factory=list
    )
    leader_endpoints: list[LeaderEndpoint] = wire(
        array_of(LeaderEndpoint), default_factory=list, since=1, ignorable=True
    )


@struct
class EndQuorumEpochResponsePartitionData:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    leader_id: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=0)


@struct
class EndQuorumEpochResponseTopicData:
    topic_name: str = wire(STRING, default="")
    partitions: list[EndQuorumEpochResponsePartitionData] = wire(
        array_of(EndQuorumEpochResponsePartitionData), default_factory=list
    )


@struct
class NodeEndpoint:
    node_id: int = wire(INT32, default=0, since=1)
    host: str = wire(STRING, default="", since=1)
    port: int = wire(UINT16, default=0, since=1)


@message(api_key=54, versions=(0, 1), flexible_since=1)
class EndQuorumEpochResponse:
    error_code: int = wire(INT16, default=0)
    topics: list[EndQuorumEpochResponseTopicData] = wire(
        array_of(EndQuorumEpochResponseTopicData), default_factory=list
    )
    node_endpoints: list[NodeEndpoint] = wire(
        array_of(NodeEndpoint), default_factory=list, since=1, tag=0
    )
