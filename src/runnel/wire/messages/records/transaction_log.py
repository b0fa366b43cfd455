"""TransactionLog (key 0); value: versions 0-1, flexible from 1.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    INT8,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@message(api_key=0, versions=(0, 0))
class TransactionLogKey:
    transactional_id: str = wire(STRING, default="")


@struct
class PartitionsSchema:
    topic: str = wire(STRING, default="")
    partition_ids: list[int] = wire(array_of(INT32), default_factory=list)


@message(api_key=0, versions=(0, 1), flexible_since=1)
class TransactionLogValue:
    producer_id: int = wire(INT64, default=0)
    previous_producer_id: int = wire(INT64, default=-1, since=1, tag=0)
    next_producer_id: int = wire(INT64, default=-1, since=1, tag=1)
    producer_epoch: int = wire(INT16, default=0)
    next_producer_epoch: int = wire(INT16, default=-1, since=1, tag=3)
    transaction_timeout_ms: int = wire(INT32, default=0)
    transaction_status: int = wire(INT8, default=0)
    transaction_partitions: list[PartitionsSchema] | None = wire(
        nullable(array_of(PartitionsSchema)), default_factory=list
    )
    transaction_last_update_timestamp_ms: int = wire(INT64, default=0)
    transaction_start_timestamp_ms: int = wire(INT64, default=0)
    client_transaction_version: int = wire(INT16, default=0, since=1, tag=2)
