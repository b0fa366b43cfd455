"""AlterUserScramCredentials (key 51), version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BYTES,
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
class ScramCredentialDeletion:
    name: str = wire(STRING, default="")
    mechanism: int = wire(INT8, default=0)


@struct
class ScramCredentialUpsertion:
    name: str = wire(STRING, default="")
    mechanism: int = wire(INT8, default=0)
    iterations: int = wire(INT32, default=0)
    salt: bytes = wire(BYTES, default=b"")
    salted_password: bytes = wire(BYTES, default=b"")


@message(api_key=51, versions=(0, 0), flexible_since=0)
class AlterUserScramCredentialsRequest:
    deletions: list[ScramCredentialDeletion] = wire(
        array_of(ScramCredentialDeletion), default_factory=list
    )
    upsertions: list[ScramCredentialUpsertion] = wire(
        array_of(ScramCredentialUpsertion), default_factory=list
    )


@struct
class AlterUserScramCredentialsResult:
    user: str = wire(STRING, default="")
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")


@message(api_key=51, versions=(0, 0), flexible_since=0)
class AlterUserScramCredentialsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    results: list[AlterUserScramCredentialsResult] = wire(
        array_of(AlterUserScramCredentialsResult), default_factory=list
    )
