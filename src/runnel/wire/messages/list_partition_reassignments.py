"""ListPartitionReassignments (key 46), version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class ListPartitionReassignmentsTopics:
    name: str = wire(STRING, default="")
    partition_indexes: list[int] = wire(array_of(INT32), default_factory=list)


@message(api_key=46, versions=(0, 0), flexible_since=0)
class ListPartitionReassignmentsRequest:
    timeout_ms: int = wire(INT32, default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = wire(
        nullable(array_of(ListPartitionReassignmentsTopics)), default=None
    )


@struct
class OngoingPartitionReassignment:
    partition_index: int = wire(INT32, default=0)
    replicas: list[int] = wire(array_of(INT32), default_factory=list)
    adding_replicas: list[int] = wire(array_of(INT32), default_factory=list)
    removing_replicas: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class OngoingTopicReassignment:
    name: str = wire(STRING, default="")
    partitions: list[OngoingPartitionReassignment] = wire(
        array_of(OngoingPartitionReassignment), default_factory=list
    )


@message(api_key=46, versions=(0, 0), flexible_since=0)
class ListPartitionReassignmentsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
    topics: list[OngoingTopicReassignment] = wire(
        array_of(OngoingTopicReassignment), default_factory=list
    )
