"""ListOffsets (key 2, v1-v11): offsets by position in the log or by time.

Version notes: v2 knows isolation levels, v4 leader epochs, v7 the largest timestamp (-3), v8 the
earliest local (-4), v9 the last tiered (-5), v11 the earliest pending upload (-6). There is no
tiered storage here: everything is local, and what is tiered or to be tiered is nothing (-1)."""

from enum import IntEnum
from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.partition import Partition
from runnel.broker.security import Operation, Resource
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.timestamps import TimestampOffset
from runnel.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

READ_COMMITTED: Final = 1
FIRST_VERSION_WITH_EPOCH: Final = 4
NOT_FOUND: Final = TimestampOffset(-1, -1, -1)


class Special(IntEnum):
    """Timestamps that are none, but ask for a place in the log."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


FIRST_VERSION_OF: Final[dict[int, int]] = {
    Special.MAX_TIMESTAMP: 7,
    Special.EARLIEST_LOCAL: 8,
    Special.LATEST_TIERED: 9,
    Special.EARLIEST_PENDING_UPLOAD: 11,
}


def list_offsets(
    context: RequestContext, services: Services, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _answer(context, services, topic.name, asked, request.isolation_level)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _answer(
    context: RequestContext,
    services: Services,
    topic: str,
    asked: ListOffsetsPartition,
    isolation_level: int,
) -> ListOffsetsPartitionResponse:
    try:
        if not context.may(Operation.DESCRIBE, Resource.TOPIC, topic):
            raise RunnelError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic)
        if context.api_version < FIRST_VERSION_OF.get(asked.timestamp, 1):
            raise RunnelError(
                ErrorCode.UNSUPPORTED_VERSION, f"timestamp {asked.timestamp} needs a newer version"
            )
        partition = services.partitions.get(topic, asked.partition_index)
        partition.ensure_leads()
        partition.ensure_epoch(asked.current_leader_epoch)
        timestamp, offset, leader_epoch = _locate(partition, asked.timestamp, isolation_level)
    except RunnelError as error:
        return ListOffsetsPartitionResponse(
            partition_index=asked.partition_index, error_code=error.code
        )
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader_epoch if context.api_version >= FIRST_VERSION_WITH_EPOCH else -1,
    )


def _locate(partition: Partition, timestamp: int, isolation_level: int) -> TimestampOffset:
    log = partition.log
    bound = (
        partition.last_stable_offset
        if isolation_level == READ_COMMITTED
        else partition.high_watermark
    )
    match timestamp:
        case Special.LATEST:
            return TimestampOffset(-1, bound, partition.leader_epoch)
        case Special.EARLIEST | Special.EARLIEST_LOCAL:
            start = log.log_start_offset
            return TimestampOffset(-1, start, log.epochs.epoch_for(start))
        case Special.LATEST_TIERED | Special.EARLIEST_PENDING_UPLOAD:
            return NOT_FOUND
        case Special.MAX_TIMESTAMP:
            found = log.max_timestamp_offset()
        case _ if timestamp < 0:
            raise RunnelError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp}")
        case _:
            found = log.offset_for_timestamp(timestamp)
    return NOT_FOUND if found is None or found.offset >= bound else found
