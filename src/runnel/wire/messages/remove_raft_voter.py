"""RemoveRaftVoter (key 81), version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
    STRING,
    UUID,
    message,
    nullable,
    wire,
)


@message(api_key=81, versions=(0, 0), flexible_since=0)
class RemoveRaftVoterRequest:
    cluster_id: str | None = wire(nullable(STRING), default="")
    voter_id: int = wire(INT32, default=0)
    voter_directory_id: bytes = wire(UUID, default=NO_UUID)


@message(api_key=81, versions=(0, 0), flexible_since=0)
class RemoveRaftVoterResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="", ignorable=True)
