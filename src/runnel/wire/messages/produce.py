"""Produce (key 0), versions 3-13, flexible from 9.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.ports import Readable
from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    RECORDS,
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
class PartitionProduceData:
    index: int = wire(INT32, default=0)
    records: Readable | None = wire(nullable(RECORDS), default=None)


@struct
class TopicProduceData:
    name: str = wire(STRING, default="", until=12, ignorable=True)
    topic_id: bytes = wire(UUID, default=NO_UUID, since=13, ignorable=True)
    partition_data: list[PartitionProduceData] = wire(
        array_of(PartitionProduceData), default_factory=list
    )


@message(api_key=0, versions=(3, 13), flexible_since=9)
class ProduceRequest:
    transactional_id: str | None = wire(nullable(STRING), default=None)
    acks: int = wire(INT16, default=0)
    timeout_ms: int = wire(INT32, default=0)
    topic_data: list[TopicProduceData] = wire(array_of(TopicProduceData), default_factory=list)


@struct
class BatchIndexAndErrorMessage:
    batch_index: int = wire(INT32, default=0, since=8)
    batch_index_error_message: str | None = wire(nullable(STRING), default=None, since=8)


@frozen_struct
class LeaderIdAndEpoch:
    leader_id: int = wire(INT32, default=-1, since=10)
    leader_epoch: int = wire(INT32, default=-1, since=10)


@struct
class PartitionProduceResponse:
    index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    base_offset: int = wire(INT64, default=0)
    log_append_time_ms: int = wire(INT64, default=-1, ignorable=True)
    log_start_offset: int = wire(INT64, default=-1, since=5, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = wire(
        array_of(BatchIndexAndErrorMessage), default_factory=list, since=8, ignorable=True
    )
    error_message: str | None = wire(nullable(STRING), default=None, since=8, ignorable=True)
    current_leader: LeaderIdAndEpoch = wire(
        struct_of(LeaderIdAndEpoch), default=LeaderIdAndEpoch(), since=10, tag=0
    )


@struct
class TopicProduceResponse:
    name: str = wire(STRING, default="", until=12, ignorable=True)
    topic_id: bytes = wire(UUID, default=NO_UUID, since=13, ignorable=True)
    partition_responses: list[PartitionProduceResponse] = wire(
        array_of(PartitionProduceResponse), default_factory=list
    )


@struct
class NodeEndpoint:
    node_id: int = wire(INT32, default=0, since=10)
    host: str = wire(STRING, default="", since=10)
    port: int = wire(INT32, default=0, since=10)
    rack: str | None = wire(nullable(STRING), default=None, since=10)


@message(api_key=0, versions=(3, 13), flexible_since=9)
class ProduceResponse:
    responses: list[TopicProduceResponse] = wire(
        array_of(TopicProduceResponse), default_factory=list
    )
    throttle_time_ms: int = wire(INT32, default=0, ignorable=True)
    node_endpoints: list[NodeEndpoint] = wire(
        array_of(NodeEndpoint), default_factory=list, since=10, tag=0
    )
