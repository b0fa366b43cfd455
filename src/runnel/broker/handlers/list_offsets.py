"""ListOffsets (key 2, v1-v11): offsets by position in the log or by time.

Version notes: v2 knows isolation levels, v4 leader epochs, v7 the largest timestamp (-3), v8 the
earliest local (-4), v9 the last tiered (-5), v11 the earliest pending upload (-6). There is no
tiered storage here: everything is local, and what is tiered or to be tiered is nothing (-1)."""

from collections.abc import Coroutine
from enum import IntEnum
from functools import partial
from typing import Any, Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.partition import Partition
from runnel.broker.security import Operation, Resource
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.log import Log
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
) -> ListOffsetsResponse | Coroutine[Any, Any, ListOffsetsResponse]:
    if any(_needs_search(each.timestamp) for topic in request.topics for each in topic.partitions):
        return _search_all(context, services, request)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _answer(context, services, request, topic.name, asked, None)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def _search_all(
    context: RequestContext, services: Services, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    response = ListOffsetsResponse()
    for topic in request.topics:
        answers = ListOffsetsTopicResponse(name=topic.name)
        for asked in topic.partitions:
            found: TimestampOffset | RunnelError | None = None
            partition = services.partitions.find(topic.name, asked.partition_index)
            if partition is not None and _needs_search(asked.timestamp):
                found = await _search(services, partition.log, asked.timestamp)
            answers.partitions.append(_answer(context, services, request, topic.name, asked, found))
        response.topics.append(answers)
    return response


def _needs_search(timestamp: int) -> bool:
    return timestamp >= 0 or timestamp == Special.MAX_TIMESTAMP


async def _search(
    services: Services, log: Log, timestamp: int
) -> TimestampOffset | RunnelError | None:
    """The record is found in a worker, because its batch may have to be decompressed."""
    try:
        if timestamp == Special.MAX_TIMESTAMP:
            latest = log.latest_batch()
            return None if latest is None else await services.workers.run(latest.latest)
        start = log.log_start_offset
        for candidate in log.batches_at_or_after(timestamp):
            find = partial(candidate.first_at_or_after, timestamp, start)
            found = await services.workers.run(find)
            if found is not None:
                return found
    except RunnelError as error:
        return error
    return None


def _answer(
    context: RequestContext,
    services: Services,
    request: ListOffsetsRequest,
    topic: str,
    asked: ListOffsetsPartition,
    found: TimestampOffset | RunnelError | None,
) -> ListOffsetsPartitionResponse:
    """`found` is what a search by time gave, if there was one."""
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
        if isinstance(found, RunnelError):
            raise found
        timestamp, offset, leader_epoch = _place(
            partition, asked.timestamp, request.isolation_level, found
        )
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


def _place(
    partition: Partition, timestamp: int, isolation_level: int, found: TimestampOffset | None
) -> TimestampOffset:
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
        case _ if _needs_search(timestamp):
            return NOT_FOUND if found is None or found.offset >= bound else found
        case _:
            raise RunnelError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp}")
