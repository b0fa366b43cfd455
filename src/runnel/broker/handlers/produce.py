"""Produce (key 0, v3-v13): append client batches to the partitions this broker leads.

Version notes: v9 is the first flexible one; v10 may name the new leader; v13 addresses topics by
id instead of name. Kafka advertises the API from v0 because librdkafka looks for that, but
serves it from v3.

Acks 0 and 1 are settled inside this call; acks -1 parks until every batch is acknowledged.
Record bytes are borrowed from the connection and are appended before any wait. Where records
must be looked into and there are many of them, the request takes a copy of its records and goes
on in a worker; nothing else of that connection is handled meanwhile, so that a producer's
batches stay in order. A request with a transactional id takes its own way, through
`transactional_produce.py`, and ends here.
"""

import logging
from collections.abc import Coroutine
from typing import Any, Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.inspection import inspect, is_short
from runnel.broker.partition import Appended, Partition
from runnel.broker.security import Operation, Resource
from runnel.broker.waiting import Parked, Waiting
from runnel.config.topic import LogConfig
from runnel.errors import ErrorCode, RunnelError, WireError
from runnel.metrics import PRODUCED_BATCHES, PRODUCED_BYTES, PRODUCED_RECORDS, Metrics
from runnel.types import TopicId
from runnel.wire.batch import HEADER_SIZE, compression_of
from runnel.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

_log = logging.getLogger(__name__)
NO_REPLY: Final = 0
ZSTD: Final = 4
FIRST_VERSION_WITH_ZSTD: Final = 7
FIRST_VERSION_BY_ID: Final = 13
_WRITE: Final = Operation.WRITE
_TOPIC: Final = Resource.TOPIC
# Kept here: a name that is imported is looked for at every call.
_Response: Final = ProduceResponse
_TopicResponse: Final = TopicProduceResponse
_PartitionResponse: Final = PartitionProduceResponse

Wait = tuple[Partition, int, PartitionProduceResponse]
Answer = ProduceResponse | Parked[ProduceResponse] | None
Inspected = tuple[PartitionProduceData, LogConfig]
Verdicts = dict[int, RunnelError]  # by the identity of a PartitionProduceData


def produce(
    context: RequestContext, services: Services, request: ProduceRequest
) -> Answer | Coroutine[Any, Any, Answer]:
    if request.transactional_id is not None:
        from runnel.broker.handlers.transactional_produce import produce_in_transaction

        return produce_in_transaction(context, services, request)
    if is_any_inspected(services, request):
        inspected, needs_worker = inspections(context, services, request)
        if needs_worker:
            own_records(request)
            return _inspect_then_append(context, services, request, inspected)
    return append_all(context, services, request, None)


class Appending:
    """What is the same for all partitions of a topic in a request."""

    __slots__ = ("acks", "in_transaction", "may_wake", "topic", "verdicts")

    def __init__(
        self,
        topic: str,
        acks: int,
        verdicts: Verdicts | None,
        in_transaction: bool,
        may_wake: bool,
    ) -> None:
        self.topic = topic
        self.acks = acks
        self.verdicts = verdicts
        self.in_transaction = in_transaction
        self.may_wake = may_wake


def append_all(
    context: RequestContext,
    services: Services,
    request: ProduceRequest,
    verdicts: Verdicts | None,
    in_transaction: bool = False,
) -> Answer:
    acks = request.acks
    waits: list[Wait] = []
    topics: list[TopicProduceResponse] = []
    topic_data = request.topic_data
    may_wake = context.may_wake and len(topic_data) == 1
    for topic in topic_data:
        results: list[PartitionProduceResponse] = []
        refusal: RunnelError | None = None
        name, topic_id = topic.name, topic.topic_id
        try:
            name_there = _ensure_allowed(context, services, acks, name, topic_id)
        except RunnelError as error:
            name_there, refusal = "", error
        partition_data = topic.partition_data
        appending = Appending(
            name_there, acks, verdicts, in_transaction, may_wake and len(partition_data) == 1
        )
        for data in partition_data:
            try:
                if refusal is not None:
                    raise refusal
                results.append(_append(context, services, appending, data, waits))
            except RunnelError as error:  # one partition's failure is its own
                services.metrics.add_error(error.code)
                results.append(_failed(context, name_there, data.index, error))
        topics.append(_TopicResponse(name=name, topic_id=topic_id, partition_responses=results))
    response = _Response(responses=topics)
    if acks == NO_REPLY:
        _ensure_no_error(response)
        return None
    if waits:
        return _acknowledge_later(services, response, waits, acks, request.timeout_ms)
    return response


def _ensure_allowed(
    context: RequestContext, services: Services, acks: int, name: str, topic_id: TopicId
) -> str:
    """The topic's name, whichever way the request gave it."""
    if context.api_version >= FIRST_VERSION_BY_ID:
        name = services.partitions.name_of(topic_id)
    if context.authorizer is not None and not context.may(_WRITE, _TOPIC, name):
        raise RunnelError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
    if not -1 <= acks <= 1:
        raise RunnelError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}")
    return name


