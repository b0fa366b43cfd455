"""What a fetch would answer now: for each partition a slice of its log, or why there is none.

Planning is pure and cheap. A fetch may start in the middle of a batch and then gets the whole
batch; a first batch larger than the limit is sent all the same. With `wait=False` nothing is read
from a disk: a plan that would have to says what is missing.
"""

from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.broker.fetch_sessions import Served, Session, SessionPartition, TopicKey
from runnel.broker.partition import Partition
from runnel.broker.security import Operation, Resource
from runnel.broker.waiting import Fresh
from runnel.errors import ErrorCode, RunnelError
from runnel.storage.log import Log
from runnel.storage.segment import ColdError
from runnel.types import FileSlice, Waitable
from runnel.wire.messages.fetch import AbortedTransaction as Aborted
from runnel.wire.messages.fetch import EpochEndOffset, LeaderIdAndEpoch, PartitionData
from runnel.wire.schema import Records

FIRST_VERSION_WITH_LEADER: Final = 12
READ_COMMITTED: Final = 1
NOT_KNOWN: Final = -1
_READ: Final = Operation.READ
_TOPIC: Final = Resource.TOPIC
_PartitionData: Final = PartitionData  # a name that is imported is looked for at every call


class Plan:
    """What a fetch would answer now."""

    __slots__ = ("cannot_wait", "cold", "on", "served", "size_bytes")

    def __init__(
        self,
        served: list[Served],
        size_bytes: int,
        cannot_wait: bool,
        on: list[Waitable],
        cold: list[FileSlice],
    ) -> None:
        self.served = served
        self.size_bytes = size_bytes
        self.cannot_wait = cannot_wait  # an error, a divergence, or a limit that would not move
        self.on = on
        self.cold = cold  # unless empty, the plan lacks what these would have told


def make_plan(
    context: RequestContext,
    services: Services,
    session: Session,
    *,
    bytes_max: int,
    committed_only: bool,
    is_full: bool,
    wait: bool,
) -> Plan:
    left = bytes_max
    served: list[Served] = []
    on: list[Waitable] = []
    cold: list[FileSlice] = []
    total = 0
    cannot_wait = False
    is_open = context.authorizer is None
    fresh = services.waiting.fresh
    for wanted in session.partitions.values():
        known = wanted.place.partition
        if known is not None and not is_full and is_open and wanted.is_quiet(known, committed_only):
            on.append(known)
            continue
        try:
            if known is None or not is_open:
                known = _find(context, services, wanted.topic, wanted.index)
                wanted.place = known.place
            found = _read(known, wanted, left, committed_only, total == 0, wait, fresh)
            on.append(known)
            cannot_wait = cannot_wait or found.diverges or found.is_cut
        except RunnelError as error:
            services.metrics.add_error(error.code)
            data = _failed(context, services, wanted, error)
            found = Served(wanted, data, 0, NOT_KNOWN, NOT_KNOWN, is_error=True)
            cannot_wait = True
        except ColdError as error:
            cold.append(error.cold)
            continue
        total += found.size
        left -= found.size
        served.append(found)
    return Plan(served, total, cannot_wait, on, cold)


def _find(context: RequestContext, services: Services, topic: TopicKey, index: int) -> Partition:
    name = topic if isinstance(topic, str) else services.partitions.name_of(topic)
    if context.authorizer is not None and not context.may(_READ, _TOPIC, name):
        raise RunnelError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
    return services.partitions.get(name, index)


def _read(
    partition: Partition,
    wanted: SessionPartition,
    left: int,
    committed_only: bool,
    first: bool,
    wait: bool,
    fresh: Fresh,
) -> Served:
    if not partition.is_leader:
        partition.ensure_leads()
    partition.ensure_epoch(wanted.current_leader_epoch)
    log, offset = partition.log, wanted.fetch_offset
    high_watermark, log_start_offset = partition.high_watermark, log.log_start_offset
    last_stable_offset = partition.last_stable_offset
    found: FileSlice | None = None
    diverging: EpochEndOffset | None = None
    if wanted.last_fetched_epoch >= 0:
        diverging = _diverging(partition, wanted)
    bound = last_stable_offset if committed_only else high_watermark
    if diverging is None:
        size_max = min(wanted.bytes_max, left)
        found = log.slice(offset, size_max, bound, at_least_one=first, wait=wait)
    size, is_cut = 0, False
    records: Records = b""
    if found is not None:
        size, is_cut = found.size, not _is_at_the_end(partition, found)
        records = fresh.of(found) or found
    data = _PartitionData(
        partition_index=wanted.index,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log_start_offset,
        aborted_transactions=_aborted(log, found, offset, bound) if committed_only else None,
        records=records,
    )
    served = Served(wanted, data, size, high_watermark, log_start_offset)
    served.is_cut = is_cut
    if diverging is not None:
        data.diverging_epoch, served.diverges = diverging, True
    return served


def _aborted(log: Log, found: FileSlice | None, offset: int, bound: int) -> list[Aborted]:
    """Of the transactions in what was found."""
    if found is None:
        return []
    return [
        Aborted(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
        for aborted in log.aborted_in(offset, log.end_of(found, offset, bound))
    ]


def _is_at_the_end(partition: Partition, found: FileSlice) -> bool:
    """Whether these bytes are the last there are, so that only an append could bring more.

    Otherwise they were cut by a limit or by the end of an older segment: waiting brings nothing.
    """
    active = partition.log.segments[-1]
    return found.file is active.file and found.position + found.size >= active.size


def _diverging(partition: Partition, wanted: SessionPartition) -> EpochEndOffset | None:
    """Where the reader's history parts from ours (R9)."""
    epoch, end_offset = partition.end_of_epoch(wanted.last_fetched_epoch)
    if epoch < 0:
        raise RunnelError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"epoch {wanted.last_fetched_epoch} is unknown here"
        )
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
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
