"""ListTransactions (key 66), versions 0-2, flexible from 0.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    array_of,
    message,
    nullable,
    struct,
    wire,
)


@message(api_key=66, versions=(0, 2), flexible_since=0)
class ListTransactionsRequest:
    state_filters: list[str] = wire(array_of(STRING), default_factory=list)
    producer_id_filters: list[int] = wire(array_of(INT64), default_factory=list)
    duration_filter: int = wire(INT64, default=-1, since=1)
    transactional_id_pattern: str | None = wire(nullable(STRING), default=None, since=2)


@struct
class TransactionState:
    transactional_id: str = wire(STRING, default="")
    producer_id: int = wire(INT64, default=0)
    transaction_state: str = wire(STRING, default="")


@message(api_key=66, versions=(0, 2), flexible_since=0)
class ListTransactionsResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    unknown_state_filters: list[str] = wire(array_of(STRING), default_factory=list)
    transaction_states: list[TransactionState] = wire(
        array_of(TransactionState), default_factory=list
    )
