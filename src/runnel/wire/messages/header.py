"""RequestHeader: versions 1-2, flexible from 2; ResponseHeader: versions 0-1, flexible from 1.

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


@message(versions=(1, 2), flexible_since=2)
class RequestHeader:
    request_api_key: int = wire(INT16, default=0)
    request_api_version: int = wire(INT16, default=0)
    correlation_id: int = wire(INT32, default=0)
    client_id: str | None = wire(nullable(STRING), default="", flexible=False)


@message(versions=(0, 1), flexible_since=1)
class ResponseHeader:
    correlation_id: int = wire(INT32, default=0)
