"""DescribeCluster (key 60), versions 0-2, flexible from 0.

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


@message(api_key=60, versions=(0, 2), flexible_since=0)
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = wire(BOOL, default=False)
    endpoint_type: int = wire(INT8, default=1, since=1)
    include_fenced_brokers: bool = wire(BOOL, default=False, since=2)


@struct
class DescribeClusterBroker:
    broker_id: int = wire(INT32, default=0)
    host: str = wire(STRING, default="")
    port: int = wire(INT32, default=0)
    rack: str | None = wire(nullable(STRING), default=None)
    is_fenced: bool = wire(BOOL, default=False, since=2)


@message(api_key=60, versions=(0, 2), flexible_since=0)
class DescribeClusterResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    endpoint_type: int = wire(INT8, default=1, since=1)
    cluster_id: str = wire(STRING, default="")
    controller_id: int = wire(INT32, default=-1)
    brokers: list[DescribeClusterBroker] = wire(
        array_of(DescribeClusterBroker), default_factory=list
    )
    cluster_authorized_operations: int = wire(INT32, default=-2147483648)
