"""LeaveGroup (key 13), versions 0-5, flexible from 4.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
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
class MemberIdentity:
    member_id: str = wire(STRING, default="", since=3)
    group_instance_id: str | None = wire(nullable(STRING), default=None, since=3)
    reason: str | None = wire(nullable(STRING), default=None, since=5, ignorable=True)


@message(api_key=13, versions=(0, 5), flexible_since=4)
class LeaveGroupRequest:
    group_id: str = wire(STRING, default="")
    member_id: str = wire(STRING, default="", until=2)
    members: list[MemberIdentity] = wire(array_of(MemberIdentity), default_factory=list, since=3)


@struct
class MemberResponse:
    member_id: str = wire(STRING, default="", since=3)
    group_instance_id: str | None = wire(nullable(STRING), default="", since=3)
    error_code: int = wire(INT16, default=0, since=3)


@message(api_key=13, versions=(0, 5), flexible_since=4)
class LeaveGroupResponse:
    throttle_time_ms: int = wire(INT32, default=0, since=1, ignorable=True)
    error_code: int = wire(INT16, default=0)
    members: list[MemberResponse] = wire(array_of(MemberResponse), default_factory=list, since=3)
