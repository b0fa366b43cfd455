"""What a fetch would answer now: for each partition a slice of its log, or why there is none.

Planning is pure and cheap. A fetch may start in the middle of a batch and then gets the whole
batch; a first batch larger than the limit is sent all the same. With `wait=False` nothing is read
from a disk: a plan that would have to says what is missing.
"""

from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.fetch_sessions import Session, SessionPartition, TopicKey
from runnel.broker.partition import Partition
from runnel.broker.security import Operation, Resource
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.segment import ColdError
from runnel.types import FileSlice, Waitable
from runnel.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    LeaderIdAndEpoch,
    PartitionData,
)

FIRST_VERSION_WITH_LEADER: Final = 12
READ_COMMITTED: Final = 1
_READ: Final = Operation.READ
_TOPIC: Final = Resource.TOPIC


class Plan:
    """What a fetch would answer now."""

    __slots__ = ("cannot_wait", "cold", "on", "served", "size_bytes")

    def __init__(
        self,
        served: list[tuple[SessionPartition, PartitionData, int]],
        size_bytes: int,
        cannot_wait: bool,
        on: list[Waitable],
        cold: list[FileSlice],
    ) -> None:
        self.served = served  # the last: bytes of records
        self.size_bytes = size_bytes
        self.cannot_wait = cannot_wait  # an error, a divergence, or a limit that would not move
        self.on = on
        self.cold = cold  # unless empty, the plan lacks what these would have told


def make_plan(
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
    on: list[Waitable] = []
    cold: list[FileSlice] = []
    total = 0
    cannot_wait = False
    may_skip = not is_full and context.authorizer is None
    for wanted in session.partitions.values():
        known = wanted.place.partition
        if may_skip and known is not None and wanted.is_quiet(known, committed_only):
            on.append(known)
            continue
        try:
            partition = _find(context, services, wanted.topic, wanted.index)
            wanted.place = partition.place
            data, size = _read(partition, wanted.asked, left, committed_only, total == 0, wait)
            on.append(partition)
            cannot_wait = cannot_wait or data.diverging_epoch.epoch >= 0
            if size and not _is_at_the_end(partition, data):
                cannot_wait = True
        except RunnelError as error:
            services.metrics.add_error(error.code)
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
        end = log.end_of(found, asked.fetch_offset, bound)
        data.aborted_transactions = [
            AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
            for aborted in log.aborted_in(asked.fetch_offset, end)
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
