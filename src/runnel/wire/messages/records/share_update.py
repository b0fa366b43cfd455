"""ShareUpdate (key 1); value: version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.types import NO_TOPIC_ID as NO_UUID
from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    INT8,
    STRING,
    UUID,
    array_of,
    message,
    struct,
    wire,
)


@message(api_key=1, versions=(0, 0))
class ShareUpdateKey:
    group_id: str = wire(STRING, default="")
    topic_id: bytes = wire(UUID, default=NO_UUID)
    partition: int = wire(INT32, default=0)


@struct
class StateBatch:
    first_offset: int = wire(INT64, default=0)
    last_offset: int = wire(INT64, default=0)
    delivery_state: int = wire(INT8, default=0)
    delivery_count: int = wire(INT16, default=0)


@message(api_key=1, versions=(0, 0), flexible_since=0)
class ShareUpdateValue:
    snapshot_epoch: int = wire(INT32, default=0)
    leader_epoch: int = wire(INT32, default=0)
    start_offset: int = wire(INT64, default=0)
    delivery_complete_count: int = wire(INT32, default=-1, tag=0)
    state_batches: list[StateBatch] = wire(array_of(StateBatch), default_factory=list)
