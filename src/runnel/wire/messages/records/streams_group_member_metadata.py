"""StreamsGroupMemberMetadata (key 19); value: version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT32,
    STRING,
    UINT16,
    array_of,
    message,
    nullable,
    struct,
    struct_of,
    wire,
)


@message(api_key=19, versions=(0, 0))
class StreamsGroupMemberMetadataKey:
    group_id: str = wire(STRING, default="")
    member_id: str = wire(STRING, default="")


@struct
class Endpoint:
    host: str = wire(STRING, default="")
    port: int = wire(UINT16, default=0)


@struct
class KeyValue:
    key: str = wire(STRING, default="")
    value: str = wire(STRING, default="")


@message(api_key=19, versions=(0, 0), flexible_since=0)
class StreamsGroupMemberMetadataValue:
    instance_id: str | None = wire(nullable(STRING), default="")
    rack_id: str | None = wire(nullable(STRING), default="")
    client_id: str = wire(STRING, default="")
    client_host: str = wire(STRING, default="")
    rebalance_timeout_ms: int = wire(INT32, default=-1)
    topology_epoch: int = wire(INT32, default=0)
    process_id: str = wire(STRING, default="")
    user_endpoint: Endpoint | None = wire(nullable(struct_of(Endpoint)), default=None)
    client_tags: list[KeyValue] = wire(array_of(KeyValue), default_factory=list)
