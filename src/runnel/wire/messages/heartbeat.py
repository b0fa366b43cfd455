"""Heartbeat (key 12), versions 0-4, flexible from 4.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    STRING,
    message,
    nullable,
    wire,
)


@message(api_key=12, versions=(0, 4), flexible_since=4)
class HeartbeatRequest:
    group_id: str = wire(STRING, default="")
    generation_id: int = wire(INT32, default=0)
    member_id: str = wire(STRING, default="")
    group_instance_id: str | None = wire(nullable(STRING), default=None, since=3)


@message(api_key=12, versions=(0, 4), flexible_since=4)
class HeartbeatResponse:
    throttle_time_ms: int = wire(INT32, default=0, since=1, ignorable=True)
    error_code: int = wire(INT16, default=0)
