"""AlterShareGroupOffsets (key 91), version 0, flexible from 0.

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
class AlterShareGroupOffsetsRequestPartition:
    partition_index: int = wire(INT32, default=0)
    start_offset: int = wire(INT64, default=0)


@struct
class AlterShareGroupOffsetsRequestTopic:
    topic_name: str = wire(STRING, default="")
    partitions: list[AlterShareGroupOffsetsRequestPartition] = wire(
        array_of(AlterShareGroupOffsetsRequestPartition), default_factory=list
    )


@message(api_key=91, versions=(0, 0), flexible_since=0)
class AlterShareGroupOffsetsRequest:
    group_id: str = wire(STRING, default="")
    topics: list[AlterShareGroupOffsetsRequestTopic] = wire(
        array_of(AlterShareGroupOffsetsRequestTopic), default_factory=list
    )


@struct
class AlterShareGroupOffsetsResponsePartition:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)


@struct
class AlterShareGroupOffsetsResponseTopic:
    topic_name: str = wire(STRING, default="")
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[AlterShareGroupOffsetsResponsePartition] = wire(
        array_of(AlterShareGroupOffsetsResponsePartition), default_factory=list
    )


@message(api_key=91, versions=(0, 0), flexible_since=0)
class AlterShareGroupOffsetsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = wire(
        array_of(AlterShareGroupOffsetsResponseTopic), default_factory=list
    )
