"""EndTxn (key 26), versions 0-5, flexible from 3.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    message,
    wire,
)


@message(api_key=26, versions=(0, 5), flexible_since=3)
class EndTxnRequest:
    transactional_id: str = wire(STRING, default="")
    producer_id: int = wire(INT64, default=0)
    producer_epoch: int = wire(INT16, default=0)
    committed: bool = wire(BOOL, default=False)


@message(api_key=26, versions=(0, 5), flexible_since=3)
class EndTxnResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    producer_id: int = wire(INT64, default=-1, since=5, ignorable=True)
    producer_epoch: int = wire(INT16, default=-1, since=5, ignorable=True)
