"""IncrementalAlterConfigs (key 44), versions 0-1, flexible from 1.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
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
class AlterableConfig:
    name: str = wire(STRING, default="")
    config_operation: int = wire(INT8, default=0)
    value: str | None = wire(nullable(STRING), default="")


@struct
class AlterConfigsResource:
    resource_type: int = wire(INT8, default=0)
    resource_name: str = wire(STRING, default="")
    configs: list[AlterableConfig] = wire(array_of(AlterableConfig), default_factory=list)


@message(api_key=44, versions=(0, 1), flexible_since=1)
class IncrementalAlterConfigsRequest:
    resources: list[AlterConfigsResource] = wire(
        array_of(AlterConfigsResource), default_factory=list
    )
    validate_only: bool = wire(BOOL, default=False)


@struct
class AlterConfigsResourceResponse:
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
    resource_type: int = wire(INT8, default=0)
    resource_name: str = wire(STRING, default="")


@message(api_key=44, versions=(0, 1), flexible_since=1)
class IncrementalAlterConfigsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    responses: list[AlterConfigsResourceResponse] = wire(
        array_of(AlterConfigsResourceResponse), default_factory=list
    )
