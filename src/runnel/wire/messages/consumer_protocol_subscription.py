"""ConsumerProtocolSubscription, versions 0-3, never flexible.

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
    topic: str = wire(STRING, default="", since=1)
    partitions: list[int] = wire(array_of(INT32), default_factory=list, since=1)


@message(versions=(0, 3))
class ConsumerProtocolSubscription:
    topics: list[str] = wire(array_of(STRING), default_factory=list)
    user_data: bytes | None = wire(nullable(BYTES), default=None)
    owned_partitions: list[TopicPartition] = wire(
        array_of(TopicPartition), default_factory=list, since=1, ignorable=True
    )
    generation_id: int = wire(INT32, default=-1, since=2, ignorable=True)
    rack_id: str | None = wire(nullable(STRING), default=None, since=3, ignorable=True)
