"""DeleteRecords (key 21), versions 0-2, flexible from 2.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    array_of,
    message,
    struct,
    wire,
)


@struct
class DeleteRecordsPartition:
    partition_index: int = wire(INT32, default=0)
    offset: int = wire(INT64, default=0)


@struct
class DeleteRecordsTopic:
    name: str = wire(STRING, default="")
    partitions: list[DeleteRecordsPartition] = wire(
        array_of(DeleteRecordsPartition), default_factory=list
    )


@message(api_key=21, versions=(0, 2), flexible_since=2)
class DeleteRecordsRequest:
    topics: list[DeleteRecordsTopic] = wire(array_of(DeleteRecordsTopic), default_factory=list)
    timeout_ms: int = wire(INT32, default=0)


@struct
class DeleteRecordsPartitionResult:
    partition_index: int = wire(INT32, default=0)
    low_watermark: int = wire(INT64, default=0)
    error_code: int = wire(INT16, default=0)


@struct
class DeleteRecordsTopicResult:
    name: str = wire(STRING, default="")
    partitions: list[DeleteRecordsPartitionResult] = wire(
        array_of(DeleteRecordsPartitionResult), default_factory=list
    )


@message(api_key=21, versions=(0, 2), flexible_since=2)
class DeleteRecordsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    topics: list[DeleteRecordsTopicResult] = wire(
        array_of(DeleteRecordsTopicResult), default_factory=list
    )
