"""InitProducerId (key 22), versions 0-6, flexible from 2.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    message,
    nullable,
    wire,
)


@message(api_key=22, versions=(0, 6), flexible_since=2)
class InitProducerIdRequest:
    transactional_id: str | None = wire(nullable(STRING), default="")
    transaction_timeout_ms: int = wire(INT32, default=0)
    producer_id: int = wire(INT64, default=-1, since=3)
    producer_epoch: int = wire(INT16, default=-1, since=3)
    enable2_pc: bool = wire(BOOL, default=False, since=6)
    keep_prepared_txn: bool = wire(BOOL, default=False, since=6)


@message(api_key=22, versions=(0, 6), flexible_since=2)
class InitProducerIdResponse:
    throttle_time_ms: int = wire(INT32, default=0, ignorable=True)
    error_code: int = wire(INT16, default=0)
    producer_id: int = wire(INT64, default=-1)
    producer_epoch: int = wire(INT16, default=0)
    ongoing_txn_producer_id: int = wire(INT64, default=-1, since=6)
    ongoing_txn_producer_epoch: int = wire(INT16, default=-1, since=6)
