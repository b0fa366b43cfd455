"""DeleteAcls (key 31), versions 1-3, flexible from 2.

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
class DeleteAclsFilter:
    resource_type_filter: int = wire(INT8, default=0)
    resource_name_filter: str | None = wire(nullable(STRING), default="")
    pattern_type_filter: int = wire(INT8, default=3)
    principal_filter: str | None = wire(nullable(STRING), default="")
    host_filter: str | None = wire(nullable(STRING), default="")
    operation: int = wire(INT8, default=0)
    permission_type: int = wire(INT8, default=0)


@message(api_key=31, versions=(1, 3), flexible_since=2)
class DeleteAclsRequest:
    filters: list[DeleteAclsFilter] = wire(array_of(DeleteAclsFilter), default_factory=list)


@struct
class DeleteAclsMatchingAcl:
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
    resource_type: int = wire(INT8, default=0)
    resource_name: str = wire(STRING, default="")
    pattern_type: int = wire(INT8, default=3)
    principal: str = wire(STRING, default="")
    host: str = wire(STRING, default="")
    operation: int = wire(INT8, default=0)
    permission_type: int = wire(INT8, default=0)


@struct
class DeleteAclsFilterResult:
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
    matching_acls: list[DeleteAclsMatchingAcl] = wire(
        array_of(DeleteAclsMatchingAcl), default_factory=list
    )


@message(api_key=31, versions=(1, 3), flexible_since=2)
class DeleteAclsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    filter_results: list[DeleteAclsFilterResult] = wire(
        array_of(DeleteAclsFilterResult), default_factory=list
    )
