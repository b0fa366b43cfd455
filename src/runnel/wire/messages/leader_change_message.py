"""LeaderChangeMessage, versions 0-1, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
    UUID,
    array_of,
    message,
    struct,
    wire,
)


@struct
class Voter:
    voter_id: int = wire(INT32, default=0)
    voter_directory_id: bytes = wire(UUID, default=NO_UUID, since=1)


@message(versions=(0, 1), flexible_since=0)
class LeaderChangeMessage:
    version: int = wire(INT16, default=0)
    leader_id: int = wire(INT32, default=0)
    voters: list[Voter] = wire(array_of(Voter), default_factory=list)
    granting_voters: list[Voter] = wire(array_of(Voter), default_factory=list)
