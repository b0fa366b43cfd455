"""What transactional producers ask of their coordinator: to begin, to write somewhere, to end.

AddPartitionsToTxn (key 24, v0-v5): up to v3 of a client for one transaction; since v4 of a broker
for many, which may only verify (KIP-890).
AddOffsetsToTxn (key 25, v0-v4): the partition that holds the offsets of a group is written to.
EndTxn (key 26, v0-v5): v5 gives every transaction an epoch of its own and says which is next.

Version notes: producers since v2 (InitProducerId: v4) know PRODUCER_FENCED.
"""

from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final, TypeVar

from runnel.broker.context import RequestContext, Services
from runnel.broker.internal_topics import CONSUMER_OFFSETS
from runnel.broker.security import CLUSTER_NAME, Operation, Resource
from runnel.broker.settling import settle
from runnel.broker.waiting import Parked
from runnel.coordinator.runtime import Shard
from runnel.coordinator.transactions.machine import (
    TransactionMachine,
    ensure_timeout,
    ensure_transactional_id,
)
from runnel.coordinator.transactions.transitions import EPOCH_BUMPS_SINCE, Identity
from runnel.errors import ErrorCode, RunnelError
from runnel.types import TopicPartition
from runnel.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from runnel.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from runnel.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from runnel.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

R = TypeVar("R")
FIRST_VERSION_OF_BROKERS: Final = 4
FIRST_VERSION_WITH_EPOCH_BUMP: Final = 5
FIRST_VERSION_WITH_FENCED: Final = 2
FIRST_INIT_WITH_FENCED: Final = 4
NO_TRANSACTION_VERSION: Final = 0
AddOffsets = AddOffsetsToTxnResponse | Parked[AddOffsetsToTxnResponse]
Errors = dict[TopicPartition, ErrorCode]


def init_transactional_producer(
    context: RequestContext, services: Services, request: InitProducerIdRequest
) -> InitProducerIdResponse | Parked[InitProducerIdResponse]:
    def failed(code: ErrorCode) -> InitProducerIdResponse:
        code = _told(context, code, FIRST_INIT_WITH_FENCED)
        return InitProducerIdResponse(error_code=code, producer_epoch=-1)

    def work(shard: Shard[TransactionMachine]) -> InitProducerIdResponse:
        found = shard.machine.init_producer_id(
            request.transactional_id or "",
            request.transaction_timeout_ms,
            _expected(request.producer_id, request.producer_epoch),
        )
        return InitProducerIdResponse(producer_id=found.producer_id, producer_epoch=found.epoch)

    try:
        context.ensure_may(
            Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id or ""
        )
        _expected(request.producer_id, request.producer_epoch)
        ensure_transactional_id(request.transactional_id)
        ensure_timeout(request.transaction_timeout_ms, services.settings.transactions)
    except RunnelError as error:
        return failed(error.code)
    return _coordinate(services, request.transactional_id or "", work, failed)


def _expected(producer_id: int, epoch: int) -> Identity | None:
    if (producer_id < 0) != (epoch < 0):
        raise RunnelError(ErrorCode.INVALID_REQUEST, "a producer id and no epoch, or the reverse")
    return None if producer_id < 0 else Identity(producer_id, epoch)


def end_txn(
    context: RequestContext, services: Services, request: EndTxnRequest
) -> EndTxnResponse | Parked[EndTxnResponse]:
    def failed(code: ErrorCode) -> EndTxnResponse:
        return EndTxnResponse(error_code=_told(context, code, FIRST_VERSION_WITH_FENCED))

    def work(shard: Shard[TransactionMachine]) -> EndTxnResponse:
        bumps = context.api_version >= FIRST_VERSION_WITH_EPOCH_BUMP
        following = shard.machine.end(
            ensure_transactional_id(request.transactional_id),
            Identity(request.producer_id, request.producer_epoch),
            EPOCH_BUMPS_SINCE if bumps else NO_TRANSACTION_VERSION,
            is_commit=request.committed,
        )
        return EndTxnResponse(producer_id=following.producer_id, producer_epoch=following.epoch)

    try:
        context.ensure_may(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id)
    except RunnelError as error:
        return failed(error.code)
    return _coordinate(services, request.transactional_id, work, failed)


