"""DeleteTopics (key 20), versions 1-6, flexible from 4.

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
class DeleteTopicState:
    name: str | None = wire(nullable(STRING), default=None, since=6)
    topic_id: bytes = wire(UUID, default=NO_UUID, since=6)


@message(api_key=20, versions=(1, 6), flexible_since=4)
class DeleteTopicsRequest:
    topics: list[DeleteTopicState] = wire(array_of(DeleteTopicState), default_factory=list, since=6)
    topic_names: list[str] = wire(array_of(STRING), default_factory=list, until=5, ignorable=True)
    timeout_ms: int = wire(INT32, default=0)


@struct
class DeletableTopicResult:
    name: str | None = wire(nullable(STRING, since=6), default="")
    topic_id: bytes = wire(UUID, default=NO_UUID, since=6, ignorable=True)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default=None, since=5, ignorable=True)


@message(api_key=20, versions=(1, 6), flexible_since=4)
class DeleteTopicsResponse:
    throttle_time_ms: int = wire(INT32, default=0, ignorable=True)
    responses: list[DeletableTopicResult] = wire(
        array_of(DeletableTopicResult), default_factory=list
    )
