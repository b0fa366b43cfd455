"""Fetch (key 1, v4-v18): plan which bytes of which files go out; the kernel sends them.

Version notes: v7 brought sessions, v9 the leader epoch, v12 flexible fields and diverging epochs,
v13 topic ids, v15 moved the replica id into a tagged field.

Planning is pure and cheap, so it is done again whenever a parked fetch wakes: nothing that was
read before the wait is sent after it. A fetch may start in the middle of a batch and then gets
the whole batch; a first batch larger than the limit is sent all the same. A plan that would have
to read from a disk to find an offset is made again when a worker has read that.
"""

from collections.abc import Coroutine
from typing import Any, Final, NamedTuple

from runnel.broker.context import RequestContext, Services
from runnel.broker.fetch_sessions import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    NO_SESSION,
    Session,
    SessionPartition,
    TopicKey,
)
from runnel.broker.partition import Partition
from runnel.broker.security import Operation, Resource
from runnel.broker.waiting import Parked
from runnel.errors import ErrorCode, RunnelError
from runnel.metrics import FETCHED_BYTES, FETCHES_PARKED
from runnel.storage.segment import ColdError
from runnel.types import FileSlice
from runnel.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)

FIRST_VERSION_WITH_SESSIONS: Final = 7
FIRST_VERSION_WITH_LEADER: Final = 12
FIRST_VERSION_BY_ID: Final = 13
READ_COMMITTED: Final = 1
COLD_TRIES: Final = 4  # an index, the batches after it, and what went cold again meanwhile
_READ: Final = Operation.READ
_TOPIC: Final = Resource.TOPIC


class Plan(NamedTuple):
    """What a fetch would answer now."""

    served: list[tuple[SessionPartition, PartitionData, int]]  # the last: bytes of records
    size_bytes: int
    cannot_wait: bool  # an error, a divergence, or a limit that waiting would not move
    on: list[Partition]
    cold: list[FileSlice]  # unless empty, the plan lacks what these would have told


Answer = FetchResponse | Parked[FetchResponse]


def fetch(
    context: RequestContext, services: Services, request: FetchRequest
) -> Answer | Coroutine[Any, Any, Answer]:
    by_id = context.api_version >= FIRST_VERSION_BY_ID
    min_bytes = min(request.min_bytes, request.max_bytes, services.settings.fetch_max_bytes)
    if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
        raise RunnelError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "replicas fetch on the inter-broker listener"
        )
    session, is_full = _session(context, services, request, by_id)

    def attempt(final: bool) -> FetchResponse | None:
        plan = _plan(context, services, request, session, is_full, True)
        if final or plan.cannot_wait or plan.size_bytes >= min_bytes:
            return _respond(services, session, is_full, plan)
        return None

    def answer(plan: Plan) -> Answer:
        if (
            plan.size_bytes >= min_bytes
            or plan.cannot_wait
            or request.max_wait_ms <= 0
            or not plan.on
        ):
            return _respond(services, session, is_full, plan)
        services.metrics.slots[FETCHES_PARKED] += 1
        return Parked(plan.on, request.max_wait_ms, attempt)

    plan = _plan(context, services, request, session, is_full, False)
    if not plan.cold:
        return answer(plan)

    async def warm_and_answer(plan: Plan) -> Answer:
        for tries_left in reversed(range(COLD_TRIES)):
            await services.warming.read(plan.cold)
            plan = _plan(context, services, request, session, is_full, tries_left == 0)
            if not plan.cold:
                break
        return answer(plan)

    return warm_and_answer(plan)


def _session(
    context: RequestContext, services: Services, request: FetchRequest, by_id: bool
) -> tuple[Session, bool]:
    """The partitions that this request is about, and whether all of them must be answered."""
    sessions = services.sessions
    epoch = request.session_epoch if context.api_version >= FIRST_VERSION_WITH_SESSIONS else -1
    if epoch > FIRST_EPOCH:
        session = sessions.resume(request.session_id, epoch, context.arrived_ms)
        session.update(request, by_id)
        return session, False
    if request.session_id != NO_SESSION:
        sessions.close(request.session_id)
    if epoch == FINAL_EPOCH:
        session = Session(NO_SESSION, context.arrived_ms)
    else:
        size = sum(len(topic.partitions) for topic in request.topics)
        session = sessions.open(size, context.arrived_ms)
    session.update(request, by_id)
    return session, True


