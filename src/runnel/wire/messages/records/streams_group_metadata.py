"""StreamsGroupMetadata (key 17); value: version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT32,
    INT64,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@message(api_key=17, versions=(0, 0))
class StreamsGroupMetadataKey:
    group_id: str = wire(STRING, default="")


@struct
class LastAssignmentConfig:
    key: str = wire(STRING, default="")
    value: str = wire(STRING, default="")


@message(api_key=17, versions=(0, 0), flexible_since=0)
class StreamsGroupMetadataValue:
    epoch: int = wire(INT32, default=0)
    metadata_hash: int = wire(INT64, default=0)
    validated_topology_epoch: int = wire(INT32, default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = wire(
        nullable(array_of(LastAssignmentConfig)), default_factory=list, tag=1
    )
