"""Transaction markers: control batches that say how a producer's transaction ended.

The partitions are those of this broker. Where each of them can be written to at once and what is
written is committed with it, which is the rule, the whole of it happens inside the call.
Otherwise a task sees to it for as long as it takes.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any, Final

from runnel.broker.coordinators import Coordinators
from runnel.broker.internal_topics import CONSUMER_OFFSETS
from runnel.broker.log_fields import about
from runnel.broker.partition import Partition
from runnel.broker.partitions import Partitions
from runnel.broker.settling import settled, until
from runnel.broker.waiting import Waiting
from runnel.cluster.image import Image
from runnel.coordinator.runtime import Shard
from runnel.coordinator.transactions.markers import Ending
from runnel.errors import ErrorCode, RunnelError
from runnel.native.journal_batch import encode_pairs
from runnel.ports import Clock
from runnel.storage.transactions import ABORT, COMMIT, Marker
from runnel.types import TopicPartition
from runnel.wire.batch import BatchHeader

_log = logging.getLogger(__name__)
_KEY: Final = Struct(">hh")  # version, type
_VALUE: Final = Struct(">hi")  # version, coordinator epoch
VERSION: Final = 0
RETRY_FIRST_MS: Final = 20
RETRY_MAX_MS: Final = 1_000
AT_ONCE_MAX: Final = 500  # markers, before others have a turn: some milliseconds
PATIENCE_MS: Final = 60_000  # between looks at something that nobody announced

Written = list[tuple[Partition, int]]  # with the offset after its marker


class Markers:
    """`coordinator.transactions.MarkerWriter` over the partitions of this broker."""

    def __init__(
        self,
        partitions: Partitions,
        groups: Coordinators[Any],
        image: Callable[[], Image],
        clock: Clock,
        waiting: Waiting,
    ) -> None:
        self._partitions = partitions
        self._groups = groups
        self._image = image
        self._clock = clock
        self._waiting = waiting
        self._tasks: set[asyncio.Task[None]] = set()

    def write(self, shard: Shard[Any], ending: Ending, done: Callable[[], None]) -> None:
        left: Iterable[TopicPartition] = ending.partitions
        written: Written = []
        if len(ending.partitions) <= AT_ONCE_MAX and shard.is_settled(shard.journal.end_offset):
            left, written = self._append_all(ending, left)
            if not left and all(map(_is_committed, written)):
                done()
                return
        task = asyncio.get_running_loop().create_task(
            self._see_to_it(shard, ending, list(left), written, done)
        )
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("markers are not written until the next start", exc_info=error)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _see_to_it(
        self,
        shard: Shard[Any],
        ending: Ending,
        left: list[TopicPartition],
        written: Written,
        done: Callable[[], None],
    ) -> None:
        retry_ms = RETRY_FIRST_MS
        while not written and not await settled(self._waiting, shard, PATIENCE_MS):
            if not shard.is_open:
                return
        missed: list[TopicPartition] = []
        while shard.is_open:
            is_first = retry_ms == RETRY_FIRST_MS
            away, more = self._append_all(ending, left[:AT_ONCE_MAX], tell=is_first)
            missed += away
            written += more
            left = left[AT_ONCE_MAX:]
            if left:
                await asyncio.sleep(0)
                continue
            while not await self._know(written):
                if not shard.is_open:
                    return
            lost = [partition.topic_partition for partition, _ in filter(_is_lost, written)]
            left, missed, written = missed + lost, [], []
            if not left:
                break
            await asyncio.sleep(retry_ms / 1000)
            retry_ms = min(retry_ms * 2, RETRY_MAX_MS)
        if shard.is_open:
            done()

    async def _know(self, written: Written) -> bool:
        return await until(
            self._waiting,
            [partition for partition, _ in written],
            PATIENCE_MS,
            lambda: all(_is_committed(each) or _is_lost(each) for each in written),
        )

    def _append_all(
        self, ending: Ending, partitions: Iterable[TopicPartition], *, tell: bool = False
    ) -> tuple[list[TopicPartition], Written]:
        """Those that cannot be written to now, and what was written."""
        left: list[TopicPartition] = []
        written: Written = []
        for where in partitions:
            topic = self._image().topics.get(where.topic)
            if topic is None or where.index >= len(topic.partitions):
                continue  # deleted since
            partition = self._partitions.find(where.topic, where.index)
            if partition is None:
                left.append(where)
                continue
            try:
                self.append(
                    partition,
                    ending.producer_id,
                    ending.producer_epoch,
                    Marker(ending.is_commit, ending.coordinator_epoch),
                    bumped_epoch=ending.bumped_epoch,
                )
            except RunnelError as error:
                if _is_ended(partition, ending, error):
                    _log.info(
                        "%s: %s needs no marker: %s",
                        _name(ending),
                        where,
                        error,
                        extra=about(where) | {"transactional_id": ending.transactional_id},
                    )
                    continue
                if tell and error.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                    _tell_fenced(ending, where, error)
                left.append(where)
                continue
            written.append((partition, partition.log.log_end_offset))
        return left, written

    def append(
        self,
        partition: Partition,
        producer_id: int,
        producer_epoch: int,
        marker: Marker,
        *,
        bumped_epoch: bool,
    ) -> None:
        """To one partition. Nothing is done if the same marker stands there already.

        Raises INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, or that it cannot be now.
        """
        partition.ensure_leads()
        now_ms = self._clock.wall_ms()
        batch = marker_batch(producer_id, producer_epoch, marker, now_ms)
        producers = partition.log.producers
        header = BatchHeader.read(memoryview(batch))
        if not producers.check_marker(header, marker, bumped_epoch=bumped_epoch):
            return
        partition.append_own(memoryview(batch), now_ms)
        if partition.topic_partition.topic == CONSUMER_OFFSETS:
            self._offsets_decided(partition, producer_id, marker.is_commit)

    def _offsets_decided(self, partition: Partition, producer_id: int, is_commit: bool) -> None:
        try:
            shard = self._groups.shard(partition.topic_partition.index)
        except RunnelError:
            return  # it is being loaded, and will come to this marker
        shard.machine.end_transaction(producer_id, is_commit=is_commit)


def marker_batch(producer_id: int, producer_epoch: int, marker: Marker, now_ms: int) -> bytearray:
    key = _KEY.pack(VERSION, COMMIT if marker.is_commit else ABORT)
    value = _VALUE.pack(VERSION, marker.coordinator_epoch)
    return encode_pairs([(key, value)], now_ms, producer_id, producer_epoch, control=True)


def _is_committed(written: tuple[Partition, int]) -> bool:
    partition, end_offset = written
    return partition.high_watermark >= end_offset


def _is_lost(written: tuple[Partition, int]) -> bool:
    """Nobody will commit it here: it is written again where the partition is led then."""
    partition, _ = written
    return not _is_committed(written) and (
        not partition.is_leader or partition.log.offline is not None
    )


def _is_ended(partition: Partition, ending: Ending, error: RunnelError) -> bool:
    """Whether this refusal says that the transaction is over in that partition already.

    A later epoch of the producer has written there; or somebody has ended it in the name of a
    later coordinator, which is what a tool does that writes markers by hand.
    """
    if error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
        return True
    if error.code is not ErrorCode.TRANSACTION_COORDINATOR_FENCED:
        return False
    producer = partition.log.producers.producers.get(ending.producer_id)
    return producer is None or producer.txn_first_offset < 0


def _tell_fenced(ending: Ending, where: TopicPartition, error: RunnelError) -> None:
    """Kafka gives up here, until the coordinator is loaded in a later epoch; ours goes on looking,
    so that a marker written by hand is enough. If it is no longer the coordinator, it hears so.
    """
    _log.warning(
        "%s cannot be ended in %s: %s. Somebody has written markers in the name of a later"
        " coordinator; see `runnel transaction find-hanging --topic %s`, and end it there with"
        " `runnel transaction abort --topic`",
        _name(ending),
        where,
        error,
        where.topic,
        extra=about(where) | {"transactional_id": ending.transactional_id},
    )


def _name(ending: Ending) -> str:
    return f"transaction of {ending.transactional_id} (producer {ending.producer_id})"
