"""SyncGroup (key 14), versions 0-5, flexible from 4.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
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
class SyncGroupRequestAssignment:
    member_id: str = wire(STRING, default="")
    assignment: bytes = wire(BYTES, default=b"")


@message(api_key=14, versions=(0, 5), flexible_since=4)
class SyncGroupRequest:
    group_id: str = wire(STRING, default="")
    generation_id: int = wire(INT32, default=0)
    member_id: str = wire(STRING, default="")
    group_instance_id: str | None = wire(nullable(STRING), default=None, since=3)
    protocol_type: str | None = wire(nullable(STRING), default=None, since=5, ignorable=True)
    protocol_name: str | None = wire(nullable(STRING), default=None, since=5, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = wire(
        array_of(SyncGroupRequestAssignment), default_factory=list
    )


@message(api_key=14, versions=(0, 5), flexible_since=4)
class SyncGroupResponse:
    throttle_time_ms: int = wire(INT32, default=0, since=1, ignorable=True)
    error_code: int = wire(INT16, default=0)
    protocol_type: str | None = wire(nullable(STRING), default=None, since=5, ignorable=True)
    protocol_name: str | None = wire(nullable(STRING), default=None, since=5, ignorable=True)
    assignment: bytes = wire(BYTES, default=b"")
