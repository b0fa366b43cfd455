"""DeleteRecords (key 21, v0-v2): raise the start of a log; older records become unreadable (R34).

Version notes: v2 is flexible. Offset -1 means the high watermark. Only a topic whose
`cleanup.policy` has `delete` may lose records this way. The answer leaves when the new start is on
disk: what a client was told is gone does not come back after a crash.
"""

import logging
from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.security import Operation, Resource
from runnel.errors import ErrorCode, RunnelError
from runnel.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_log = logging.getLogger(__name__)
TO_HIGH_WATERMARK: Final = -1


async def delete_records(
    context: RequestContext, services: Services, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _delete(context, services, topic.name, asked) for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
    try:
        await services.upkeep.write_checkpoints()
    except OSError as error:
        _log.error("the new log starts cannot be written: %s", error)
        for topic in response.topics:
            for result in topic.partitions:
                result.error_code = result.error_code or ErrorCode.KAFKA_STORAGE_ERROR
    return response


def _delete(
    context: RequestContext, services: Services, topic: str, asked: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    try:
        if not context.may(Operation.DELETE, Resource.TOPIC, topic):
            raise RunnelError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic)
        partition = services.partitions.get(topic, asked.partition_index)
        partition.ensure_leads()
        log = partition.log
        if "delete" not in log.config.cleanup_policy:
            raise RunnelError(ErrorCode.POLICY_VIOLATION, f"{topic} is only compacted")
        before = asked.offset
        if before == TO_HIGH_WATERMARK:
            before = partition.high_watermark
        if before < 0 or before > partition.high_watermark:
            raise RunnelError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{before} is beyond the high watermark {partition.high_watermark}",
            )
        log.delete_records(before)
    except RunnelError as error:
        return DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=-1, error_code=error.code
        )
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=log.log_start_offset
    )
