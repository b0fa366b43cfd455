"""ConsumerProtocolAssignment, versions 0-3, never flexible.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BYTES,
    INT32,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class TopicPartition:
    topic: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@message(versions=(0, 3))
class ConsumerProtocolAssignment:
    assigned_partitions: list[TopicPartition] = wire(array_of(TopicPartition), default_factory=list)
    user_data: bytes | None = wire(nullable(BYTES), default=None)
