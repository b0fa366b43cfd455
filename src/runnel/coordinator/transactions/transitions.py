"""From one state of a transactional id to the next, as requests and time-outs ask for it.

Pure: what may not be raises, with Kafka's code and in Kafka's order of checks; what may be is
returned, to be written. Epochs and ids move as in KIP-360 and KIP-890.
"""

from collections.abc import Callable, Set
from dataclasses import replace
from typing import Final, NamedTuple

from runnel.coordinator.transactions.transaction import (
    LAST_EPOCH_OF_CLIENTS,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    State,
    Transaction,
)
from runnel.errors import ErrorCode, RunnelError
from runnel.types import TopicPartition

EPOCH_BUMPS_SINCE: Final = 2  # transaction.version; every transaction has an epoch of its own
TakeProducerId = Callable[[], int]


class Identity(NamedTuple):
    """By what a producer is known to partitions."""

    producer_id: int
    epoch: int


# InitProducerId


def created(transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    return Transaction(
        transactional_id,
        producer_id,
        0,
        timeout_ms,
        updated_ms=now_ms,
        previous_producer_id=producer_id,
    )


def ensure_may_init(transaction: Transaction, expected: Identity | None) -> None:
    """With an identity given, only its present or last owner may go on with it (KIP-360)."""
    ensure_not_ending(transaction)
    if expected is not None and not (
        expected.producer_id == transaction.producer_id
        or (
            expected.producer_id == transaction.previous_producer_id
            and expected.epoch >= LAST_EPOCH_OF_CLIENTS
        )
    ):
        raise fenced(transaction, expected)


def initialised(
    transaction: Transaction,
    expected: Identity | None,
    timeout_ms: int,
    now_ms: int,
    take_producer_id: TakeProducerId,
) -> Transaction:
    """The next epoch, or an id of its own where epochs are used up. Not for an ongoing one."""
    producer_id, epoch, last_epoch = transaction.producer_id, transaction.epoch, NO_EPOCH
    if transaction.is_epoch_exhausted and (expected is None or expected.epoch == epoch):
        if expected is not None:
            last_epoch = epoch
        producer_id, epoch = take_producer_id(), 0
    elif expected is None:
        epoch += 1
    elif expected.epoch == epoch:
        epoch, last_epoch = epoch + 1, epoch
    elif expected.epoch == transaction.last_epoch:
        last_epoch = transaction.last_epoch  # the answer to the same request got lost
    else:
        raise fenced(transaction, expected)
    return replace(
        transaction,
        producer_id=producer_id,
        previous_producer_id=transaction.producer_id,
        epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=timeout_ms,
        state=State.EMPTY,
        partitions=frozenset(),
        start_ms=NO_TIME,
        updated_ms=now_ms,
    )


def ensure_not_ending(transaction: Transaction) -> None:
    """To be asked before who it is: a producer knows its next epoch or id before it is in force.

    It is told both when the end is decided (KIP-890), and may come back before that is carried out.
    """
    if transaction.state.is_prepared:
        raise concurrent(transaction)


# Adding partitions


def ensure_owned(transaction: Transaction, who: Identity) -> None:
    if transaction.producer_id != who.producer_id:
        raise unmapped(transaction.transactional_id)
    if transaction.epoch != who.epoch:
        raise fenced(transaction, who)


def extended(
    transaction: Transaction, partitions: Set[TopicPartition], client_version: int, now_ms: int
) -> Transaction | None:
    """None if they are all in it already."""
    is_ongoing = transaction.state is State.ONGOING
    if is_ongoing and partitions <= transaction.partitions:
        return None
    return replace(
        transaction,
        state=State.ONGOING,
        previous_producer_id=transaction.producer_id,
        partitions=transaction.partitions | partitions,
        start_ms=transaction.start_ms if is_ongoing else now_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


# Ending


def ended(
    transaction: Transaction,
    who: Identity,
    client_version: int,
    now_ms: int,
    take_producer_id: TakeProducerId,
    *,
    is_commit: bool,
) -> Transaction | None:
    """EndTxn of a client. None: it is ended just so, and this asks once more."""
    if client_version < EPOCH_BUMPS_SINCE:
        return _ended_in_its_epoch(transaction, who, client_version, now_ms, is_commit)
    ensure_not_ending(transaction)
    state = transaction.state
    after_overflow = (
        transaction.previous_producer_id == who.producer_id
        and who.epoch == LAST_EPOCH_OF_CLIENTS
        and transaction.epoch == 0
    )
    after_bump = transaction.epoch == who.epoch + 1
    is_repeated = state.is_complete and (after_bump or after_overflow)
    if transaction.producer_id != who.producer_id and not after_overflow:
        raise unmapped(transaction.transactional_id)
    if not is_repeated and transaction.epoch != who.epoch:
        raise fenced(transaction, who)
    if is_repeated:
        _ensure_same_end(transaction, who, is_commit)
        return None
    if state is not State.ONGOING and is_commit:
        raise _cannot_end(transaction, is_commit)  # there is nothing to commit
    return _prepared(transaction, client_version, now_ms, take_producer_id, is_commit=is_commit)


def _ensure_same_end(transaction: Transaction, who: Identity, is_commit: bool) -> None:
    """The epoch has moved on. If to another end than the client's, then not by its request."""
    if (transaction.state is State.COMPLETE_COMMIT) != is_commit:
        # KAFKA-20785: a commit that lost against the time-out is fenced, not in a wrong state.
        raise fenced(transaction, who) if is_commit else _cannot_end(transaction, is_commit)


def _ended_in_its_epoch(
    transaction: Transaction, who: Identity, client_version: int, now_ms: int, is_commit: bool
) -> Transaction | None:
    """As before KIP-890: the next transaction has the same epoch, so a repeat is told by state."""
    state = transaction.state
    ensure_owned(transaction, who)
    if state is State.ONGOING:
        return _prepared(transaction, client_version, now_ms, no_producer_id, is_commit=is_commit)
    if state is (State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT):
        return None
    if state is (State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT):
        raise concurrent(transaction)
    raise _cannot_end(transaction, is_commit)


def fenced_off(
    transaction: Transaction, server_version: int, now_ms: int, take_producer_id: TakeProducerId
) -> Transaction:
    """An ongoing one aborted in an epoch that its producer does not have (R29)."""
    assert transaction.state is State.ONGOING, transaction
    if server_version >= EPOCH_BUMPS_SINCE:
        prepared = _prepared(transaction, server_version, now_ms, take_producer_id, is_commit=False)
    else:
        prepared = replace(
            _prepared(transaction, server_version, now_ms, no_producer_id, is_commit=False),
            epoch=transaction.epoch + 1,
        )
    prepared.last_epoch = NO_EPOCH
    return prepared


def _prepared(
    transaction: Transaction,
    version: int,
    now_ms: int,
    take_producer_id: TakeProducerId,
    *,
    is_commit: bool,
) -> Transaction:
    epoch, last_epoch, next_id = transaction.epoch, transaction.last_epoch, NO_PRODUCER_ID
    if version >= EPOCH_BUMPS_SINCE:
        if transaction.is_epoch_exhausted:
            next_id = take_producer_id()
        epoch, last_epoch = epoch + 1, epoch
    return replace(
        transaction,
        state=State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT,
        previous_producer_id=transaction.producer_id,
        next_producer_id=next_id,
        epoch=epoch,
        last_epoch=last_epoch,
        # With KIP-890 an abort need not have any partition; it began when it ended.
        start_ms=transaction.start_ms if transaction.state is State.ONGOING else now_ms,
        updated_ms=now_ms,
        client_version=version,
    )


def completed(transaction: Transaction, now_ms: int) -> Transaction:
    """Every marker is written: the partitions need not be known any more."""
    is_commit = transaction.state is State.PREPARE_COMMIT
    rotates = transaction.next_producer_id != NO_PRODUCER_ID
    return replace(
        transaction,
        state=State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT,
        producer_id=transaction.next_producer_id if rotates else transaction.producer_id,
        previous_producer_id=transaction.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        epoch=0 if rotates else transaction.epoch,
        partitions=frozenset(),
        updated_ms=now_ms,
    )


def no_producer_id() -> int:
    raise AssertionError("this transition takes no producer id")


# Refusals


def unmapped(transactional_id: str) -> RunnelError:
    return RunnelError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{transactional_id} has not this producer id"
    )


def fenced(transaction: Transaction, who: Identity) -> RunnelError:
    return RunnelError(
        ErrorCode.PRODUCER_FENCED,
        f"{transaction.transactional_id} is in epoch {transaction.epoch}, not {who.epoch}",
    )


def concurrent(transaction: Transaction) -> RunnelError:
    return RunnelError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"{transaction.transactional_id} is still in {transaction.state.label}",
    )


def _cannot_end(transaction: Transaction, is_commit: bool) -> RunnelError:
    return RunnelError(
        ErrorCode.INVALID_TXN_STATE,
        f"{transaction.transactional_id} is {transaction.state.label}, and cannot be"
        f" {'committed' if is_commit else 'aborted'}",
    )
