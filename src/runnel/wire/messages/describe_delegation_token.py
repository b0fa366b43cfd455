"""DescribeDelegationToken (key 41), versions 1-3, flexible from 2.

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
class DescribeDelegationTokenOwner:
    principal_type: str = wire(STRING, default="")
    principal_name: str = wire(STRING, default="")


@message(api_key=41, versions=(1, 3), flexible_since=2)
class DescribeDelegationTokenRequest:
    owners: list[DescribeDelegationTokenOwner] | None = wire(
        nullable(array_of(DescribeDelegationTokenOwner)), default_factory=list
    )


@struct
class DescribedDelegationTokenRenewer:
    principal_type: str = wire(STRING, default="")
    principal_name: str = wire(STRING, default="")


@struct
class DescribedDelegationToken:
    principal_type: str = wire(STRING, default="")
    principal_name: str = wire(STRING, default="")
    token_requester_principal_type: str = wire(STRING, default="", since=3)
    token_requester_principal_name: str = wire(STRING, default="", since=3)
    issue_timestamp: int = wire(INT64, default=0)
    expiry_timestamp: int = wire(INT64, default=0)
    max_timestamp: int = wire(INT64, default=0)
    token_id: str = wire(STRING, default="")
    hmac: bytes = wire(BYTES, default=b"")
    renewers: list[DescribedDelegationTokenRenewer] = wire(
        array_of(DescribedDelegationTokenRenewer), default_factory=list
    )


@message(api_key=41, versions=(1, 3), flexible_since=2)
class DescribeDelegationTokenResponse:
    error_code: int = wire(INT16, default=0)
    tokens: list[DescribedDelegationToken] = wire(
        array_of(DescribedDelegationToken), default_factory=list
    )
    throttle_time_ms: int = wire(INT32, default=0)