def _plan(
    context: RequestContext,
    services: Services,
    request: FetchRequest,
    session: Session,
    is_full: bool,
    wait: bool,
) -> Plan:
    left = min(request.max_bytes, services.settings.fetch_max_bytes)
    committed_only = request.isolation_level == READ_COMMITTED
    served: list[tuple[SessionPartition, PartitionData, int]] = []
    on: list[Partition] = []
    cold: list[FileSlice] = []
    total = 0
    cannot_wait = False
    may_skip = not is_full and context.authorizer is None
    for wanted in session.partitions.values():
        known = wanted.partition
        if may_skip and known is not None and wanted.is_quiet(known, committed_only):
            on.append(known)
            continue
        try:
            partition = _find(context, services, wanted.topic, wanted.index)
            wanted.partition = partition
            data, size = _read(partition, wanted.asked, left, committed_only, total == 0, wait)
            on.append(partition)
            cannot_wait = cannot_wait or data.diverging_epoch.epoch >= 0
            if size and not _is_at_the_end(partition, data):
                cannot_wait = True
        except RunnelError as error:
            data, size = _failed(context, services, wanted, error), 0
            cannot_wait = True
        except ColdError as error:
            cold.append(error.cold)
            continue
        total += size
        left -= size
        served.append((wanted, data, size))
    return Plan(served, total, cannot_wait, on, cold)


def _find(context: RequestContext, services: Services, topic: TopicKey, index: int) -> Partition:
    name = topic if isinstance(topic, str) else services.partitions.name_of(topic)
    if context.authorizer is not None and not context.may(_READ, _TOPIC, name):
        raise RunnelError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
    return services.partitions.get(name, index)


def _read(
    partition: Partition,
    asked: FetchPartition,
    left: int,
    committed_only: bool,
    first: bool,
    wait: bool,
) -> tuple[PartitionData, int]:
    partition.ensure_leads()
    partition.ensure_epoch(asked.current_leader_epoch)
    log = partition.log
    last_stable_offset = partition.last_stable_offset
    data = PartitionData(
        partition_index=asked.partition,
        high_watermark=partition.high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=[] if committed_only else None,
        records=b"",
    )
    if asked.last_fetched_epoch >= 0 and (diverging := _diverging(partition, asked)) is not None:
        data.diverging_epoch = diverging
        return data, 0
    bound = last_stable_offset if committed_only else partition.high_watermark
    size_max = min(asked.partition_max_bytes, left)
    found = log.slice(asked.fetch_offset, size_max, bound, at_least_one=first, wait=wait)
    if found is None:
        return data, 0
    data.records = found
    if committed_only:
        data.aborted_transactions = [
            AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
            for aborted in log.aborted_in(asked.fetch_offset, bound)
        ]
    return data, found.size


def _is_at_the_end(partition: Partition, data: PartitionData) -> bool:
    """Whether these bytes are the last there are, so that only an append could bring more.

    Otherwise they were cut by a limit or by the end of an older segment: waiting brings nothing.
    """
    found, active = data.records, partition.log.segments[-1]
    assert isinstance(found, FileSlice)
    return found.file is active.file and found.position + found.size >= active.size


def _diverging(partition: Partition, asked: FetchPartition) -> EpochEndOffset | None:
    """Where the reader's history parts from ours (R9)."""
    epoch, end_offset = partition.end_of_epoch(asked.last_fetched_epoch)
    if epoch < 0:
        raise RunnelError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"epoch {asked.last_fetched_epoch} is unknown here"
        )
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def _failed(
    context: RequestContext, services: Services, wanted: SessionPartition, error: RunnelError
) -> PartitionData:
    data = PartitionData(
        partition_index=wanted.index,
        error_code=error.code,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )
    if context.api_version >= FIRST_VERSION_WITH_LEADER and error.code in (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
    ):
        name = wanted.topic
        if not isinstance(name, str):
            name = services.partitions.topic_names.get(name, "")
        partition = services.partitions.find(name, wanted.index)
        if partition is not None:
            data.current_leader = LeaderIdAndEpoch(
                leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
            )
    return data


def _respond(services: Services, session: Session, is_full: bool, plan: Plan) -> FetchResponse:
    topics: dict[TopicKey, FetchableTopicResponse] = {}
    for wanted, data, size in plan.served:
        if not (wanted.is_news(data, size > 0) or is_full):
            continue
        key = wanted.topic
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = (
                FetchableTopicResponse(topic=key)
                if isinstance(key, str)
                else FetchableTopicResponse(topic_id=key)
            )
        topic.partitions.append(data)
        if size and session.id != NO_SESSION:
            session.serve_last(wanted)
    services.metrics.slots[FETCHED_BYTES] += plan.size_bytes
    return FetchResponse(session_id=session.id, responses=list(topics.values()))
