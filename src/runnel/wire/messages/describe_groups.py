"""DescribeGroups (key 15), versions 0-6, flexible from 5.

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


@message(api_key=15, versions=(0, 6), flexible_since=5)
class DescribeGroupsRequest:
    groups: list[str] = wire(array_of(STRING), default_factory=list)
    include_authorized_operations: bool = wire(BOOL, default=False, since=3)


@struct
class DescribedGroupMember:
    member_id: str = wire(STRING, default="")
    group_instance_id: str | None = wire(nullable(STRING), default=None, since=4, ignorable=True)
    client_id: str = wire(STRING, default="")
    client_host: str = wire(STRING, default="")
    member_metadata: bytes = wire(BYTES, default=b"")
    member_assignment: bytes = wire(BYTES, default=b"")


@struct
class DescribedGroup:
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None, since=6)
    group_id: str = wire(STRING, default="")
    group_state: str = wire(STRING, default="")
    protocol_type: str = wire(STRING, default="")
    protocol_data: str = wire(STRING, default="")
    members: list[DescribedGroupMember] = wire(array_of(DescribedGroupMember), default_factory=list)
    authorized_operations: int = wire(INT32, default=-2147483648, since=3)


@message(api_key=15, versions=(0, 6), flexible_since=5)
class DescribeGroupsResponse:
    throttle_time_ms: int = wire(INT32, default=0, since=1, ignorable=True)
    groups: list[DescribedGroup] = wire(array_of(DescribedGroup), default_factory=list)
