"""OffsetFetch (key 9), versions 1-10, flexible from 6.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    BOOL,
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
class OffsetFetchRequestTopic:
    name: str = wire(STRING, default="", until=7)
    partition_indexes: list[int] = wire(array_of(INT32), default_factory=list, until=7)


@struct
class OffsetFetchRequestTopics:
    name: str = wire(STRING, default="", since=8, until=9, ignorable=True)
    topic_id: bytes = wire(UUID, default=NO_UUID, since=10, ignorable=True)
    partition_indexes: list[int] = wire(array_of(INT32), default_factory=list, since=8)


@struct
class OffsetFetchRequestGroup:
    group_id: str = wire(STRING, default="", since=8)
    member_id: str | None = wire(nullable(STRING), default=None, since=9, ignorable=True)
    member_epoch: int = wire(INT32, default=-1, since=9, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = wire(
        nullable(array_of(OffsetFetchRequestTopics)), default_factory=list, since=8
    )


@message(api_key=9, versions=(1, 10), flexible_since=6)
class OffsetFetchRequest:
    group_id: str = wire(STRING, default="", until=7)
    topics: list[OffsetFetchRequestTopic] | None = wire(
        nullable(array_of(OffsetFetchRequestTopic), since=2, until=7), default_factory=list, until=7
    )
    groups: list[OffsetFetchRequestGroup] = wire(
        array_of(OffsetFetchRequestGroup), default_factory=list, since=8
    )
    require_stable: bool = wire(BOOL, default=False, since=7)


@struct
class OffsetFetchResponsePartition:
    partition_index: int = wire(INT32, default=0, until=7)
    committed_offset: int = wire(INT64, default=0, until=7)
    committed_leader_epoch: int = wire(INT32, default=-1, since=5, until=7, ignorable=True)
    metadata: str | None = wire(nullable(STRING, until=7), default="", until=7)
    error_code: int = wire(INT16, default=0, until=7)


@struct
class OffsetFetchResponseTopic:
    name: str = wire(STRING, default="", until=7)
    partitions: list[OffsetFetchResponsePartition] = wire(
        array_of(OffsetFetchResponsePartition), default_factory=list, until=7
    )


@struct
class OffsetFetchResponsePartitions:
    partition_index: int = wire(INT32, default=0, since=8)
    committed_offset: int = wire(INT64, default=0, since=8)
    committed_leader_epoch: int = wire(INT32, default=-1, since=8, ignorable=True)
    metadata: str | None = wire(nullable(STRING), default="", since=8)
    error_code: int = wire(INT16, default=0, since=8)


@struct
class OffsetFetchResponseTopics:
    name: str = wire(STRING, default="", since=8, until=9, ignorable=True)
    topic_id: bytes = wire(UUID, default=NO_UUID, since=10, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = wire(
        array_of(OffsetFetchResponsePartitions), default_factory=list, since=8
    )


@struct
class OffsetFetchResponseGroup:
    group_id: str = wire(STRING, default="", since=8)
    topics: list[OffsetFetchResponseTopics] = wire(
        array_of(OffsetFetchResponseTopics), default_factory=list, since=8
    )
    error_code: int = wire(INT16, default=0, since=8)


@message(api_key=9, versions=(1, 10), flexible_since=6)
class OffsetFetchResponse:
    throttle_time_ms: int = wire(INT32, default=0, since=3, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = wire(
        array_of(OffsetFetchResponseTopic), default_factory=list, until=7
    )
    error_code: int = wire(INT16, default=0, since=2, until=7, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = wire(
        array_of(OffsetFetchResponseGroup), default_factory=list, since=8
    )
