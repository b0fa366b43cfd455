"""GroupMetadata (key 2); value: versions 0-4, flexible from 4.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BYTES,
    INT32,
    INT64,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@message(api_key=2, versions=(0, 0))
class GroupMetadataKey:
    group: str = wire(STRING, default="")


@struct
class MemberMetadata:
    member_id: str = wire(STRING, default="")
    group_instance_id: str | None = wire(nullable(STRING), default=None, since=3, ignorable=True)
    client_id: str = wire(STRING, default="")
    client_host: str = wire(STRING, default="")
    rebalance_timeout: int = wire(INT32, default=-1, since=1, ignorable=True)
    session_timeout: int = wire(INT32, default=0)
    subscription: bytes = wire(BYTES, default=b"")
    assignment: bytes = wire(BYTES, default=b"")


@message(api_key=2, versions=(0, 4), flexible_since=4)
class GroupMetadataValue:
    protocol_type: str = wire(STRING, default="")
    generation: int = wire(INT32, default=0)
    protocol: str | None = wire(nullable(STRING), default="")
    leader: str | None = wire(nullable(STRING), default="")
    current_state_timestamp: int = wire(INT64, default=-1, since=2, ignorable=True)
    members: list[MemberMetadata] = wire(array_of(MemberMetadata), default_factory=list)
