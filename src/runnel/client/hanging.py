"""Transactions as partitions see them: who holds one open, which of them nobody will end.

After Kafka's own tool: a transaction hangs if its producer's id is not known to any coordinator, or
if the coordinator does not count the partition among those of the transaction.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from runnel.client.cluster import Cluster, RefusedError
from runnel.client.transactions import Transaction, describe_transaction, transactional_ids
from runnel.errors import ErrorCode
from runnel.types import TopicPartition
from runnel.wire.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    TopicRequest,
)
from runnel.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

NO_TRANSACTION: Final = -1
PARTITIONS_AT_ONCE: Final = 500


class OpenTransaction(NamedTuple):
    at: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int  # -1: no marker of this producer has been written here yet
    start_offset: int
    last_timestamp_ms: int


def open_transactions(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> list[OpenTransaction]:
    """By partition and where they begin. Raises ClientError."""
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for at in partitions:
        topics[at.topic].append(at.index)
    found: list[OpenTransaction] = []
    for topic, indexes in topics.items():
        for first in range(0, len(indexes), PARTITIONS_AT_ONCE):
            found += _open_in(cluster, topic, indexes[first : first + PARTITIONS_AT_ONCE])
    return sorted(found, key=lambda row: (row.at, row.start_offset))


def hanging_transactions(
    cluster: Cluster, partitions: Iterable[TopicPartition], *, silent_since_ms: int
) -> list[OpenTransaction]:
    """Those without a record since that time which no coordinator will end."""
    candidates = [
        row
        for row in open_transactions(cluster, partitions)
        if row.last_timestamp_ms < silent_since_ms
    ]
    if not candidates:
        return []
    ids = transactional_ids(cluster, (row.producer_id for row in candidates))
    known = {producer: _described(cluster, name) for producer, name in ids.items()}
    return [row for row in candidates if not _is_expected(row, known.get(row.producer_id))]


def abort_open(cluster: Cluster, transaction: OpenTransaction) -> None:
    """Write the marker that ends it, as its coordinator would. Raises ClientError."""
    at = transaction.at
    marker = WritableTxnMarker(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=at.topic, partition_indexes=[at.index])],
        coordinator_epoch=max(0, transaction.coordinator_epoch),  # 0 is never from the future
    )
    request = WriteTxnMarkersRequest(markers=[marker])

    def attempt() -> None:
        leader = cluster.leaders(at.topic, [at.index])[at.index]
        (answer,) = cluster.call(request, node_id=leader).markers
        for topic in answer.topics:
            for row in topic.partitions:
                if row.error_code:
                    raise RefusedError(row.error_code, None, str(at))

    cluster.retried(attempt)


def _open_in(cluster: Cluster, topic: str, indexes: list[int]) -> list[OpenTransaction]:
    def attempt() -> list[OpenTransaction]:
        leaders = cluster.leaders(topic, indexes)
        found: list[OpenTransaction] = []
        for node_id in sorted(set(leaders.values())):
            here = [index for index in indexes if leaders[index] == node_id]
            request = DescribeProducersRequest(
                topics=[TopicRequest(name=topic, partition_indexes=here)]
            )
            (answer,) = cluster.call(request, node_id=node_id).topics
            for row in answer.partitions:
                found += _open_of(topic, row)
        return found

    return cluster.retried(attempt)


def _open_of(topic: str, row: PartitionResponse) -> list[OpenTransaction]:
    at = TopicPartition(topic, row.partition_index)
    if row.error_code:
        raise RefusedError(row.error_code, row.error_message, str(at))
    return [
        OpenTransaction(
            at,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.current_txn_start_offset,
            each.last_timestamp,
        )
        for each in row.active_producers
        if each.current_txn_start_offset != NO_TRANSACTION
    ]


def _described(cluster: Cluster, transactional_id: str) -> Transaction | None:
    try:
        return describe_transaction(cluster, transactional_id)
    except RefusedError as error:
        if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        return None


def _is_expected(row: OpenTransaction, transaction: Transaction | None) -> bool:
    return transaction is not None and row.at in transaction.partitions
