"""Producers with an id, and transactions that one process opens and another one ends.

Speaks to the coordinator itself, because no client library lets go of a transaction without ending
it. With `transaction.version` 2 (KIP-890) partitions join a transaction by being written to, and
its end raises the epoch; before that, partitions are added first. Ending one again in the same way
is no error in either, for as long as nobody has begun anew under the id.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

import runnel
from runnel.arrow.errors import OptionError
from runnel.client.cluster import Cluster, RefusedError
from runnel.client.coordinators import KeyType, find_coordinator
from runnel.errors import ErrorCode
from runnel.wire.apis import ApiKey
from runnel.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from runnel.wire.messages.api_versions import ApiVersionsRequest
from runnel.wire.messages.end_txn import EndTxnRequest
from runnel.wire.messages.init_producer_id import InitProducerIdRequest

FEATURES_SINCE: Final = 3  # ApiVersions
FEATURE: Final = "transaction.version"
IMPLICIT_SINCE: Final = 12  # Produce, with the feature at 2
EPOCH_BUMPS_SINCE: Final = 5  # EndTxn, likewise
BY_CLIENTS: Final = 3  # AddPartitionsToTxn; later versions are for brokers
_Result = TypeVar("_Result")


class OpenTransaction(NamedTuple):
    """All that is needed to end it."""

    transactional_id: str
    producer_id: int
    epoch: int


@dataclass
class Producer:
    """As whom batches are written."""

    producer_id: int
    epoch: int
    transactional_id: str | None = None
    implicit: bool = False  # partitions join by being written to
    added: set[tuple[str, int]] = field(default_factory=set)

    def add_partitions(self, cluster: Cluster, partitions: Iterable[tuple[str, int]]) -> None:
        """Where they do not join by themselves. Raises ClientError."""
        new = sorted(set(partitions) - self.added)
        if self.transactional_id is None or self.implicit or not new:
            return
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for name, index in new:
            topics.setdefault(name, AddPartitionsToTxnTopic(name=name)).partitions.append(index)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=list(topics.values()),
        )

        def attempt(node_id: int) -> None:
            answer = cluster.call(request, node_id=node_id, newest=BY_CLIENTS)
            codes = [
                row.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for row in topic.results_by_partition
                # one bad partition makes this the answer for all the others
                if row.partition_error_code != ErrorCode.OPERATION_NOT_ATTEMPTED
            ]
            for code in codes:
                _raise_for(code, self.transactional_id or "")

        _asked(cluster, self.transactional_id, attempt)
        self.added.update(new)


def idempotent_producer(cluster: Cluster) -> Producer:
    """An id of its own, so that what is sent twice is written once. Raises ClientError."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

    def attempt() -> Producer:
        answer = cluster.call(request)
        if answer.error_code:
            raise RefusedError(answer.error_code, None, "a producer id")
        return Producer(answer.producer_id, answer.producer_epoch)

    return cluster.retried(attempt, reconnect=True)


def begin(cluster: Cluster, transactional_id: str, timeout_ms: int) -> Producer:
    """Own the id from now on; what was open under it is aborted, and over when this returns.

    Raises ClientError, and OptionError for a time-out that the broker does not allow.
    """
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
    )

    def attempt(node_id: int) -> tuple[int, int]:
        answer = cluster.call(request, node_id=node_id)
        if answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            raise OptionError(
                f"transactionTimeout={timeout_ms}ms is more than the broker allows; set it lower,"
                " though longer than any batch takes, or raise the broker's"
                " transaction.max.timeout.ms"
            )
        _raise_for(answer.error_code, transactional_id)
        return answer.producer_id, answer.producer_epoch

    producer_id, epoch = _asked(cluster, transactional_id, attempt)
    return Producer(producer_id, epoch, transactional_id, implicit=bumps_epochs(cluster))


def end(cluster: Cluster, open_: OpenTransaction, *, commit: bool) -> OpenTransaction:
    """Returns as whom its producer may go on. Raises ClientError, RefusedError if it is fenced."""
    request = EndTxnRequest(
        transactional_id=open_.transactional_id,
        producer_id=open_.producer_id,
        producer_epoch=open_.epoch,
        committed=commit,
    )
    newest = None if bumps_epochs(cluster) else EPOCH_BUMPS_SINCE - 1

    def attempt(node_id: int) -> OpenTransaction:
        answer = cluster.call(request, node_id=node_id, newest=newest)
        _raise_for(answer.error_code, open_.transactional_id)
        if answer.producer_id < 0:
            return open_
        return OpenTransaction(open_.transactional_id, answer.producer_id, answer.producer_epoch)

    return _asked(cluster, open_.transactional_id, attempt)


def bumps_epochs(cluster: Cluster) -> bool:
    """Whether the cluster has `transaction.version` 2. Raises ClientError."""

    def attempt() -> bool:
        if cluster.version_of(ApiKey.API_VERSIONS) < FEATURES_SINCE:
            return False
        answer: Any = cluster.call(
            ApiVersionsRequest(
                client_software_name="runnel-spark", client_software_version=runnel.__version__
            )
        )
        return any(
            row.name == FEATURE and row.max_version_level >= 2 for row in answer.finalized_features
        )

    return cluster.retried(attempt, reconnect=True)


def _asked(cluster: Cluster, transactional_id: str, attempt: Callable[[int], _Result]) -> _Result:
    """Of its coordinator, which may die and come back: every request here may be made twice."""
    return cluster.retried(
        lambda: attempt(find_coordinator(cluster, KeyType.TRANSACTION, transactional_id)),
        reconnect=True,
    )


def _raise_for(code: int, transactional_id: str) -> None:
    if code:
        raise RefusedError(code, None, f"transactional id {transactional_id}")
