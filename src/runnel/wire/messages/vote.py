"""Vote (key 52), versions 0-2, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    BOOL,
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
class VoteRequestPartitionData:
    partition_index: int = wire(INT32, default=0)
    replica_epoch: int = wire(INT32, default=0)
    replica_id: int = wire(INT32, default=0)
    replica_directory_id: bytes = wire(UUID, default=NO_UUID, since=1, ignorable=True)
    voter_directory_id: bytes = wire(UUID, default=NO_UUID, since=1, ignorable=True)
    last_offset_epoch: int = wire(INT32, default=0)
    last_offset: int = wire(INT64, default=0)
    pre_vote: bool = wire(BOOL, default=False, since=2)


@struct
class VoteRequestTopicData:
    topic_name: str = wire(STRING, default="")
    partitions: list[VoteRequestPartitionData] = wire(
        array_of(VoteRequestPartitionData), default_factory=list
    )


@message(api_key=52, versions=(0, 2), flexible_since=0)
class VoteRequest:
    cluster_id: str | None = wire(nullable(STRING), default=None)
    voter_id: int = wire(INT32, default=-1, since=1, ignorable=True)
    topics: list[VoteRequestTopicData] = wire(array_of(VoteRequestTopicData), default_factory=list)


@struct
class VoteResponsePartitionData:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    leader_id: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=0)
    vote_granted: bool = wire(BOOL, default=False)


@struct
class VoteResponseTopicData:
    topic_name: str = wire(STRING, default="")
    partitions: list[VoteResponsePartitionData] = wire(
        array_of(VoteResponsePartitionData), default_factory=list
    )


@struct
class NodeEndpoint:
    node_id: int = wire(INT32, default=0, since=1)
    host: str = wire(STRING, default="", since=1)
    port: int = wire(UINT16, default=0, since=1)


@message(api_key=52, versions=(0, 2), flexible_since=0)
class VoteResponse:
    error_code: int = wire(INT16, default=0)
    topics: list[VoteResponseTopicData] = wire(
        array_of(VoteResponseTopicData), default_factory=list
    )
    node_endpoints: list[NodeEndpoint] = wire(
        array_of(NodeEndpoint), default_factory=list, since=1, tag=0
    )
