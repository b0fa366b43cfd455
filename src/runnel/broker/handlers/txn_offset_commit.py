"""TxnOffsetCommit (key 28, v0-v5): how far a group comes with a producer's transaction.

Version notes: since v3 it says which member asks; since v5 the group's partition need not have been
added to the transaction before.

Errors are told per partition, as in OffsetCommit.
"""

from collections.abc import Coroutine, Iterable
from typing import Any, Final

from runnel.broker.admission import Claim, admit, is_asked_for, is_open
from runnel.broker.context import RequestContext, Services
from runnel.broker.handlers.group_partitions import Refused, merged, refusal, sort_out
from runnel.broker.journal import partition_of
from runnel.broker.security import Operation, Resource
from runnel.broker.settling import settle, settled
from runnel.broker.waiting import Parked
from runnel.coordinator.runtime import Shard
from runnel.coordinator.transactions.transitions import Identity
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

FIRST_VERSION_THAT_KNOWS_LOADING: Final = 2
FIRST_VERSION_WITH_ABORTABLE: Final = 4
FIRST_VERSION_THAT_ADDS: Final = 5

TxnAnswer = TxnOffsetCommitResponse | Parked[TxnOffsetCommitResponse]


def txn_offset_commit(
    context: RequestContext, services: Services, request: TxnOffsetCommitRequest
) -> TxnAnswer | Coroutine[Any, Any, TxnAnswer]:
    def failed(code: ErrorCode) -> TxnOffsetCommitResponse:
        if (
            code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            and context.api_version < FIRST_VERSION_THAT_KNOWS_LOADING
        ):
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE  # those crash on the other (KAFKA-7296)
        return _response(refused, [_refused(refusal(topic, code)) for topic in accepted])

    def commit(*, waits: bool) -> TxnAnswer | Coroutine[Any, Any, TxnAnswer]:
        try:
            shard = services.groups.shard_of(request.group_id)
            unsettled = _admit(context, services, request, shard)
            if unsettled is not None:
                return failed(ErrorCode.COORDINATOR_NOT_AVAILABLE) if waits else later(unsettled)
            topics = shard.machine.offsets.commit_in_transaction(request, accepted)
        except RunnelError as error:
            return failed(error.code)
        return settle([shard], _response(refused, topics), failed, timeout_ms=timeout_ms)

    async def later(unsettled: Shard[Any]) -> TxnAnswer:
        await settled(services.waiting, unsettled, timeout_ms)
        answer = commit(waits=True)
        assert not isinstance(answer, Coroutine)
        return answer

    timeout_ms = services.settings.groups.offsets_commit_timeout_ms
    refused: list[Refused] = []
    accepted = request.topics
    try:
        _ensure_allowed(context, request)
    except RunnelError as error:
        return failed(error.code)
    accepted, refused = sort_out(context, services.image, request.topics)
    if not accepted:
        return _response(refused, [])
    if not request.group_id:
        return failed(ErrorCode.INVALID_GROUP_ID)
    return commit(waits=False)


def _ensure_allowed(context: RequestContext, request: TxnOffsetCommitRequest) -> None:
    context.ensure_may(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id)
    context.ensure_may(Operation.READ, Resource.GROUP, request.group_id)


def _admit(
    context: RequestContext,
    services: Services,
    request: TxnOffsetCommitRequest,
    shard: Shard[Any],
) -> Shard[Any] | None:
    """The group's partition is in the transaction. Else raises, or says whose commit to await."""
    partition = partition_of(shard)
    who = Identity(request.producer_id, request.producer_epoch)
    adds = context.api_version >= FIRST_VERSION_THAT_ADDS
    if is_open(partition, who) or not is_asked_for(services, adds=adds):
        return None
    knows_abortable = context.api_version >= FIRST_VERSION_WITH_ABORTABLE
    claim = Claim(request.transactional_id, who, adds, knows_abortable)
    admitted = admit(services, claim, frozenset({partition.topic_partition}))
    for why in admitted.refused.values():
        raise why
    return admitted.unsettled


def _response(
    refused: Iterable[Refused], answered: list[TxnOffsetCommitResponseTopic]
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(topics=merged([_refused(each) for each in refused], answered))


def _refused(refused: Refused) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=refused.name,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=index, error_code=refused.code)
            for index in refused.indexes
        ],
    )
