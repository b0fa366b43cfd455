"""Envelope (key 58), version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BYTES,
    INT16,
    message,
    nullable,
    wire,
)


@message(api_key=58, versions=(0, 0), flexible_since=0)
class EnvelopeRequest:
    request_data: bytes = wire(BYTES, default=b"")
    request_principal: bytes | None = wire(nullable(BYTES), default=b"")
    client_host_address: bytes = wire(BYTES, default=b"")


@message(api_key=58, versions=(0, 0), flexible_since=0)
class EnvelopeResponse:
    response_data: bytes | None = wire(nullable(BYTES), default=None)
    error_code: int = wire(INT16, default=0)
