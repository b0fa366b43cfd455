"""Metadata (key 3), versions 0-13, flexible from 9.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    STRING,
    UUID,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class MetadataRequestTopic:
    topic_id: bytes = wire(UUID, default=NO_UUID, since=10, ignorable=True)
    name: str | None = wire(nullable(STRING, since=10), default="")


@message(api_key=3, versions=(0, 13), flexible_since=9)
class MetadataRequest:
    topics: list[MetadataRequestTopic] | None = wire(
        nullable(array_of(MetadataRequestTopic), since=1), default_factory=list
    )
    allow_auto_topic_creation: bool = wire(BOOL, default=True, since=4)
    include_cluster_authorized_operations: bool = wire(BOOL, default=False, since=8, until=10)
    include_topic_authorized_operations: bool = wire(BOOL, default=False, since=8)


@struct
class MetadataResponseBroker:
    node_id: int = wire(INT32, default=0)
    host: str = wire(STRING, default="")
    port: int = wire(INT32, default=0)
    rack: str | None = wire(nullable(STRING), default=None, since=1, ignorable=True)


@struct
class MetadataResponsePartition:
    error_code: int = wire(INT16, default=0)
    partition_index: int = wire(INT32, default=0)
    leader_id: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=-1, since=7, ignorable=True)
    replica_nodes: list[int] = wire(array_of(INT32), default_factory=list)
    isr_nodes: list[int] = wire(array_of(INT32), default_factory=list)
    offline_replicas: list[int] = wire(
        array_of(INT32), default_factory=list, since=5, ignorable=True
    )


@struct
class MetadataResponseTopic:
    error_code: int = wire(INT16, default=0)
    name: str | None = wire(nullable(STRING, since=12), default="")
    topic_id: bytes = wire(UUID, default=NO_UUID, since=10, ignorable=True)
    is_internal: bool = wire(BOOL, default=False, since=1, ignorable=True)
    partitions: list[MetadataResponsePartition] = wire(
        array_of(MetadataResponsePartition), default_factory=list
    )
    topic_authorized_operations: int = wire(INT32, default=-2147483648, since=8)


@message(api_key=3, versions=(0, 13), flexible_since=9)
class MetadataResponse:
    throttle_time_ms: int = wire(INT32, default=0, since=3, ignorable=True)
    brokers: list[MetadataResponseBroker] = wire(
        array_of(MetadataResponseBroker), default_factory=list
    )
    cluster_id: str | None = wire(nullable(STRING), default=None, since=2, ignorable=True)
    controller_id: int = wire(INT32, default=-1, since=1, ignorable=True)
    topics: list[MetadataResponseTopic] = wire(
        array_of(MetadataResponseTopic), default_factory=list
    )
    cluster_authorized_operations: int = wire(INT32, default=-2147483648, since=8, until=10)
    error_code: int = wire(INT16, default=0, since=13, ignorable=True)