def add_offsets_to_txn(
    context: RequestContext, services: Services, request: AddOffsetsToTxnRequest
) -> AddOffsets | Coroutine[Any, Any, AddOffsets]:
    def failed(code: ErrorCode) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=_told(context, code, FIRST_VERSION_WITH_FENCED))

    def work(shard: Shard[TransactionMachine]) -> AddOffsetsToTxnResponse:
        index = services.groups.index_of(request.group_id)
        shard.machine.add_partitions(
            ensure_transactional_id(request.transactional_id),
            Identity(request.producer_id, request.producer_epoch),
            frozenset({TopicPartition(CONSUMER_OFFSETS, index)}),
            NO_TRANSACTION_VERSION,
        )
        return AddOffsetsToTxnResponse()

    async def create_then_work() -> AddOffsets:
        with suppress(RunnelError):  # the topic is not there then, which the answer says
            await services.groups.ensure_topic(services.topics)
        return _coordinate(services, request.transactional_id, work, failed)

    try:
        context.ensure_may(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id)
        context.ensure_may(Operation.READ, Resource.GROUP, request.group_id)
    except RunnelError as error:
        return failed(error.code)
    if CONSUMER_OFFSETS not in services.image.topics:
        return create_then_work()  # a producer asks for the group's coordinator only after this
    return _coordinate(services, request.transactional_id, work, failed)


def add_partitions_to_txn(
    context: RequestContext, services: Services, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | Parked[AddPartitionsToTxnResponse]:
    if context.api_version >= FIRST_VERSION_OF_BROKERS:
        return _add_of_brokers(context, services, request)
    asked = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    errors, shards = _add(context, services, asked)
    response = AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=_results(asked.topics, errors)
    )

    def failed(code: ErrorCode) -> AddPartitionsToTxnResponse:
        same = dict.fromkeys(errors, code)
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=_results(asked.topics, same)
        )

    return settle(shards, response, failed)


def _add_of_brokers(
    context: RequestContext, services: Services, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | Parked[AddPartitionsToTxnResponse]:
    if not context.may(Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results: list[AddPartitionsToTxnResult] = []
    shards: dict[Shard[TransactionMachine], None] = {}
    for asked in request.transactions:
        errors, used = _add(context, services, asked)
        shards.update(dict.fromkeys(used))
        results.append(
            AddPartitionsToTxnResult(
                transactional_id=asked.transactional_id,
                topic_results=_results(asked.topics, errors),
            )
        )
    return settle(
        list(shards),
        AddPartitionsToTxnResponse(results_by_transaction=results),
        lambda code: AddPartitionsToTxnResponse(error_code=code),
    )


def _add(
    context: RequestContext, services: Services, asked: AddPartitionsToTxnTransaction
) -> tuple[Errors, list[Shard[TransactionMachine]]]:
    """An error for each partition, and the shard that was asked. All of them are added, or none."""
    partitions = [TopicPartition(each.name, i) for each in asked.topics for i in each.partitions]
    try:
        context.ensure_may(Operation.WRITE, Resource.TRANSACTIONAL_ID, asked.transactional_id)
    except RunnelError as error:
        return dict.fromkeys(partitions, error.code), []
    errors: Errors = {}
    for where in partitions:
        topic = services.image.topics.get(where.topic)
        if not context.may(Operation.WRITE, Resource.TOPIC, where.topic):
            errors[where] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or not 0 <= where.index < len(topic.partitions):
            errors[where] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if errors:
        return {
            where: errors.get(where, ErrorCode.OPERATION_NOT_ATTEMPTED) for where in partitions
        }, []
    who = Identity(asked.producer_id, asked.producer_epoch)
    is_broker = context.api_version >= FIRST_VERSION_OF_BROKERS
    try:
        transactional_id = ensure_transactional_id(asked.transactional_id)
        shard = services.transactions.shard_of(transactional_id)
        missing: Iterable[TopicPartition] = ()
        if asked.verify_only:
            missing = shard.machine.missing(transactional_id, who, frozenset(partitions))
        else:
            version = EPOCH_BUMPS_SINCE if is_broker else NO_TRANSACTION_VERSION
            shard.machine.add_partitions(transactional_id, who, frozenset(partitions), version)
    except RunnelError as error:
        code = _told(context, error.code, FIRST_VERSION_WITH_FENCED)
        return dict.fromkeys(partitions, code), []
    errors = dict.fromkeys(partitions, ErrorCode.NONE)
    errors |= dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE)
    return errors, [shard]


def _results(
    topics: Iterable[AddPartitionsToTxnTopic], errors: Errors
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=errors[TopicPartition(topic.name, index)],
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _coordinate(
    services: Services,
    transactional_id: str,
    work: Callable[[Shard[Any]], R],
    failed: Callable[[ErrorCode], R],
) -> R | Parked[R]:
    try:
        ensure_transactional_id(transactional_id)
        shard = services.transactions.shard_of(transactional_id)
    except RunnelError as error:
        return failed(error.code)
    try:
        response = work(shard)
    except RunnelError as error:
        response = failed(error.code)
    return settle([shard], response, failed)


def _told(context: RequestContext, code: ErrorCode, fenced_since: int) -> ErrorCode:
    """Older producers know that their epoch is invalid, and not why."""
    if code is ErrorCode.PRODUCER_FENCED and context.api_version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
