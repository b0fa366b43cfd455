"""LegacyOffsetCommit (key 0); value: version 0, never flexible.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT32,
    INT64,
    STRING,
    message,
    wire,
)


@message(api_key=0, versions=(0, 0))
class LegacyOffsetCommitKey:
    group: str = wire(STRING, default="")
    topic: str = wire(STRING, default="")
    partition: int = wire(INT32, default=0)


@message(api_key=0, versions=(0, 0))
class LegacyOffsetCommitValue:
    offset: int = wire(INT64, default=0)
    metadata: str = wire(STRING, default="")
    commit_timestamp: int = wire(INT64, default=0)
