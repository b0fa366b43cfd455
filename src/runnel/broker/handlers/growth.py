"""CreatePartitions (key 37, v0-v3): a topic gets more partitions; it never gets fewer.

Version notes: v2 is flexible, v3 may answer THROTTLING_QUOTA_EXCEEDED. The answer leaves when the
new logs are open on this broker, so that the client's next request meets them.
"""

from collections import Counter
from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.quotas import Mutations
from runnel.broker.security import Operation, Resource
from runnel.cluster.topics import NewPartitions
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

FIRST_STRICT_VERSION: Final = 3


async def create_partitions(
    context: RequestContext, services: Services, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    quota = services.mutations(context, strict_since=FIRST_STRICT_VERSION)
    counts = Counter(topic.name for topic in request.topics)
    results = [
        CreatePartitionsTopicResult(
            name=name,
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="Duplicate topic name.",
        )
        for name, count in counts.items()
        if count > 1
    ]
    for topic in request.topics:
        if counts[topic.name] == 1:
            results.append(await _grow(context, services, topic, request.validate_only, quota))
    return CreatePartitionsResponse(throttle_time_ms=quota.throttle_ms, results=results)


async def _grow(
    context: RequestContext,
    services: Services,
    topic: CreatePartitionsTopic,
    validate_only: bool,
    quota: Mutations,
) -> CreatePartitionsTopicResult:
    assignments = topic.assignments
    try:
        if not context.may(Operation.ALTER, Resource.TOPIC, topic.name):
            raise RunnelError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic.name)
        new = NewPartitions(
            topic.name,
            topic.count,
            None if assignments is None else [each.broker_ids for each in assignments],
        )
        if quota.is_bound:  # what is refused anyway costs nothing
            await services.topics.add_partitions(new, validate_only=True)
            there = services.image.topics.get(topic.name)  # not if it was deleted meanwhile
            quota.record(topic.count - (0 if there is None else len(there.partitions)))
        await services.topics.add_partitions(new, validate_only=validate_only)
    except RunnelError as error:
        return CreatePartitionsTopicResult(
            name=topic.name, error_code=error.code, error_message=str(error)
        )
    return CreatePartitionsTopicResult(name=topic.name)
