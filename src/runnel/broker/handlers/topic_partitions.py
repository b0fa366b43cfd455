"""DescribeTopicPartitions (key 75, v0): a page of topics and their partitions (KIP-966).

Topics come sorted by name. A page ends after as many partitions as the client asks for, at most
`max.request.partition.size.limit`; the cursor says where the next one begins, and may point at a
partition that is gone by then.
"""

from runnel.broker.context import RequestContext, Services
from runnel.broker.security import TOPIC_OPERATIONS, Operation, Resource
from runnel.cluster.image import Image, Topic
from runnel.cluster.topic_names import ensure_legal, is_internal
from runnel.cluster.values import Partition
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def describe_topic_partitions(
    context: RequestContext, services: Services, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    try:
        names = _names(services.image, request)
    except RunnelError as error:
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(error_code=error.code, name=topic.name)
                for topic in request.topics
            ]
        )
    may_see = [name for name in names if context.may(Operation.DESCRIBE, Resource.TOPIC, name)]
    response = DescribeTopicPartitionsResponse()
    room = min(services.settings.max_request_partition_size_limit, request.response_partition_limit)
    _fill(context, services.image, request, may_see, max(room, 1), response)
    if request.topics:
        response.topics += [
            DescribeTopicPartitionsResponseTopic(
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name
            )
            for name in names
            if name not in may_see
        ]
    return response


def _names(image: Image, request: DescribeTopicPartitionsRequest) -> list[str]:
    """From the cursor's topic on, in order. Raises INVALID_REQUEST."""
    cursor = request.cursor
    asked = {topic.name for topic in request.topics} or image.topics.keys()
    names = sorted(name for name in asked if cursor is None or name >= cursor.topic_name)
    if cursor is not None:
        if request.topics and cursor.topic_name not in asked:
            raise RunnelError(
                ErrorCode.INVALID_REQUEST,
                f"the list of topics must contain the cursor's: {cursor.topic_name}",
            )
        if cursor.partition_index < 0:
            raise RunnelError(ErrorCode.INVALID_REQUEST, "the cursor's partition is below 0")
    return names


def _fill(
    context: RequestContext, image: Image, request: DescribeTopicPartitionsRequest,
    names: list[str], room: int, response: DescribeTopicPartitionsResponse,
) -> None:  # fmt: skip
    cursor = request.cursor
    for name in names:
        if not room:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name)
            return
        topic = image.topics.get(name)
        if topic is None:
            if request.topics:
                response.topics.append(_unknown(name))
            continue
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        shown = topic.partitions[first : first + room]
        response.topics.append(_described(context, image, topic, shown))
        room -= len(shown)
        if first + len(shown) < len(topic.partitions):
            response.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=first + len(shown)
            )
            return


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        ensure_legal(name)
    except RunnelError as error:
        code = error.code
    return DescribeTopicPartitionsResponseTopic(
        error_code=code, name=name, is_internal=is_internal(name)
    )


def _described(
    context: RequestContext, image: Image, topic: Topic, shown: tuple[Partition, ...]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(image, record) for record in shown],
        topic_authorized_operations=context.rights(Resource.TOPIC, topic.name, TOPIC_OPERATIONS),
    )


def _partition(image: Image, record: Partition) -> DescribeTopicPartitionsResponsePartition:
    lone = [record.last_known_leader] if record.last_known_leader >= 0 else []
    return DescribeTopicPartitionsResponsePartition(
        error_code=0 if record.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=record.index,
        leader_id=record.leader,
        leader_epoch=record.leader_epoch,
        replica_nodes=list(record.replicas),
        isr_nodes=record.isr_ids,
        eligible_leader_replicas=[member.id for member in record.elr],
        last_known_elr=lone,
        offline_replicas=[
            broker_id
            for broker_id in record.replicas
            if broker_id not in image.brokers or not image.brokers[broker_id].live
        ],
    )
