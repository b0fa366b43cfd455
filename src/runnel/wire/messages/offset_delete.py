"""OffsetDelete (key 47), version 0, never flexible.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    STRING,
    array_of,
    message,
    struct,
    wire,
)


@struct
class OffsetDeleteRequestPartition:
    partition_index: int = wire(INT32, default=0)


@struct
class OffsetDeleteRequestTopic:
    name: str = wire(STRING, default="")
    partitions: list[OffsetDeleteRequestPartition] = wire(
        array_of(OffsetDeleteRequestPartition), default_factory=list
    )


@message(api_key=47, versions=(0, 0))
class OffsetDeleteRequest:
    group_id: str = wire(STRING, default="")
    topics: list[OffsetDeleteRequestTopic] = wire(
        array_of(OffsetDeleteRequestTopic), default_factory=list
    )


@struct
class OffsetDeleteResponsePartition:
    partition_index: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)


@struct
class OffsetDeleteResponseTopic:
    name: str = wire(STRING, default="")
    partitions: list[OffsetDeleteResponsePartition] = wire(
        array_of(OffsetDeleteResponsePartition), default_factory=list
    )


@message(api_key=47, versions=(0, 0))
class OffsetDeleteResponse:
    error_code: int = wire(INT16, default=0)
    throttle_time_ms: int = wire(INT32, default=0, ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = wire(
        array_of(OffsetDeleteResponseTopic), default_factory=list
    )
