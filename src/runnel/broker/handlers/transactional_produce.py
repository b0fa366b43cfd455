"""Produce with a transactional id: no record is appended that its transaction does not know of.

The first batch of a producer's transaction in a partition is shown to the coordinator before it is
appended (KIP-890). Clients since Produce v12 leave it to the broker to add the partition; older
ones have added it themselves, and it is only verified. Either way the batch is appended in the
same turn of the loop in which the coordinator's committed state said yes: if something has to be
waited for, everything is asked again after the wait. So no answer is used that has become stale,
which is what Kafka's verification guards are for.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Set
from typing import Any, Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.handlers.produce import (
    FIRST_VERSION_BY_ID,
    FIRST_VERSION_WITH_ZSTD,
    Answer,
    Inspected,
    Verdicts,
    append_all,
    ensure_codec,
    inspections,
    look_into,
    own_records,
)
from runnel.broker.security import Operation, Resource
from runnel.broker.settling import settled
from runnel.coordinator.runtime import Shard
from runnel.coordinator.transactions.machine import TransactionMachine
from runnel.coordinator.transactions.transitions import EPOCH_BUMPS_SINCE, Identity
from runnel.errors import ErrorCode, RunnelError
from runnel.types import TopicPartition
from runnel.wire.batch import HEADER_SIZE, BatchHeader
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest

FIRST_VERSION_THAT_ADDS: Final = 12
FIRST_VERSION_WITH_ABORTABLE: Final = 11
_UNABLE: Final = "Unable to verify the partition has been added to the transaction."
_TOO_MANY: Final = "Transactional records contained more than one producer ID"
_COME_AGAIN: Final = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
Unverified = list[tuple[PartitionProduceData, TopicPartition]]


def produce_in_transaction(
    context: RequestContext, services: Services, request: ProduceRequest
) -> Answer | Coroutine[Any, Any, Answer]:
    inspected: list[Inspected] = []
    if services.partitions.any_inspected:
        inspected, needs_worker = inspections(context, services, request)
        if needs_worker:
            own_records(request)
            return _inspect_then_append(context, services, request, inspected)
    verdicts = look_into(context, services, inspected)
    found = dict(verdicts)
    if _admit(context, services, request, found) is None and not _may_wait(context, found):
        return append_all(context, services, request, found, in_transaction=True)
    own_records(request)
    return _wait_then_append(context, services, request, verdicts)


async def _inspect_then_append(
    context: RequestContext, services: Services, request: ProduceRequest, inspected: list[Inspected]
) -> Answer:
    verdicts = await services.workers.run(lambda: look_into(context, services, inspected))
    return await _wait_then_append(context, services, request, verdicts)


async def _wait_then_append(
    context: RequestContext, services: Services, request: ProduceRequest, verdicts: Verdicts
) -> Answer:
    settings, loop = services.settings.transactions, services.loop
    give_up_s = loop.time() + settings.add_partitions_to_txn_retry_backoff_max_ms / 1000
    while True:
        found = dict(verdicts)
        shard = _admit(context, services, request, found)
        if shard is not None:
            if not await settled(services.waiting, shard, request.timeout_ms):
                why = RunnelError(ErrorCode.NOT_ENOUGH_REPLICAS, _UNABLE)
                found = {id(data): why for _, data in _all_data(context, services, request)}
                return append_all(context, services, request, found, in_transaction=True)
        elif _may_wait(context, found) and loop.time() < give_up_s:
            await asyncio.sleep(settings.add_partitions_to_txn_retry_backoff_ms / 1000)
        else:
            return append_all(context, services, request, found, in_transaction=True)


def _may_wait(context: RequestContext, verdicts: Verdicts) -> bool:
    """The transaction before is still being ended; with KIP-890 nobody else waits for that."""
    return context.api_version >= FIRST_VERSION_THAT_ADDS and any(
        error.code is ErrorCode.CONCURRENT_TRANSACTIONS for error in verdicts.values()
    )


def _admit(
    context: RequestContext, services: Services, request: ProduceRequest, verdicts: Verdicts
) -> Shard[Any] | None:
    """Note a verdict for all that may not be appended. A shard: its journal must settle first."""
    owners: set[Identity] = set()
    firsts: dict[TopicPartition, PartitionProduceData] = {}
    for name, data in _all_data(context, services, request):
        if data.records is not None and len(data.records) >= HEADER_SIZE:
            try:
                owner = _owner_of_first(context, services, request, name, data)
            except RunnelError as error:
                verdicts.setdefault(id(data), error)
                continue
            if owner is not None:
                owners.add(owner)
                firsts[TopicPartition(name, data.index)] = data
    if not firsts or (context.api_version < FIRST_VERSION_THAT_ADDS and not _verifies(services)):
        return None
    try:
        if len(owners) > 1:
            raise RunnelError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, _TOO_MANY)
        transactional_id = request.transactional_id or ""
        shard = services.transactions.shard_of(transactional_id)
        refused = _ask(context, shard.machine, transactional_id, owners.pop(), firsts.keys())
    except RunnelError as error:
        told = _for_producers(context, error)
        verdicts.update((id(data), told) for data in firsts.values())
        return None
    verdicts.update((id(firsts[where]), why) for where, why in refused.items())
    return None if shard.is_settled(shard.journal.end_offset) else shard


def _owner_of_first(
    context: RequestContext,
    services: Services,
    request: ProduceRequest,
    topic: str,
    data: PartitionProduceData,
) -> Identity | None:
    """Whose batch it is, if it is the first of a transaction in its partition."""
    assert isinstance(data.records, memoryview)
    if context.api_version < FIRST_VERSION_WITH_ZSTD:
        ensure_codec(data.records)
    header = BatchHeader.read(data.records)
    if not header.is_transactional or header.producer_id < 0:
        return None
    transactional_id = request.transactional_id or ""
    if not context.may(Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id):
        raise RunnelError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, transactional_id)
    if _is_open(context, services, topic, data.index, header):
        return None
    return Identity(header.producer_id, header.producer_epoch)


def _ask(
    context: RequestContext,
    machine: TransactionMachine,
    transactional_id: str,
    who: Identity,
    partitions: Set[TopicPartition],
) -> dict[TopicPartition, RunnelError]:
    """Those that may not be written to. Raises if none may."""
    if context.api_version >= FIRST_VERSION_THAT_ADDS:
        machine.add_partitions(transactional_id, who, partitions, EPOCH_BUMPS_SINCE)
        return {}
    code = (
        ErrorCode.TRANSACTION_ABORTABLE
        if context.api_version >= FIRST_VERSION_WITH_ABORTABLE
        else ErrorCode.INVALID_TXN_STATE
    )
    why = RunnelError(code, "Partition was not added to the transaction")
    return dict.fromkeys(machine.missing(transactional_id, who, partitions), why)


def _is_open(
    context: RequestContext, services: Services, topic: str, index: int, header: BatchHeader
) -> bool:
    """Whether the partition itself knows of this transaction, or is not here to know anything."""
    partition = services.partitions.find(topic, index)
    if partition is None:
        return True  # the append says why
    producer = partition.log.producers.producers.get(header.producer_id)
    if producer is None:
        if context.api_version >= FIRST_VERSION_THAT_ADDS and header.base_sequence > 0:
            raise RunnelError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}: sequence {header.base_sequence},"
                " and nothing is known of it here",
            )
        return False
    return producer.txn_first_offset >= 0 and producer.epoch == header.producer_epoch


def _verifies(services: Services) -> bool:
    return services.settings.transactions.transaction_partition_verification_enable


def _for_producers(context: RequestContext, error: RunnelError) -> RunnelError:
    """In codes that producers act on: those before KIP-890 do not know a coordinator's here."""
    code = error.code
    if code is ErrorCode.PRODUCER_FENCED:
        return RunnelError(ErrorCode.INVALID_PRODUCER_EPOCH, str(error))
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and (
        context.api_version >= FIRST_VERSION_THAT_ADDS
    ):
        return error
    if code in _COME_AGAIN:
        return RunnelError(
            ErrorCode.NOT_ENOUGH_REPLICAS, f"{_UNABLE} Underlying error: {code.name}"
        )
    return error


def _all_data(
    context: RequestContext, services: Services, request: ProduceRequest
) -> Iterator[tuple[str, PartitionProduceData]]:
    for topic in request.topic_data:
        name = topic.name
        if context.api_version >= FIRST_VERSION_BY_ID:
            name = services.partitions.topic_names.get(topic.topic_id, "")
        for data in topic.partition_data:
            yield name, data
