"""DeleteGroups (key 42), versions 0-2, flexible from 2.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    STRING,
    array_of,
    message,
    struct,
    wire,
)


@message(api_key=42, versions=(0, 2), flexible_since=2)
class DeleteGroupsRequest:
    groups_names: list[str] = wire(array_of(STRING), default_factory=list)


@struct
class DeletableGroupResult:
    group_id: str = wire(STRING, default="")
    error_code: int = wire(INT16, default=0)


@message(api_key=42, versions=(0, 2), flexible_since=2)
class DeleteGroupsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    results: list[DeletableGroupResult] = wire(array_of(DeletableGroupResult), default_factory=list)
