"""CreatePartitions (key 37), versions 0-3, flexible from 2.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
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
class CreatePartitionsAssignment:
    broker_ids: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class CreatePartitionsTopic:
    name: str = wire(STRING, default="")
    count: int = wire(INT32, default=0)
    assignments: list[CreatePartitionsAssignment] | None = wire(
        nullable(array_of(CreatePartitionsAssignment)), default_factory=list
    )


@message(api_key=37, versions=(0, 3), flexible_since=2)
class CreatePartitionsRequest:
    topics: list[CreatePartitionsTopic] = wire(
        array_of(CreatePartitionsTopic), default_factory=list
    )
    timeout_ms: int = wire(INT32, default=0)
    validate_only: bool = wire(BOOL, default=False)


@struct
class CreatePartitionsTopicResult:
    name: str = wire(STRING, default="")
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)


@message(api_key=37, versions=(0, 3), flexible_since=2)
class CreatePartitionsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    results: list[CreatePartitionsTopicResult] = wire(
        array_of(CreatePartitionsTopicResult), default_factory=list
    )
