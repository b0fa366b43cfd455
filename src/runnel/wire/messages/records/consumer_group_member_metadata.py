"""ConsumerGroupMemberMetadata (key 5); value: version 0, flexible from 0.

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
    struct_of,
    wire,
)


@message(api_key=5, versions=(0, 0))
class ConsumerGroupMemberMetadataKey:
    group_id: str = wire(STRING, default="")
    member_id: str = wire(STRING, default="")


@struct
class ClassicProtocol:
    name: str = wire(STRING, default="")
    metadata: bytes = wire(BYTES, default=b"")


@struct
class ClassicMemberMetadata:
    session_timeout_ms: int = wire(INT32, default=0)
    supported_protocols: list[ClassicProtocol] = wire(
        array_of(ClassicProtocol), default_factory=list
    )


@message(api_key=5, versions=(0, 0), flexible_since=0)
class ConsumerGroupMemberMetadataValue:
    instance_id: str | None = wire(nullable(STRING), default="")
    rack_id: str | None = wire(nullable(STRING), default="")
    client_id: str = wire(STRING, default="")
    client_host: str = wire(STRING, default="")
    subscribed_topic_names: list[str] = wire(array_of(STRING), default_factory=list)
    subscribed_topic_regex: str | None = wire(nullable(STRING), default="")
    rebalance_timeout_ms: int = wire(INT32, default=-1)
    server_assignor: str | None = wire(nullable(STRING), default="")
    classic_member_metadata: ClassicMemberMetadata | None = wire(
        nullable(struct_of(ClassicMemberMetadata)), default_factory=ClassicMemberMetadata, tag=0
    )
