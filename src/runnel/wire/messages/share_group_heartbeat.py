"""ShareGroupHeartbeat (key 76), version 1, flexible from 0.

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


@message(api_key=76, versions=(1, 1), flexible_since=0)
class ShareGroupHeartbeatRequest:
    group_id: str = wire(STRING, default="")
    member_id: str = wire(STRING, default="")
    member_epoch: int = wire(INT32, default=0)
    rack_id: str | None = wire(nullable(STRING), default=None)
    subscribed_topic_names: list[str] | None = wire(nullable(array_of(STRING)), default=None)


@struct
class TopicPartitions:
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = wire(array_of(TopicPartitions), default_factory=list)


@message(api_key=76, versions=(1, 1), flexible_since=0)
class ShareGroupHeartbeatResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    member_id: str | None = wire(nullable(STRING), default=None)
    member_epoch: int = wire(INT32, default=0)
    heartbeat_interval_ms: int = wire(INT32, default=0)
    assignment: Assignment | None = wire(nullable(struct_of(Assignment)), default=None)
