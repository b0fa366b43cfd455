"""JoinGroup (key 11), versions 0-9, flexible from 6.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    BYTES,
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
class JoinGroupRequestProtocol:
    name: str = wire(STRING, default="")
    metadata: bytes = wire(BYTES, default=b"")


@message(api_key=11, versions=(0, 9), flexible_since=6)
class JoinGroupRequest:
    group_id: str = wire(STRING, default="")
    session_timeout_ms: int = wire(INT32, default=0)
    rebalance_timeout_ms: int = wire(INT32, default=-1, since=1, ignorable=True)
    member_id: str = wire(STRING, default="")
    group_instance_id: str | None = wire(nullable(STRING), default=None, since=5)
    protocol_type: str = wire(STRING, default="")
    protocols: list[JoinGroupRequestProtocol] = wire(
        array_of(JoinGroupRequestProtocol), default_factory=list
    )
    reason: str | None = wire(nullable(STRING), default=None, since=8, ignorable=True)


@struct
class JoinGroupResponseMember:
    member_id: str = wire(STRING, default="")
    group_instance_id: str | None = wire(nullable(STRING), default=None, since=5, ignorable=True)
    metadata: bytes = wire(BYTES, default=b"")


@message(api_key=11, versions=(0, 9), flexible_since=6)
class JoinGroupResponse:
    throttle_time_ms: int = wire(INT32, default=0, since=2, ignorable=True)
    error_code: int = wire(INT16, default=0)
    generation_id: int = wire(INT32, default=-1)
    protocol_type: str | None = wire(nullable(STRING), default=None, since=7, ignorable=True)
    protocol_name: str | None = wire(nullable(STRING, since=7), default="")
    leader: str = wire(STRING, default="")
    skip_assignment: bool = wire(BOOL, default=False, since=9)
    member_id: str = wire(STRING, default="")
    members: list[JoinGroupResponseMember] = wire(
        array_of(JoinGroupResponseMember), default_factory=list
    )
