"""AllocateProducerIds (key 67), version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    message,
    wire,
)


@message(api_key=67, versions=(0, 0), flexible_since=0)
class AllocateProducerIdsRequest:
    broker_id: int = wire(INT32, default=0)
    broker_epoch: int = wire(INT64, default=-1)


@message(api_key=67, versions=(0, 0), flexible_since=0)
class AllocateProducerIdsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    producer_id_start: int = wire(INT64, default=0)
    producer_id_len: int = wire(INT32, default=0)
