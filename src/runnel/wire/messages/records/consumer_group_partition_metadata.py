"""ConsumerGroupPartitionMetadata (key 4); value: version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT32,
    STRING,
    UUID,
    array_of,
    message,
    struct,
    wire,
)


@message(api_key=4, versions=(0, 0))
class ConsumerGroupPartitionMetadataKey:
    group_id: str = wire(STRING, default="")


@struct
class PartitionMetadata:
    partition: int = wire(INT32, default=0)
    racks: list[str] = wire(array_of(STRING), default_factory=list)


@struct
class TopicMetadata:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    topic_name: str = wire(STRING, default="")
    num_partitions: int = wire(INT32, default=0)
    partition_metadata: list[PartitionMetadata] = wire(
        array_of(PartitionMetadata), default_factory=list
    )


@message(api_key=4, versions=(0, 0), flexible_since=0)
class ConsumerGroupPartitionMetadataValue:
    topics: list[TopicMetadata] = wire(array_of(TopicMetadata), default_factory=list)
