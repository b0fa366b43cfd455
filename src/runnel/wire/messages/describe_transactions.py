"""DescribeTransactions (key 65), version 0, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    array_of,
    message,
    struct,
    wire,
)


@message(api_key=65, versions=(0, 0), flexible_since=0)
class DescribeTransactionsRequest:
    transactional_ids: list[str] = wire(array_of(STRING), default_factory=list)


@struct
class TopicData:
    topic: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class TransactionState:
    error_code: int = wire(INT16, default=0)
    transactional_id: str = wire(STRING, default="")
    transaction_state: str = wire(STRING, default="")
    transaction_timeout_ms: int = wire(INT32, default=0)
    transaction_start_time_ms: int = wire(INT64, default=0)
    producer_id: int = wire(INT64, default=0)
    producer_epoch: int = wire(INT16, default=0)
    topics: list[TopicData] = wire(array_of(TopicData), default_factory=list)


@message(api_key=65, versions=(0, 0), flexible_since=0)
class DescribeTransactionsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    transaction_states: list[TransactionState] = wire(
        array_of(TransactionState), default_factory=list
    )
