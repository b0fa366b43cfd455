"""ShareGroupStatePartitionMetadata (key 15); value: version 0, flexible from 0.

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


@message(api_key=15, versions=(0, 0))
class ShareGroupStatePartitionMetadataKey:
    group_id: str = wire(STRING, default="")


@struct
class TopicPartitionsInfo:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    topic_name: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class TopicInfo:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    topic_name: str = wire(STRING, default="")


@message(api_key=15, versions=(0, 0), flexible_since=0)
class ShareGroupStatePartitionMetadataValue:
    initializing_topics: list[TopicPartitionsInfo] = wire(
        array_of(TopicPartitionsInfo), default_factory=list
    )
    initialized_topics: list[TopicPartitionsInfo] = wire(
        array_of(TopicPartitionsInfo), default_factory=list
    )
    deleting_topics: list[TopicInfo] = wire(array_of(TopicInfo), default_factory=list)
