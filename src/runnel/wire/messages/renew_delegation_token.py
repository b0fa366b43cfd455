"""RenewDelegationToken (key 39), versions 1-2, flexible from 2.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BYTES,
    INT16,
    INT32,
    INT64,
    message,
    wire,
)


@message(api_key=39, versions=(1, 2), flexible_since=2)
class RenewDelegationTokenRequest:
    hmac: bytes = wire(BYTES, default=b"")
    renew_period_ms: int = wire(INT64, default=0)


@message(api_key=39, versions=(1, 2), flexible_since=2)
class RenewDelegationTokenResponse:
    error_code: int = wire(INT16, default=0)
    expiry_timestamp_ms: int = wire(INT64, default=0)
    throttle_time_ms: int = wire(INT32, default=0)
