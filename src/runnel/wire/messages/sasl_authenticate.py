"""SaslAuthenticate (key 36), versions 0-2, flexible from 2.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BYTES,
    INT16,
    INT64,
    STRING,
    message,
    nullable,
    wire,
)


@message(api_key=36, versions=(0, 2), flexible_since=2)
class SaslAuthenticateRequest:
    auth_bytes: bytes = wire(BYTES, default=b"")


@message(api_key=36, versions=(0, 2), flexible_since=2)
class SaslAuthenticateResponse:
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
    auth_bytes: bytes = wire(BYTES, default=b"")
    session_lifetime_ms: int = wire(INT64, default=0, since=1, ignorable=True)
