"""CreateAcls (key 30), versions 1-3, flexible from 2.

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
class AclCreation:
    resource_type: int = wire(INT8, default=0)
    resource_name: str = wire(STRING, default="")
    resource_pattern_type: int = wire(INT8, default=3)
    principal: str = wire(STRING, default="")
    host: str = wire(STRING, default="")
    operation: int = wire(INT8, default=0)
    permission_type: int = wire(INT8, default=0)


@message(api_key=30, versions=(1, 3), flexible_since=2)
class CreateAclsRequest:
    creations: list[AclCreation] = wire(array_of(AclCreation), default_factory=list)


@struct
class AclCreationResult:
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")


@message(api_key=30, versions=(1, 3), flexible_since=2)
class CreateAclsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    results: list[AclCreationResult] = wire(array_of(AclCreationResult), default_factory=list)
