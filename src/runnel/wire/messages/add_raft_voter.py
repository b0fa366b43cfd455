"""AddRaftVoter (key 80), versions 0-1, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    STRING,
    UINT16,
    UUID,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@struct
class Listener:
    name: str = wire(STRING, default="")
    host: str = wire(STRING, default="")
    port: int = wire(UINT16, default=0)


@message(api_key=80, versions=(0, 1), flexible_since=0)
class AddRaftVoterRequest:
    cluster_id: str | None = wire(nullable(STRING), default="")
    timeout_ms: int = wire(INT32, default=0)
    voter_id: int = wire(INT32, default=0)
    voter_directory_id: bytes = wire(UUID, default=NO_UUID)
    listeners: list[Listener] = wire(array_of(Listener), default_factory=list)
    ack_when_committed: bool = wire(BOOL, default=True, since=1)


@message(api_key=80, versions=(0, 1), flexible_since=0)
class AddRaftVoterResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(nullable(STRING), default="", ignorable=True)
