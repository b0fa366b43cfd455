"""ConsumerGroupHeartbeat (key 68), versions 0-1, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
    STRING,
    UUID,
    array_of,
    message,
    nullable,
    struct,
    struct_of,
    wire,
)


@struct
class ConsumerGroupHeartbeatRequestTopicPartitions:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@message(api_key=68, versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatRequest:
    group_id: str = wire(STRING, default="")
    member_id: str = wire(STRING, default="")
    member_epoch: int = wire(INT32, default=0)
    instance_id: str | None = wire(nullable(STRING), default=None)
    rack_id: str | None = wire(nullable(STRING), default=None)
    rebalance_timeout_ms: int = wire(INT32, default=-1)
    subscribed_topic_names: list[str] | None = wire(nullable(array_of(STRING)), default=None)
    subscribed_topic_regex: str | None = wire(nullable(STRING), default=None, since=1)
    server_assignor: str | None = wire(nullable(STRING), default=None)
    topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = wire(
        nullable(array_of(ConsumerGroupHeartbeatRequestTopicPartitions)), default=None
    )


@struct
class ConsumerGroupHeartbeatResponseTopicPartitions:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class Assignment:
    topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = wire(
        array_of(ConsumerGroupHeartbeatResponseTopicPartitions), default_factory=list
    )


@message(api_key=68, versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    member_id: str | None = wire(nullable(STRING), default=None)
    member_epoch: int = wire(INT32, default=0)
    heartbeat_interval_ms: int = wire(INT32, default=0)
    assignment: Assignment | None = wire(nullable(struct_of(Assignment)), default=None)
