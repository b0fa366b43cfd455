"""PushTelemetry (key 72), version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    BOOL,
    BYTES,
    INT16,
    INT32,
    INT8,
    UUID,
    message,
    wire,
)


@message(api_key=72, versions=(0, 0), flexible_since=0)
class PushTelemetryRequest:
    client_instance_id: bytes = wire(UUID, default=NO_UUID)
    subscription_id: int = wire(INT32, default=0)
    terminating: bool = wire(BOOL, default=False)
    compression_type: int = wire(INT8, default=0)
    metrics: bytes = wire(BYTES, default=b"")


@message(api_key=72, versions=(0, 0), flexible_since=0)
class PushTelemetryResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
