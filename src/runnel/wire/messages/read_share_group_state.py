"""ReadShareGroupState (key 84), version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    INT8,
    STRING,
    UUID,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class PartitionData:
    partition: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=0)


@struct
class ReadStateData:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[PartitionData] = wire(array_of(PartitionData), default_factory=list)


@message(api_key=84, versions=(0, 0), flexible_since=0)
class ReadShareGroupStateRequest:
    group_id: str = wire(STRING, default="")
    topics: list[ReadStateData] = wire(array_of(ReadStateData), default_factory=list)


@struct
class StateBatch:
    first_offset: int = wire(INT64, default=0)
    last_offset: int = wire(INT64, default=0)
    delivery_state: int = wire(INT8, default=0)
    delivery_count: int = wire(INT16, default=0)


@struct
class PartitionResult:
    partition: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    state_epoch: int = wire(INT32, default=0)
    start_offset: int = wire(INT64, default=0)
    state_batches: list[StateBatch] = wire(array_of(StateBatch), default_factory=list)


@struct
class ReadStateResult:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[PartitionResult] = wire(array_of(PartitionResult), default_factory=list)


@message(api_key=84, versions=(0, 0), flexible_since=0)
class ReadShareGroupStateResponse:
    results: list[ReadStateResult] = wire(array_of(ReadStateResult), default_factory=list)
