"""DescribeProducers (key 61), version 0, flexible from 0.

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
class TopicRequest:
    name: str = wire(STRING, default="")
    partition_indexes: list[int] = wire(array_of(INT32), default_factory=list)


@message(api_key=61, versions=(0, 0), flexible_since=0)
class DescribeProducersRequest:
    topics: list[TopicRequest] = wire(array_of(TopicRequest), default_factory=list)


@struct
class ProducerState:
    producer_id: int = wire(INT64, default=0)
    producer_epoch: int = wire(INT32, default=0)
    last_sequence: int = wire(INT32, default=-1)
    last_timestamp: int = wire(INT64, default=-1)
    coordinator_epoch: int = wire(INT32, default=0)
    current_txn_start_offset: int = wire(INT64, default=-1)


@struct
class PartitionResponse:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    active_producers: list[ProducerState] = wire(array_of(ProducerState), default_factory=list)


@struct
class TopicResponse:
    name: str = wire(STRING, default="")
    partitions: list[PartitionResponse] = wire(array_of(PartitionResponse), default_factory=list)


@message(api_key=61, versions=(0, 0), flexible_since=0)
class DescribeProducersResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    topics: list[TopicResponse] = wire(array_of(TopicResponse), default_factory=list)
