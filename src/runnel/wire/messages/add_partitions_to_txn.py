"""AddPartitionsToTxn (key 24), versions 0-5, flexible from 3.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from runnel.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    array_of,
    message,
    struct,
    wire,
)


@struct
class AddPartitionsToTxnTopic:
    name: str = wire(STRING, default="")
    partitions: list[int] = wire(array_of(INT32), default_factory=list)


@struct
class AddPartitionsToTxnTransaction:
    transactional_id: str = wire(STRING, default="", since=4)
    producer_id: int = wire(INT64, default=0, since=4)
    producer_epoch: int = wire(INT16, default=0, since=4)
    verify_only: bool = wire(BOOL, default=False, since=4)
    topics: list[AddPartitionsToTxnTopic] = wire(
        array_of(AddPartitionsToTxnTopic), default_factory=list, since=4
    )


@message(api_key=24, versions=(0, 5), flexible_since=3)
class AddPartitionsToTxnRequest:
    transactions: list[AddPartitionsToTxnTransaction] = wire(
        array_of(AddPartitionsToTxnTransaction), default_factory=list, since=4
    )
    v3_and_below_transactional_id: str = wire(STRING, default="", until=3)
    v3_and_below_producer_id: int = wire(INT64, default=0, until=3)
    v3_and_below_producer_epoch: int = wire(INT16, default=0, until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = wire(
        array_of(AddPartitionsToTxnTopic), default_factory=list, until=3
    )


@struct
class AddPartitionsToTxnPartitionResult:
    partition_index: int = wire(INT32, default=0)
    partition_error_code: int = wire(INT16, default=0)


@struct
class AddPartitionsToTxnTopicResult:
    name: str = wire(STRING, default="")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = wire(
        array_of(AddPartitionsToTxnPartitionResult), default_factory=list
    )


@struct
class AddPartitionsToTxnResult:
    transactional_id: str = wire(STRING, default="", since=4)
    topic_results: list[AddPartitionsToTxnTopicResult] = wire(
        array_of(AddPartitionsToTxnTopicResult), default_factory=list, since=4
    )


@message(api_key=24, versions=(0, 5), flexible_since=3)
class AddPartitionsToTxnResponse:
    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0, since=4, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = wire(
        array_of(AddPartitionsToTxnResult), default_factory=list, since=4
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = wire(
        array_of(AddPartitionsToTxnTopicResult), default_factory=list, until=3
    )
