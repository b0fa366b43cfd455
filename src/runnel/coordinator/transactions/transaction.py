"""What a coordinator knows of one transactional id, and the journal record that holds it.

    Empty -> Ongoing -> PrepareCommit -> CompleteCommit -> Ongoing ...
                     -> PrepareAbort  -> CompleteAbort  -> Ongoing ...

A transaction is decided with its Prepare record: from then on its markers are written until every
partition has one. The Complete record says that they all do. InitProducerId leads back to Empty
from either Complete; expiry ends an id that is in no transaction.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from runnel.coordinator.records import JournalRecord, Kinds, kinds_of
from runnel.types import TopicPartition
from runnel.wire.messages.records.transaction_log import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

KINDS: Final[Kinds] = kinds_of((TransactionLogKey, TransactionLogValue))
NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
EPOCH_MAX: Final = 2**15 - 1
WRITES_AT_ONCE: Final = 300
LAST_EPOCH_OF_CLIENTS: Final = EPOCH_MAX - 1  # so that there is one left to fence them with


class State(IntEnum):
    """As records number them."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """As ListTransactions and the tools spell it."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        """Decided, and not yet known everywhere."""
        return self in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    @property
    def is_complete(self) -> bool:
        return self in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


LABELS: Final = {state.label: state for state in State}


@dataclass(slots=True)
class Transaction:
    """As one record says it. A change makes a new one and writes its record."""

    transactional_id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIME  # on the wall clock, as is the next one
    updated_ms: int = NO_TIME
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID  # from the end of this transaction on
    client_version: int = 0  # transaction.version that its last change was made under
    # What no record holds, because Kafka's has no place for it: the epoch before the last
    # InitProducerId, by which a repeated one is known. After a restart it is fenced instead.
    last_epoch: int = NO_EPOCH
    deadline_ms: int = 0  # on the monotonic clock, while it is ongoing
    settles_at: int = (
        0  # the end of the journal after its record; none of those before is waited for
    )

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.epoch >= LAST_EPOCH_OF_CLIENTS


def some_to_end(transactions: Iterator[Transaction]) -> list[Transaction]:
    """The next ones, by the records and markers that they take: some milliseconds' work."""
    found: list[Transaction] = []
    writes = 0
    for transaction in transactions:
        found.append(transaction)
        writes += 2 + len(transaction.partitions)
        if writes >= WRITES_AT_ONCE:
            break
    return found


def record_of(transaction: Transaction, version: int) -> JournalRecord:
    """Version 1 has tagged fields, which Kafka writes since transaction.version 1."""
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=int(transaction.state),
        transaction_partitions=(
            None if transaction.state is State.EMPTY else _by_topic(transaction.partitions)
        ),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
    )
    if version:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.client_transaction_version = transaction.client_version
    key = TransactionLogKey(transactional_id=transaction.transactional_id)
    return JournalRecord(key, value, version)


def tombstone(transactional_id: str) -> JournalRecord:
    return JournalRecord(TransactionLogKey(transactional_id=transactional_id), None)


def transaction_of(transactional_id: str, value: TransactionLogValue) -> Transaction:
    return Transaction(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        State(value.transaction_status),
        frozenset(
            TopicPartition(topic.topic, index)
            for topic in value.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.previous_producer_id,
        value.next_producer_id,
        value.client_transaction_version,
    )


def indexes_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return found


def _by_topic(partitions: Iterable[TopicPartition]) -> list[PartitionsSchema]:
    return [
        PartitionsSchema(topic=topic, partition_ids=indexes)
        for topic, indexes in indexes_by_topic(partitions).items()
    ]
