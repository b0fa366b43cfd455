"""CreateDelegationToken (key 38), versions 1-3, flexible from 2.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BYTES,
    INT16,
    INT32,
    INT64,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class CreatableRenewers:
    principal_type: str = wire(STRING, default="")
    principal_name: str = wire(STRING, default="")


@message(api_key=38, versions=(1, 3), flexible_since=2)
class CreateDelegationTokenRequest:
    owner_principal_type: str | None = wire(nullable(STRING), default="", since=3)
    owner_principal_name: str | None = wire(nullable(STRING), default="", since=3)
    renewers: list[CreatableRenewers] = wire(array_of(CreatableRenewers), default_factory=list)
    max_lifetime_ms: int = wire(INT64, default=0)


@message(api_key=38, versions=(1, 3), flexible_since=2)
class CreateDelegationTokenResponse:
    error_code: int = wire(INT16, default=0)
    principal_type: str = wire(STRING, default="")
    principal_name: str = wire(STRING, default="")
    token_requester_principal_type: str = wire(STRING, default="", since=3)
    token_requester_principal_name: str = wire(STRING, default="", since=3)
    issue_timestamp_ms: int = wire(INT64, default=0)
    expiry_timestamp_ms: int = wire(INT64, default=0)
    max_timestamp_ms: int = wire(INT64, default=0)
    token_id: str = wire(STRING, default="")
    hmac: bytes = wire(BYTES, default=b"")
    throttle_time_ms: int = wire(INT32, default=0)
