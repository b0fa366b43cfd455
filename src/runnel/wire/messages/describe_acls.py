"""DescribeAcls (key 29), versions 1-3, flexible from 2.

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


@message(api_key=29, versions=(1, 3), flexible_since=2)
class DescribeAclsRequest:
    resource_type_filter: int = wire(INT8, default=0)
    resource_name_filter: str | None = wire(nullable(STRING), default="")
    pattern_type_filter: int = wire(INT8, default=3)
    principal_filter: str | None = wire(nullable(STRING), default="")
    host_filter: str | None = wire(nullable(STRING), default="")
    operation: int = wire(INT8, default=0)
    permission_type: int = wire(INT8, default=0)


@struct
class AclDescription:
    principal: str = wire(STRING, default="")
    host: str = wire(STRING, default="")
    operation: int = wire(INT8, default=0)
    permission_type: int = wire(INT8, default=0)


@struct
class DescribeAclsResource:
    resource_type: int = wire(INT8, default=0)
    resource_name: str = wire(STRING, default="")
    pattern_type: int = wire(INT8, default=3)
    acls: list[AclDescription] = wire(array_of(AclDescription), default_factory=list)


@message(api_key=29, versions=(1, 3), flexible_since=2)
class DescribeAclsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
    resources: list[DescribeAclsResource] = wire(
        array_of(DescribeAclsResource), default_factory=list
    )
