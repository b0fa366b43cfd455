"""Transactions as an operator asks for them: at their coordinators, and what partitions know.

A transaction hangs if a partition holds one open that no coordinator will end: then nobody who
reads only what is committed gets past it. It is ended by a marker written into that partition.
"""

from collections.abc import Collection, Iterable
from functools import partial
from typing import Final, NamedTuple

from runnel.client.cluster import Cluster, RefusedError, UnsupportedError
from runnel.client.coordinators import KeyType, asked
from runnel.errors import ErrorCode
from runnel.types import TopicPartition
from runnel.wire.apis import ApiKey
from runnel.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    TransactionState,
)
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

NO_START_MS: Final = -1
NO_DURATION: Final = -1
DURATION_SINCE: Final = 1  # ListTransactions
PATTERN_SINCE: Final = 2
FENCE_TIMEOUT_MS: Final = 60_000
OPEN: Final = ("Ongoing", "PrepareAbort", "PrepareCommit", "PrepareEpochFence")


class Listed(NamedTuple):
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


class Transaction(NamedTuple):
    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[TopicPartition, ...]

    @property
    def is_open(self) -> bool:
        return self.state in OPEN


def list_transactions(
    cluster: Cluster,
    states: Collection[str] = (),
    *,
    producer_ids: Collection[int] = (),
    duration_ms: int = NO_DURATION,
    pattern: str | None = None,
) -> list[Listed]:
    """By transactional id, of all brokers. Raises ClientError, also for a state without meaning."""
    version = cluster.version_of(ApiKey.LIST_TRANSACTIONS)
    if duration_ms >= 0 and version < DURATION_SINCE:
        raise UnsupportedError("the broker cannot list transactions by their duration")
    if pattern is not None and version < PATTERN_SINCE:
        raise UnsupportedError("the broker cannot list transactions by a pattern")
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=duration_ms if duration_ms >= 0 else NO_DURATION,
        transactional_id_pattern=pattern,
    )

    def attempt(node_id: int) -> ListTransactionsResponse:
        response: ListTransactionsResponse = cluster.call(request, node_id=node_id)
        if response.error_code:
            raise RefusedError(response.error_code, None, f"transactions of broker {node_id}")
        return response

    found: list[Listed] = []
    for node_id in cluster.node_ids():
        response = cluster.retried(partial(attempt, node_id))
        if response.unknown_state_filters:
            unknown = ", ".join(response.unknown_state_filters)
            message = f"the broker knows no such state of a transaction: {unknown}"
            raise RefusedError(ErrorCode.INVALID_REQUEST, message)
        found += [
            Listed(row.transactional_id, node_id, row.producer_id, row.transaction_state)
            for row in response.transaction_states
        ]
    return sorted(found)


def describe_transaction(cluster: Cluster, transactional_id: str) -> Transaction:
    """Raises RefusedError with TRANSACTIONAL_ID_NOT_FOUND for one that nobody has used."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

    def attempt(node_id: int) -> Transaction:
        row: TransactionState
        (row,) = cluster.call(request, node_id=node_id).transaction_states
        if row.error_code:
            unknown = row.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            message = f"there is no transactional id {transactional_id}" if unknown else None
            raise RefusedError(row.error_code, message, f"transactional id {transactional_id}")
        partitions = [
            TopicPartition(topic.topic, index) for topic in row.topics for index in topic.partitions
        ]
        started_ms = row.transaction_start_time_ms
        return Transaction(
            transactional_id,
            node_id,
            row.producer_id,
            row.producer_epoch,
            row.transaction_state,
            row.transaction_timeout_ms,
            None if started_ms == NO_START_MS else started_ms,
            tuple(sorted(partitions)),
        )

    return asked(cluster, KeyType.TRANSACTION, transactional_id, attempt)


def fence(cluster: Cluster, transactional_id: str) -> None:
    """Take the transactional id from its producer: what is open is aborted, and the producer's
    next request is refused. Returns when that is done. Raises ClientError.
    """
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=FENCE_TIMEOUT_MS
    )

    def attempt(node_id: int) -> None:
        response = cluster.call(request, node_id=node_id)
        if response.error_code:
            subject = f"transactional id {transactional_id}"
            raise RefusedError(response.error_code, None, subject)

    asked(cluster, KeyType.TRANSACTION, transactional_id, attempt)


def transactional_ids(cluster: Cluster, producer_ids: Iterable[int]) -> dict[int, str]:
    """Of those producers that a coordinator knows."""
    wanted = set(producer_ids)
    rows = list_transactions(cluster, producer_ids=wanted)
    return {row.producer_id: row.transactional_id for row in rows if row.producer_id in wanted}
