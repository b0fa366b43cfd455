"""Produce with a transactional id: its first batches pass `admission.py`, then all are appended.

Record bytes are borrowed from the connection, so where something must be waited for (a worker that
looks into records, the commit of a partition's addition, the end of the transaction before) the
request takes a copy of them first.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, Final

from runnel.broker.admission import Claim, admit, is_asked_for, is_open
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
    is_any_inspected,
    look_into,
    own_records,
)
from runnel.broker.security import Operation, Resource
from runnel.broker.settling import settled
from runnel.coordinator.runtime import Shard
from runnel.coordinator.transactions.transitions import Identity
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


def produce_in_transaction(
    context: RequestContext, services: Services, request: ProduceRequest
) -> Answer | Coroutine[Any, Any, Answer]:
    inspected: list[Inspected] = []
    if is_any_inspected(services, request):
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
    firsts: dict[TopicPartition, list[PartitionProduceData]] = {}  # who asks may repeat himself
    for name, data in _all_data(context, services, request):
        if data.records is not None and len(data.records) >= HEADER_SIZE:
            try:
                owner = _owner_of_first(context, services, request, name, data)
            except RunnelError as error:
                verdicts.setdefault(id(data), error)
                continue
            if owner is not None:
                owners.add(owner)
                firsts.setdefault(TopicPartition(name, data.index), []).append(data)
    adds = context.api_version >= FIRST_VERSION_THAT_ADDS
    if not firsts or not is_asked_for(services, adds=adds):
        return None
    try:
        if len(owners) > 1:
            raise RunnelError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, _TOO_MANY)
        knows_abortable = context.api_version >= FIRST_VERSION_WITH_ABORTABLE
        claim = Claim(request.transactional_id or "", owners.pop(), adds, knows_abortable)
        admitted = admit(services, claim, firsts.keys())
    except RunnelError as error:
        told = _for_producers(context, error)
        verdicts.update((id(data), told) for each in firsts.values() for data in each)
        return None
    verdicts.update(
        (id(data), why) for where, why in admitted.refused.items() for data in firsts[where]
    )
    return admitted.unsettled


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
    partition = services.partitions.find(topic, data.index)
    if not header.is_transactional or header.producer_id < 0 or partition is None:
        return None  # if there is no partition, the append says why
    transactional_id = request.transactional_id or ""
    context.ensure_may(Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id)
    who = Identity(header.producer_id, header.producer_epoch)
    if is_open(partition, who):
        return None
    is_known = who.producer_id in partition.log.producers.producers
    if header.base_sequence > 0 and not is_known and context.api_version >= FIRST_VERSION_THAT_ADDS:
        raise RunnelError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {who.producer_id}: sequence {header.base_sequence}, and it is not known",
        )
    return who


def _for_producers(context: RequestContext, error: RunnelError) -> RunnelError:
    """In codes that producers act on: those before KIP-890 do not know a coordinator's here."""
    code = error.code
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
