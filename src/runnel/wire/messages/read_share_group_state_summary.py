"""ReadShareGroupStateSummary (key 87), versions 0-1, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
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
class ReadStateSummaryData:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[PartitionData] = wire(array_of(PartitionData), default_factory=list)


@message(api_key=87, versions=(0, 1), flexible_since=0)
class ReadShareGroupStateSummaryRequest:
    group_id: str = wire(STRING, default="")
    topics: list[ReadStateSummaryData] = wire(array_of(ReadStateSummaryData), default_factory=list)


@struct
class PartitionResult:
    partition: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    state_epoch: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=0)
    start_offset: int = wire(INT64, default=0)
    delivery_complete_count: int = wire(INT32, default=-1, since=1, ignorable=True)


@struct
class ReadStateSummaryResult:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[PartitionResult] = wire(array_of(PartitionResult), default_factory=list)


@message(api_key=87, versions=(0, 1), flexible_since=0)
class ReadShareGroupStateSummaryResponse:
    results: list[ReadStateSummaryResult] = wire(
        array_of(ReadStateSummaryResult), default_factory=list
    )
