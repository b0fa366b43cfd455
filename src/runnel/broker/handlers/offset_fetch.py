"""OffsetFetch (key 9, v1-v10): how far groups have come.

Version notes: v2 may ask for all partitions, and has an error of the group; v7 may insist on
offsets that no open transaction will change; v8 asks for several groups; v9 says which member asks;
v10 names topics by id.
"""

from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.security import Operation, Resource
from runnel.broker.settling import settle
from runnel.broker.waiting import Parked
from runnel.coordinator.groups.machine import GroupMachine
from runnel.coordinator.groups.offset_fetching import fetch_offsets
from runnel.coordinator.runtime import Shard
from runnel.errors import ErrorCode, RunnelError
from runnel.types import TopicId
from runnel.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

FIRST_VERSION_WITH_GROUP_ERROR: Final = 2
FIRST_VERSION_WITH_GROUPS: Final = 8
FIRST_VERSION_WITH_TOPIC_IDS: Final = 10
NO_OFFSET: Final = -1


def offset_fetch(
    context: RequestContext, services: Services, request: OffsetFetchRequest
) -> OffsetFetchResponse | Parked[OffsetFetchResponse]:
    if context.api_version < FIRST_VERSION_WITH_GROUPS:
        groups = [OffsetFetchRequestGroup(group_id=request.group_id, topics=_topics(request))]
    else:
        groups = request.groups
    shards: dict[Shard[GroupMachine], None] = {}
    answers: list[OffsetFetchResponseGroup] = []
    for group in groups:
        try:
            context.ensure_may(Operation.DESCRIBE, Resource.GROUP, group.group_id)
            shard = services.groups.shard_of(group.group_id)
            shards[shard] = None
            answers.append(_fetch(context, services, shard, group, request.require_stable))
        except RunnelError as error:
            answers.append(_failed(group, error.code, context.api_version))

    def failed(_code: ErrorCode) -> OffsetFetchResponse:
        # Consumers before 3.9 know no other error that makes them look for the coordinator again.
        code = ErrorCode.NOT_COORDINATOR
        return _response(context, [_failed(each, code, context.api_version) for each in groups])

    timeout_ms = services.settings.groups.offsets_commit_timeout_ms
    return settle(list(shards), _response(context, answers), failed, timeout_ms=timeout_ms)


def _topics(request: OffsetFetchRequest) -> list[OffsetFetchRequestTopics] | None:
    if request.topics is None:
        return None
    return [
        OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes)
        for each in request.topics
    ]


def _fetch(
    context: RequestContext,
    services: Services,
    shard: Shard[GroupMachine],
    group: OffsetFetchRequestGroup,
    require_stable: bool,
) -> OffsetFetchResponseGroup:
    """Raises RunnelError where the group itself is at fault."""
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    image = services.image
    refused: list[OffsetFetchResponseTopics] = []
    if group.topics is not None:
        accepted: list[OffsetFetchRequestTopics] = []
        for topic in group.topics:
            if by_id:
                known = image.topics_by_id.get(TopicId(topic.topic_id))
                topic.name = "" if known is None else known.name
            if by_id and not topic.name:
                refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            elif not context.may(Operation.DESCRIBE, Resource.TOPIC, topic.name):
                refused.append(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            else:
                accepted.append(topic)
        group = OffsetFetchRequestGroup(
            group_id=group.group_id,
            member_id=group.member_id,
            member_epoch=group.member_epoch,
            topics=accepted,
        )
    found = fetch_offsets(shard.machine, group, require_stable=require_stable)
    if group.topics is None:
        found = [
            each for each in found if context.may(Operation.DESCRIBE, Resource.TOPIC, each.name)
        ]
        if by_id:  # what has no id now was deleted, and cannot be told
            found = [each for each in found if each.name in image.topics]
            for each in found:
                each.topic_id = image.topics[each.name].id
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=found + refused)


def _refused(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=NO_OFFSET, error_code=code
            )
            for index in topic.partition_indexes
        ],
    )


def _failed(
    group: OffsetFetchRequestGroup, code: ErrorCode, api_version: int
) -> OffsetFetchResponseGroup:
    answer = OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
    if api_version < FIRST_VERSION_WITH_GROUP_ERROR:
        answer.topics = [_refused(topic, code) for topic in group.topics or ()]
    return answer


def _response(
    context: RequestContext, groups: list[OffsetFetchResponseGroup]
) -> OffsetFetchResponse:
    if context.api_version >= FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )
