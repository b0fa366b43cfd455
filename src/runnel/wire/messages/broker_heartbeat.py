"""BrokerHeartbeat (key 63), versions 0-2, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    UUID,
    array_of,
    message,
    nullable,
    wire,
)


@message(api_key=63, versions=(0, 2), flexible_since=0)
class BrokerHeartbeatRequest:
    broker_id: int = wire(INT32, default=0)
    broker_epoch: int = wire(INT64, default=-1)
    current_metadata_offset: int = wire(INT64, default=0)
    want_fence: bool = wire(BOOL, default=False)
    want_shut_down: bool = wire(BOOL, default=False)
    offline_log_dirs: list[bytes] = wire(array_of(UUID), default_factory=list, since=1, tag=0)
    cordoned_log_dirs: list[bytes] | None = wire(
        nullable(array_of(UUID)), default=None, since=2, tag=1
    )


@message(api_key=63, versions=(0, 2), flexible_since=0)
class BrokerHeartbeatResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    is_caught_up: bool = wire(BOOL, default=False)
    is_fenced: bool = wire(BOOL, default=True)
    should_shut_down: bool = wire(BOOL, default=False)