def _append(
    context: RequestContext,
    services: Services,
    how: Appending,
    data: PartitionProduceData,
    waits: list[Wait],
) -> PartitionProduceResponse:
    records, index = data.records, data.index
    if records is None or len(records) < HEADER_SIZE:
        raise RunnelError(ErrorCode.INVALID_RECORD, "a partition without a record batch")
    assert type(records) is memoryview
    partition = services.partitions.get(how.topic, index)
    acks, verdicts = how.acks, how.verdicts
    if verdicts is None:
        if context.api_version < FIRST_VERSION_WITH_ZSTD:
            ensure_codec(records)
        if partition.inspects:
            records = inspect(
                records, partition.log.config, services.settings.decompressed_max_bytes
            )
    elif (refusal := verdicts.get(id(data))) is not None:
        raise refusal
    base_offset, last_offset, append_time_ms = (
        _append_and_wake(services.waiting, partition, records, how)
        if how.may_wake
        else partition.append(records, acks, how.in_transaction)
    )
    slots = services.metrics.slots
    slots[PRODUCED_BATCHES] += 1
    slots[PRODUCED_RECORDS] += last_offset - base_offset + 1
    slots[PRODUCED_BYTES] += len(records)
    result = _PartitionResponse(
        index=index,
        base_offset=base_offset,
        log_append_time_ms=append_time_ms,
        log_start_offset=partition.log.log_start_offset,
    )
    if acks and not partition.is_acknowledged(last_offset, acks):
        waits.append((partition, last_offset, result))
        services.flusher.request(partition)
    return result


def _append_and_wake(
    waiting: Waiting, partition: Partition, records: memoryview, how: Appending
) -> Appended:
    """It is all that the request does, so who waits for it need not wait for the rest of it."""
    waiting.is_asked_soon = True
    try:
        return partition.append(records, how.acks, how.in_transaction)
    finally:
        waiting.wake_few()


def ensure_codec(records: memoryview) -> None:
    """Of what an old client sent: the broker itself may compress with zstd whatever the version."""
    if compression_of(records) == ZSTD:
        raise RunnelError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce v7 or newer")


def _failed(
    context: RequestContext, topic: str, index: int, error: RunnelError
) -> PartitionProduceResponse:
    if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
        extra = {
            "topic": topic,
            "partition": index,
            "api": "PRODUCE",
            "client_id": context.client_id,
            "peer": context.host,
            "listener": context.listener,
        }
        _log.error("produce to %s-%d: %s", topic, index, error, extra=extra)
    return PartitionProduceResponse(
        index=index, error_code=error.code, base_offset=-1, error_message=str(error)
    )


def _ensure_no_error(response: ProduceResponse) -> None:
    """With acks=0 the only way to tell of a failure is to end the connection, as Kafka does."""
    for topic in response.responses:
        for result in topic.partition_responses:
            if result.error_code:
                raise WireError(
                    f"produce with acks=0 to {topic.name}-{result.index}: {result.error_message}"
                )


def _acknowledge_later(
    services: Services,
    response: ProduceResponse,
    waits: list[Wait],
    acks: int,
    timeout_ms: int,
) -> Parked[ProduceResponse]:
    metrics = services.metrics

    def attempt(final: bool) -> ProduceResponse | None:
        late: list[Wait] = []
        for partition, last_offset, result in waits:
            if partition.log.offline is not None:
                _fail(metrics, result, ErrorCode.KAFKA_STORAGE_ERROR, partition.log.offline)
            elif not partition.is_leader:
                _fail(metrics, result, ErrorCode.NOT_LEADER_OR_FOLLOWER, "leadership moved")
            elif not partition.is_acknowledged(last_offset, acks):
                late.append((partition, last_offset, result))
        waits[:] = late
        if late and not final:
            return None
        for _, _, result in late:
            _fail(
                metrics, result, ErrorCode.REQUEST_TIMED_OUT, f"not acknowledged in {timeout_ms} ms"
            )
        return response

    return Parked([wait[0] for wait in waits], timeout_ms, attempt, is_produce=True)


def _fail(metrics: Metrics, result: PartitionProduceResponse, code: ErrorCode, why: str) -> None:
    metrics.add_error(code)
    result.error_code = code
    result.base_offset = -1
    result.error_message = why


def is_any_inspected(services: Services, request: ProduceRequest) -> bool:
    """Whether anything of the request may have to be looked into."""
    inspected = services.partitions.inspected
    for topic in request.topic_data:
        if topic.name in inspected or topic.topic_id in inspected:
            return True
    return False


def inspections(
    context: RequestContext, services: Services, request: ProduceRequest
) -> tuple[list[Inspected], bool]:
    """What must be looked into, and whether by a worker, as here it would not be microseconds."""
    found: list[Inspected] = []
    needs_worker = False
    for topic in request.topic_data:
        name = topic.name
        if context.api_version >= FIRST_VERSION_BY_ID:
            name = services.partitions.topic_names.get(topic.topic_id, "")
        for data in topic.partition_data:
            partition = services.partitions.find(name, data.index)
            records = data.records
            if partition is None or not partition.inspects:
                continue
            if records is not None and len(records) >= HEADER_SIZE:
                found.append((data, partition.log.config))
                needs_worker = needs_worker or not is_short(records, partition.log.config)
    return found, needs_worker


def own_records(request: ProduceRequest) -> None:
    """The receive buffer is used again before the worker is done, so the records move out of it."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                data.records = memoryview(bytearray(data.records))


async def _inspect_then_append(
    context: RequestContext,
    services: Services,
    request: ProduceRequest,
    inspected: list[Inspected],
) -> Answer:
    verdicts = await services.workers.run(lambda: look_into(context, services, inspected))
    return append_all(context, services, request, verdicts)


def look_into(context: RequestContext, services: Services, inspected: list[Inspected]) -> Verdicts:
    """Where the topic wants it: records are checked, and recompressed perhaps."""
    bytes_max = services.settings.decompressed_max_bytes
    verdicts: Verdicts = {}
    for data, config in inspected:
        assert isinstance(data.records, memoryview)
        try:
            if context.api_version < FIRST_VERSION_WITH_ZSTD:
                ensure_codec(data.records)
            data.records = inspect(data.records, config, bytes_max)
        except RunnelError as error:
            verdicts[id(data)] = error
    return verdicts
