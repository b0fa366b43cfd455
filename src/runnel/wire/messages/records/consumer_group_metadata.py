"""ConsumerGroupMetadata (key 3); value: version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT32,
    INT64,
    STRING,
    message,
    wire,
)


@message(api_key=3, versions=(0, 0))
class ConsumerGroupMetadataKey:
    group_id: str = wire(STRING, default="")


@message(api_key=3, versions=(0, 0), flexible_since=0)
class ConsumerGroupMetadataValue:
    epoch: int = wire(INT32, default=0)
    metadata_hash: int = wire(INT64, default=0, tag=0)
