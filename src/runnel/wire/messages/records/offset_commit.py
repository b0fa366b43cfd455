"""OffsetCommit (key 1); value: versions 0-4, flexible from 4.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT32,
    INT64,
    STRING,
    UUID,
    message,
    wire,
)


@message(api_key=1, versions=(0, 0))
class OffsetCommitKey:
    group: str = wire(STRING, default="")
    topic: str = wire(STRING, default="")
    partition: int = wire(INT32, default=0)


@message(api_key=1, versions=(0, 4), flexible_since=4)
class OffsetCommitValue:
    offset: int = wire(INT64, default=0)
    leader_epoch: int = wire(INT32, default=-1, since=3, ignorable=True)
    metadata: str = wire(STRING, default="")
    commit_timestamp: int = wire(INT64, default=0)
    expire_timestamp: int = wire(INT64, default=-1, since=1, until=1, ignorable=True)
    topic_id: bytes = wire(UUID, default=NO_UUID, since=4, tag=0, ignorable=True)
