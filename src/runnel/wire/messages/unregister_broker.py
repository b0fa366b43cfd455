"""UnregisterBroker (key 64), version 0, flexible from 0.

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


@message(api_key=64, versions=(0, 0), flexible_since=0)
class UnregisterBrokerRequest:
    broker_id: int = wire(INT32, default=0)


@message(api_key=64, versions=(0, 0), flexible_since=0)
class UnregisterBrokerResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
