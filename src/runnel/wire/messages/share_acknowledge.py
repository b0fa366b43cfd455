"""ShareAcknowledge (key 79), versions 1-2, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    INT8,
    STRING,
    UUID,
    array_of,
    frozen_struct,
    message,
    nullable,
    struct,
    struct_of,
    wire,
)


@struct
class AcknowledgementBatch:
    first_offset: int = wire(INT64, default=0)
    last_offset: int = wire(INT64, default=0)
    acknowledge_types: list[int] = wire(array_of(INT8), default_factory=list)


@struct
class AcknowledgePartition:
    partition_index: int = wire(INT32, default=0)
    acknowledgement_batches: list[AcknowledgementBatch] = wire(
        array_of(AcknowledgementBatch), default_factory=list
    )


@struct
class AcknowledgeTopic:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[AcknowledgePartition] = wire(
        array_of(AcknowledgePartition), default_factory=list
    )


@message(api_key=79, versions=(1, 2), flexible_since=0)
class ShareAcknowledgeRequest:
    group_id: str | None = wire(nullable(STRING), default=None)
    member_id: str | None = wire(nullable(STRING), default="")
    share_session_epoch: int = wire(INT32, default=0)
    is_renew_ack: bool = wire(BOOL, default=False, since=2)
    topics: list[AcknowledgeTopic] = wire(array_of(AcknowledgeTopic), default_factory=list)


@frozen_struct
class LeaderIdAndEpoch:
    leader_id: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=0)


@struct
class PartitionData:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    current_leader: LeaderIdAndEpoch = wire(struct_of(LeaderIdAndEpoch), default=LeaderIdAndEpoch())


@struct
class ShareAcknowledgeTopicResponse:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[PartitionData] = wire(array_of(PartitionData), default_factory=list)


@struct
class NodeEndpoint:
    node_id: int = wire(INT32, default=0)
    host: str = wire(STRING, default="")
    port: int = wire(INT32, default=0)
    rack: str | None = wire(nullable(STRING), default=None)


@message(api_key=79, versions=(1, 2), flexible_since=0)
class ShareAcknowledgeResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    acquisition_lock_timeout_ms: int = wire(INT32, default=0, since=2, ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = wire(
        array_of(ShareAcknowledgeTopicResponse), default_factory=list
    )
    node_endpoints: list[NodeEndpoint] = wire(array_of(NodeEndpoint), default_factory=list)
