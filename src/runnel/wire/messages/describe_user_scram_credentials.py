"""DescribeUserScramCredentials (key 50), version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    INT8,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class UserName:
    name: str = wire(STRING, default="")


@message(api_key=50, versions=(0, 0), flexible_since=0)
class DescribeUserScramCredentialsRequest:
    users: list[UserName] | None = wire(nullable(array_of(UserName)), default_factory=list)


@struct
class CredentialInfo:
    mechanism: int = wire(INT8, default=0)
    iterations: int = wire(INT32, default=0)


@struct
class DescribeUserScramCredentialsResult:
    user: str = wire(STRING, default="")
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
    credential_infos: list[CredentialInfo] = wire(array_of(CredentialInfo), default_factory=list)


@message(api_key=50, versions=(0, 0), flexible_since=0)
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
    results: list[DescribeUserScramCredentialsResult] = wire(
        array_of(DescribeUserScramCredentialsResult), default_factory=list
    )
