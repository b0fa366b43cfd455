"""DescribeLogDirs (key 35), versions 1-5, flexible from 2.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class DescribableLogDirTopic:
    topic: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@message(api_key=35, versions=(1, 5), flexible_since=2)
class DescribeLogDirsRequest:
    topics: list[DescribableLogDirTopic] | None = wire(
        nullable(array_of(DescribableLogDirTopic)), default_factory=list
    )


@struct
class DescribeLogDirsPartition:
    partition_index: int = wire(INT32, default=0)
    partition_size: int = wire(INT64, default=0)
    offset_lag: int = wire(INT64, default=0)
    is_future_key: bool = wire(BOOL, default=False)


@struct
class DescribeLogDirsTopic:
    name: str = wire(STRING, default="")
    partitions: list[DescribeLogDirsPartition] = wire(
        array_of(DescribeLogDirsPartition), default_factory=list
    )


@struct
class DescribeLogDirsResult:
    error_code: int = wire(INT16, default=0)
    log_dir: str = wire(STRING, default="")
    topics: list[DescribeLogDirsTopic] = wire(array_of(DescribeLogDirsTopic), default_factory=list)
    total_bytes: int = wire(INT64, default=-1, since=4, ignorable=True)
    usable_bytes: int = wire(INT64, default=-1, since=4, ignorable=True)
    is_cordoned: bool = wire(BOOL, default=False, since=5, ignorable=True)


@message(api_key=35, versions=(1, 5), flexible_since=2)
class DescribeLogDirsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0, since=3, ignorable=True)
    results: list[DescribeLogDirsResult] = wire(
        array_of(DescribeLogDirsResult), default_factory=list
    )
