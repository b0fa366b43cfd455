"""ListConfigResources (key 74), versions 0-1, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    INT8,
    STRING,
    array_of,
    message,
    struct,
    wire,
)


@message(api_key=74, versions=(0, 1), flexible_since=0)
class ListConfigResourcesRequest:
    resource_types: list[int] = wire(array_of(INT8), default_factory=list, since=1)


@struct
class ConfigResource:
    resource_name: str = wire(STRING, default="")
    resource_type: int = wire(INT8, default=16, since=1, ignorable=True)


@message(api_key=74, versions=(0, 1), flexible_since=0)
class ListConfigResourcesResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    config_resources: list[ConfigResource] = wire(array_of(ConfigResource), default_factory=list)
