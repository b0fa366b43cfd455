"""ListOffsets (key 2, v1-v11): offsets by position in the log or by time.

Version notes: v2 knows isolation levels, v4 leader epochs, v7 the largest timestamp (-3), v8 the
earliest local (-4), v9 the last tiered (-5), v11 the earliest pending upload (-6). There is no
tiered storage here: everything is local, and what is tiered or to be tiered is nothing (-1).

A search by time reads one batch, and the record inside it is found in a worker, because it may
have to be decompressed.
"""

from collections.abc import Callable, Coroutine
from enum import IntEnum
from typing import Any, Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.partition import Partition
from runnel.broker.security import Operation, Resource
from runnel.errors import ErrorCode, RunnelError
from runnel.native import records as native
from runnel.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

READ_COMMITTED: Final = 1


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

Found = tuple[int, int] | None  # offset, timestamp
Search = Callable[[], Found]
Answer = tuple[ListOffsetsPartitionResponse, Partition | None, Search | None]


def list_offsets(
    context: RequestContext, services: Services, request: ListOffsetsRequest
) -> ListOffsetsResponse | Coroutine[Any, Any, ListOffsetsResponse]:
    searches: list[Answer] = []
    response = ListOffsetsResponse()
    for topic in request.topics:
        answers = [
            _answer(context, services, topic.name, asked, request.isolation_level)
            for asked in topic.partitions
        ]
        response.topics.append(
            ListOffsetsTopicResponse(name=topic.name, partitions=[each[0] for each in answers])
        )
        searches += [each for each in answers if each[2] is not None]
    if searches:
        return _search(services, response, searches)
    return response


def _answer(
    context: RequestContext,
    services: Services,
    topic: str,
    asked: ListOffsetsPartition,
    isolation_level: int,
) -> Answer:
    result = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
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
        search = _locate(partition, asked.timestamp, isolation_level, result)
    except RunnelError as error:
        result.error_code = error.code
        return result, None, None
    return result, partition, search


def _locate(
    partition: Partition,
    timestamp: int,
    isolation_level: int,
    result: ListOffsetsPartitionResponse,
) -> Search | None:
    """Fill in the result if the log alone can say it, else return what a worker must search."""
    log = partition.log
    bound = (
        partition.last_stable_offset
        if isolation_level == READ_COMMITTED
        else partition.high_watermark
    )
    match timestamp:
        case Special.LATEST:
            _found(partition, result, bound, -1)
        case Special.EARLIEST | Special.EARLIEST_LOCAL:
            _found(partition, result, log.log_start_offset, -1)
        case Special.LATEST_TIERED | Special.EARLIEST_PENDING_UPLOAD:
            pass  # nothing is tiered: the result stays -1
        case Special.MAX_TIMESTAMP:
            raw = log.read_batch_with_max_timestamp()
            if raw is not None:
                return lambda: native.max_timestamp(raw)
        case _ if timestamp < 0:
            raise RunnelError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp}")
        case _:
            raw = log.read_batch_at_or_after(timestamp, bound)
            if raw is not None:
                return lambda: native.first_at_or_after(raw, timestamp)
    return None


def _found(
    partition: Partition, result: ListOffsetsPartitionResponse, offset: int, timestamp: int
) -> None:
    result.offset = offset
    result.timestamp = timestamp
    result.leader_epoch = partition.log.epochs.epoch_for(offset)


async def _search(
    services: Services, response: ListOffsetsResponse, searches: list[Answer]
) -> ListOffsetsResponse:
    def search() -> list[Found | RunnelError]:
        return [_attempt(look) for _, _, look in searches if look is not None]

    found = await services.workers.run(search)
    for (result, partition, _), outcome in zip(searches, found, strict=True):
        if isinstance(outcome, RunnelError):
            result.error_code = outcome.code
        elif outcome is not None and partition is not None:
            _found(partition, result, *outcome)
    return response


def _attempt(look: Search) -> Found | RunnelError:
    try:
        return look()
    except RunnelError as error:
        return error
