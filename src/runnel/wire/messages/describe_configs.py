"""DescribeConfigs (key 32), versions 1-4, flexible from 4.

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
class DescribeConfigsResource:
    resource_type: int = wire(INT8, default=0)
    resource_name: str = wire(STRING, default="")
    configuration_keys: list[str] | None = wire(nullable(array_of(STRING)), default_factory=list)


@message(api_key=32, versions=(1, 4), flexible_since=4)
class DescribeConfigsRequest:
    resources: list[DescribeConfigsResource] = wire(
        array_of(DescribeConfigsResource), default_factory=list
    )
    include_synonyms: bool = wire(BOOL, default=False)
    include_documentation: bool = wire(BOOL, default=False, since=3)


@struct
class DescribeConfigsSynonym:
    name: str = wire(STRING, default="")
    value: str | None = wire(nullable(STRING), default="")
    source: int = wire(INT8, default=0)


@struct
class DescribeConfigsResourceResult:
    name: str = wire(STRING, default="")
    value: str | None = wire(nullable(STRING), default="")
    read_only: bool = wire(BOOL, default=False)
    config_source: int = wire(INT8, default=-1, ignorable=True)
    is_sensitive: bool = wire(BOOL, default=False)
    synonyms: list[DescribeConfigsSynonym] = wire(
        array_of(DescribeConfigsSynonym), default_factory=list, ignorable=True
    )
    config_type: int = wire(INT8, default=0, since=3, ignorable=True)
    documentation: str | None = wire(nullable(STRING), default="", since=3, ignorable=True)


@struct
class DescribeConfigsResult:
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="")
    resource_type: int = wire(INT8, default=0)
    resource_name: str = wire(STRING, default="")
    configs: list[DescribeConfigsResourceResult] = wire(
        array_of(DescribeConfigsResourceResult), default_factory=list
    )


@message(api_key=32, versions=(1, 4), flexible_since=4)
class DescribeConfigsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    results: list[DescribeConfigsResult] = wire(
        array_of(DescribeConfigsResult), default_factory=list
    )
