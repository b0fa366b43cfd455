"""AddOffsetsToTxn (key 25), versions 0-4, flexible from 3.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    message,
    wire,
)


@message(api_key=25, versions=(0, 4), flexible_since=3)
class AddOffsetsToTxnRequest:
    transactional_id: str = wire(STRING, default="")
    producer_id: int = wire(INT64, default=0)
    producer_epoch: int = wire(INT16, default=0)
    group_id: str = wire(STRING, default="")


@message(api_key=25, versions=(0, 4), flexible_since=3)
class AddOffsetsToTxnResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
