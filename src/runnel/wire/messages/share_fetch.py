"""ShareFetch (key 78), versions 1-2, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    BOOL,
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


@struct
class AcknowledgementBatch:
    first_offset: int = wire(INT64, default=0)
    last_offset: int = wire(INT64, default=0)
    acknowledge_types: list[int] = wire(array_of(INT8), default_factory=list)


@struct
class FetchPartition:
    partition_index: int = wire(INT32, default=0)
    partition_max_bytes: int = wire(INT32, default=0, until=0)
    acknowledgement_batches: list[AcknowledgementBatch] = wire(
        array_of(AcknowledgementBatch), default_factory=list
    )


@struct
class FetchTopic:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[FetchPartition] = wire(array_of(FetchPartition), default_factory=list)


@struct
class ForgottenTopic:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@message(api_key=78, versions=(1, 2), flexible_since=0)
class ShareFetchRequest:
    group_id: str | None = wire(nullable(STRING), default=None)
    member_id: str | None = wire(nullable(STRING), default="")
    share_session_epoch: int = wire(INT32, default=0)
    max_wait_ms: int = wire(INT32, default=0)
    min_bytes: int = wire(INT32, default=0)
    max_bytes: int = wire(INT32, default=2147483647)
    max_records: int = wire(INT32, default=0)
    batch_size: int = wire(INT32, default=0)
    share_acquire_mode: int = wire(INT8, default=0, since=2, ignorable=True)
    is_renew_ack: bool = wire(BOOL, default=False, since=2)
    topics: list[FetchTopic] = wire(array_of(FetchTopic), default_factory=list)
    forgotten_topics_data: list[ForgottenTopic] = wire(
        array_of(ForgottenTopic), default_factory=list
    )


@frozen_struct
class LeaderIdAndEpoch:
    leader_id: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=0)


@struct
class AcquiredRecords:
    first_offset: int = wire(INT64, default=0)
    last_offset: int = wire(INT64, default=0)
    delivery_count: int = wire(INT16, default=0)


@struct
class PartitionData:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    acknowledge_error_code: int = wire(INT16, default=0)
    acknowledge_error_message: str | None = wire(nullable(STRING), default=None)
    current_leader: LeaderIdAndEpoch = wire(struct_of(LeaderIdAndEpoch), default=LeaderIdAndEpoch())
    records: Records | None = wire(nullable(RESPONSE_RECORDS, until=0), default=None)
    acquired_records: list[AcquiredRecords] = wire(array_of(AcquiredRecords), default_factory=list)


@struct
class ShareFetchableTopicResponse:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[PartitionData] = wire(array_of(PartitionData), default_factory=list)


@struct
class NodeEndpoint:
    node_id: int = wire(INT32, default=0)
    host: str = wire(STRING, default="")
    port: int = wire(INT32, default=0)
    rack: str | None = wire(nullable(STRING), default=None)


@message(api_key=78, versions=(1, 2), flexible_since=0)
class ShareFetchResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    acquisition_lock_timeout_ms: int = wire(INT32, default=0)
    responses: list[ShareFetchableTopicResponse] = wire(
        array_of(ShareFetchableTopicResponse), default_factory=list
    )
    node_endpoints: list[NodeEndpoint] = wire(array_of(NodeEndpoint), default_factory=list)
