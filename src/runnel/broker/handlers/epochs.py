"""OffsetForLeaderEpoch (key 23, v2-v4): where an epoch ended in this leader's log (KIP-101/320).

Version notes: v3 says who asks; v4 is flexible. An epoch this log never saw gives -1, -1.
"""

from runnel.broker.context import RequestContext, Services
from runnel.broker.security import Operation, Resource
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def offset_for_leader_epoch(
    context: RequestContext, services: Services, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _end_of_epoch(context, services, topic.topic, asked)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _end_of_epoch(
    context: RequestContext, services: Services, topic: str, asked: OffsetForLeaderPartition
) -> EpochEndOffset:
    try:
        if not context.may(Operation.DESCRIBE, Resource.TOPIC, topic):
            raise RunnelError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic)
        partition = services.partitions.get(topic, asked.partition)
        partition.ensure_leads()
        partition.ensure_epoch(asked.current_leader_epoch)
        epoch, end_offset = partition.end_of_epoch(asked.leader_epoch)
    except RunnelError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error.code)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
