"""CreateTopics (key 19, v2-v7) and DeleteTopics (key 20, v1-v6).

Version notes: CreateTopics v5 returns the effective configuration, v7 the topic id. DeleteTopics
v6 may name a topic by its id. Both answer when the change is in the image and the logs are open
or gone on this broker, so that the client's next request meets the new state.
"""

from collections import Counter
from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.live_settings import layers_of
from runnel.broker.quotas import Mutations
from runnel.broker.security import Operation, Resource
from runnel.cluster.topics import Assignment, NewTopic
from runnel.config.effective import effective_topic_configs
from runnel.errors import ErrorCode, RunnelError
from runnel.types import NO_TOPIC_ID, TopicId
from runnel.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from runnel.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

METADATA_TOPIC: Final = "__cluster_metadata"  # of KRaft; a folder that Kafka wrote may hold it
FIRST_VERSION_BY_ID: Final = 6
FIRST_STRICT_CREATION: Final = 6  # the first versions that may say THROTTLING_QUOTA_EXCEEDED
FIRST_STRICT_DELETION: Final = 5


async def create_topics(
    context: RequestContext, services: Services, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    quota = services.mutations(context, strict_since=FIRST_STRICT_CREATION)
    counts = Counter(topic.name for topic in request.topics)
    results = [
        CreatableTopicResult(
            name=name,
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="Duplicate topic name.",
        )
        for name, count in counts.items()
        if count > 1
    ]
    for topic in request.topics:
        if counts[topic.name] > 1:
            continue
        try:
            results.append(await _create(context, services, topic, request.validate_only, quota))
        except RunnelError as error:
            results.append(
                CreatableTopicResult(
                    name=topic.name, error_code=error.code, error_message=str(error)
                )
            )
    return CreateTopicsResponse(throttle_time_ms=quota.throttle_ms, topics=results)


async def _create(
    context: RequestContext,
    services: Services,
    topic: CreatableTopic,
    validate_only: bool,
    quota: Mutations,
) -> CreatableTopicResult:
    if not context.may(Operation.CREATE, Resource.TOPIC, topic.name):
        raise RunnelError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic.name)
    if topic.name == METADATA_TOPIC:
        raise RunnelError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {topic.name} is prohibited."
        )
    configs = {config.name: config.value for config in topic.configs}
    new = NewTopic(
        name=topic.name,
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            Assignment(each.partition_index, each.broker_ids) for each in topic.assignments
        ],
        configs=configs,
    )
    if quota.is_bound:  # what is refused anyway costs nothing
        planned = await services.topics.create(new, validate_only=True)
        quota.record(len(planned.partitions))
    created = await services.topics.create(new, validate_only=validate_only)
    return CreatableTopicResult(
        name=topic.name,
        topic_id=created.id,
        error_message=None,
        num_partitions=len(created.partitions),
        replication_factor=len(created.partitions[0].replicas),
        configs=[
            CreatableTopicConfigs(
                name=config.name,
                value=config.value,
                config_source=config.source,
                is_sensitive=False,
            )
            for config in effective_topic_configs(
                layers_of(services.image, services.settings), created.configs
            )
        ],
    )


async def delete_topics(
    context: RequestContext, services: Services, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    quota = services.mutations(context, strict_since=FIRST_STRICT_DELETION)
    asked = request.topics
    if context.api_version < FIRST_VERSION_BY_ID:
        asked = [DeleteTopicState(name=name) for name in request.topic_names]
    counts = Counter(state.name or state.topic_id for state in asked)
    responses = [
        _twice(what) for what, count in counts.items() if count > 1 and what != NO_TOPIC_ID
    ]
    for state in asked:
        what = state.name or state.topic_id
        if counts[what] == 1 or what == NO_TOPIC_ID:
            responses.append(await _delete(context, services, state, quota))
    return DeleteTopicsResponse(throttle_time_ms=quota.throttle_ms, responses=responses)


def _twice(what: str | TopicId) -> DeletableTopicResult:
    if isinstance(what, str):
        return DeletableTopicResult(
            name=what,
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="Duplicate topic name.",
        )
    return DeletableTopicResult(
        topic_id=what, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic id."
    )


async def _delete(
    context: RequestContext, services: Services, state: DeleteTopicState, quota: Mutations
) -> DeletableTopicResult:
    by_id = state.topic_id != NO_TOPIC_ID
    name = state.name
    try:
        if by_id and name is not None:
            raise RunnelError(
                ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
            )
        if not by_id and not name:
            raise RunnelError(
                ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."
            )
        image = services.image
        topic = image.topics_by_id.get(state.topic_id) if by_id else image.topics.get(name or "")
        if topic is None:
            raise RunnelError(
                ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"This server does not host this topic{' ID' if by_id else '-partition'}.",
            )
        name = topic.name
        if not context.may(Operation.DELETE, Resource.TOPIC, name):
            raise RunnelError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
        if not services.settings.delete_topic_enable:
            raise RunnelError(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false")
        quota.record(len(topic.partitions))
        await services.topics.delete(topic.id)
    except RunnelError as error:
        return DeletableTopicResult(
            name=name, topic_id=state.topic_id, error_code=error.code, error_message=str(error)
        )
    return DeletableTopicResult(name=name, topic_id=topic.id)
