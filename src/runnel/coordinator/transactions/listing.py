"""What transactional ids there are, and how each stands: for tools and people who look for one."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from runnel.coordinator.transactions.machine import TransactionMachine
from runnel.coordinator.transactions.transaction import State, Transaction
from runnel.errors import ErrorCode, RunnelError


class Filter(NamedTuple):
    """Nothing given lets everything through."""

    states: Collection[State] | None = None
    producer_ids: Collection[int] = ()
    longer_than_ms: int = -1
    matches: Callable[[str], object] | None = None


def listed(
    transactions: Iterable[Transaction], wanted: Filter, now_ms: int
) -> Iterator[Transaction]:
    for transaction in transactions:
        if wanted.producer_ids and transaction.producer_id not in wanted.producer_ids:
            continue
        if wanted.states is not None and transaction.state not in wanted.states:
            continue
        if wanted.longer_than_ms >= 0 and now_ms - transaction.start_ms <= wanted.longer_than_ms:
            continue
        if wanted.matches is not None and not wanted.matches(transaction.transactional_id):
            continue
        yield transaction


def described(machine: TransactionMachine, transactional_id: str) -> Transaction:
    """Raises TRANSACTIONAL_ID_NOT_FOUND."""
    transaction = machine.transactions.get(transactional_id)
    if transaction is None:
        raise RunnelError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
    return transaction
