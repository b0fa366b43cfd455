"""No record goes into a partition that its transaction does not know of (KIP-890).

The first batch of a transaction in a partition is shown to the coordinator before it is appended.
Clients that know KIP-890 leave it to the broker to add the partition; older ones have added it
themselves, and it is only verified. Either way the batch is to be appended in the same turn of the
loop in which the coordinator's committed state said yes: if something has to be waited for,
everything is asked again after the wait. So no answer is used that has become stale, which is what
Kafka's verification guards are for.
"""

from collections.abc import Set
from typing import Any, NamedTuple

from runnel.broker.context import Services
from runnel.broker.partition import Partition
from runnel.coordinator.runtime import Shard
from runnel.coordinator.transactions.transitions import EPOCH_BUMPS_SINCE, Identity
from runnel.errors import ErrorCode, RunnelError
from runnel.types import TopicPartition


class Claim(NamedTuple):
    """What a request says of itself."""

    transactional_id: str
    who: Identity
    adds: bool  # the client leaves it to the broker to add partitions
    knows_abortable: bool  # and this error code


class Admitted(NamedTuple):
    """What may not be written to; and whose journal must settle before all are asked again."""

    refused: dict[TopicPartition, RunnelError]
    unsettled: Shard[Any] | None


def is_open(partition: Partition, who: Identity) -> bool:
    """Whether the partition itself has this transaction open, so that nobody need be asked."""
    producer = partition.log.producers.producers.get(who.producer_id)
    return producer is not None and producer.txn_first_offset >= 0 and producer.epoch == who.epoch


def is_asked_for(services: Services, *, adds: bool) -> bool:
    """Verification alone may be switched off."""
    return adds or services.settings.transactions.transaction_partition_verification_enable


def admit(services: Services, claim: Claim, partitions: Set[TopicPartition]) -> Admitted:
    """Raises RunnelError for all of them."""
    shard = services.transactions.shard_of(claim.transactional_id)
    refused: dict[TopicPartition, RunnelError] = {}
    try:
        if claim.adds:
            shard.machine.add_partitions(
                claim.transactional_id, claim.who, partitions, EPOCH_BUMPS_SINCE
            )
        else:
            missing = shard.machine.missing(claim.transactional_id, claim.who, partitions)
            refused = dict.fromkeys(missing, _not_added(claim))
    except RunnelError as error:
        if error.code is ErrorCode.PRODUCER_FENCED:  # producers expect the other name here
            raise RunnelError(ErrorCode.INVALID_PRODUCER_EPOCH, str(error)) from error
        raise
    return Admitted(refused, None if shard.machine.is_settled(claim.transactional_id) else shard)


def _not_added(claim: Claim) -> RunnelError:
    code = ErrorCode.TRANSACTION_ABORTABLE if claim.knows_abortable else ErrorCode.INVALID_TXN_STATE
    return RunnelError(code, "Partition was not added to the transaction")
