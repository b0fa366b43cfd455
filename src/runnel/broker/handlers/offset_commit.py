"""OffsetCommit (key 8, v2-v10): how far a group has come.

Version notes: up to v4 it may say how long an offset is to be kept; v10 names topics by id.

What is wrong with one partition is its own error; what is wrong with the group is the error of
every partition, because the response has no other place for it.
"""

from functools import partial
from typing import TYPE_CHECKING, Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.gathering import Promised
from runnel.broker.handlers.group_partitions import READ, Refused, merged, refusal, sort_out
from runnel.broker.journal import partition_of
from runnel.broker.security import Resource
from runnel.broker.settling import is_settled, settle
from runnel.broker.waiting import Parked
from runnel.errors import ErrorCode, RunnelError
from runnel.types import TopicId
from runnel.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from runnel.coordinator.groups.machine import GroupMachine
    from runnel.coordinator.runtime import Shard

FIRST_VERSION_WITH_TOPIC_IDS: Final = 10
GROUP: Final = Resource.GROUP


def offset_commit(
    context: RequestContext, services: Services, request: OffsetCommitRequest
) -> OffsetCommitResponse | Parked[OffsetCommitResponse] | Promised[OffsetCommitResponse]:
    group_id = request.group_id
    if not context.may(READ, GROUP, group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return OffsetCommitResponse(
            topics=[_refused(refusal(topic, code)) for topic in request.topics]
        )
    image = services.image
    if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        for topic in request.topics:
            found = image.topics_by_id.get(TopicId(topic.topic_id))
            topic.name = "" if found is None else found.name
    accepted, refused = sort_out(context, image, request.topics)
    if not accepted:
        return OffsetCommitResponse(topics=[_refused(each) for each in refused])
    try:
        shard = services.groups.gathering_shard_of(group_id)
        gathers = _gathers(services, shard)
        topics = shard.machine.offsets.commit(
            request, accepted, context.api_version, gathers=gathers
        )
    except RunnelError as error:
        topics = [_refused(refusal(topic, error.code)) for topic in accepted]
        return OffsetCommitResponse(topics=merged([_refused(each) for each in refused], topics))
    if refused:
        topics = merged([_refused(each) for each in refused], topics)
    response = OffsetCommitResponse(topics=topics)
    timeout_ms = services.settings.groups.offsets_commit_timeout_ms
    gathered = shard.gathered
    if gathered is not None:
        return Promised(shard, gathered, response, _failed, timeout_ms)
    if is_settled(shard):
        return response
    return settle([shard], response, partial(_failed, response), timeout_ms=timeout_ms)


def _gathers(services: Services, shard: "Shard[GroupMachine]") -> bool:
    """What is charged to a client is known when its handler returns, not at the end of the turn.

    What waits for the disk is always gathered: others may follow on the connection meanwhile.
    """
    if services.quotas.is_active:
        return False
    return partition_of(shard).syncs_first or services.gathering.is_worth_it()


def _failed(response: OffsetCommitResponse, code: ErrorCode) -> OffsetCommitResponse:
    """Of all that was not refused before."""
    for topic in response.topics:
        for partition in topic.partitions:
            partition.error_code = partition.error_code or code
    return response


def _refused(refused: Refused) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=refused.name,
        topic_id=refused.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=index, error_code=refused.code)
            for index in refused.indexes
        ],
    )
