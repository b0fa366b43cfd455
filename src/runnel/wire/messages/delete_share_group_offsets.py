"""DeleteShareGroupOffsets (key 92), version 0, flexible from 0.

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
    wire,
)


@struct
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str = wire(STRING, default="")


@message(api_key=92, versions=(0, 0), flexible_since=0)
class DeleteShareGroupOffsetsRequest:
    group_id: str = wire(STRING, default="")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = wire(
        array_of(DeleteShareGroupOffsetsRequestTopic), default_factory=list
    )


@struct
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: str = wire(STRING, default="")
    topic_id: bytes = wire(UUID, default=NO_UUID)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)


@message(api_key=92, versions=(0, 0), flexible_since=0)
class DeleteShareGroupOffsetsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = wire(
        array_of(DeleteShareGroupOffsetsResponseTopic), default_factory=list
    )
