"""ListGroups (key 16), versions 0-5, flexible from 3.

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


@message(api_key=16, versions=(0, 5), flexible_since=3)
class ListGroupsRequest:
    states_filter: list[str] = wire(array_of(STRING), default_factory=list, since=4)
    types_filter: list[str] = wire(array_of(STRING), default_factory=list, since=5)


@struct
class ListedGroup:
    group_id: str = wire(STRING, default="")
    protocol_type: str = wire(STRING, default="")
    group_state: str = wire(STRING, default="", since=4, ignorable=True)
    group_type: str = wire(STRING, default="", since=5, ignorable=True)


@message(api_key=16, versions=(0, 5), flexible_since=3)
class ListGroupsResponse:
    throttle_time_ms: int = wire(INT32, default=0, since=1, ignorable=True)
    error_code: int = wire(INT16, default=0)
    groups: list[ListedGroup] = wire(array_of(ListedGroup), default_factory=list)
