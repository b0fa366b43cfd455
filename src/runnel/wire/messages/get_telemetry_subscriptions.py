"""GetTelemetrySubscriptions (key 71), version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT8,
    STRING,
    UUID,
    array_of,
    message,
    wire,
)


@message(api_key=71, versions=(0, 0), flexible_since=0)
class GetTelemetrySubscriptionsRequest:
    client_instance_id: bytes = wire(UUID, default=NO_UUID)


@message(api_key=71, versions=(0, 0), flexible_since=0)
class GetTelemetrySubscriptionsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    client_instance_id: bytes = wire(UUID, default=NO_UUID)
    subscription_id: int = wire(INT32, default=0)
    accepted_compression_types: list[int] = wire(array_of(INT8), default_factory=list)
    push_interval_ms: int = wire(INT32, default=0)
    telemetry_max_bytes: int = wire(INT32, default=0)
    delta_temporality: bool = wire(BOOL, default=False)
    requested_metrics: list[str] = wire(array_of(STRING), default_factory=list)
