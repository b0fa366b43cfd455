"""One partition that this broker holds: its leadership, its watermarks, and the checked append.

Invariants: log_start <= last_stable <= high_watermark <= log_end, and high_watermark only grows
while the leader epoch stays. Four offsets are kept apart although one replica makes them equal
most of the time:

  - log end: what has been written; only followers may read so far;
  - flushed: what an fsync covers; `runnel.durability=ack` acknowledges nothing beyond it;
  - high watermark: what every in-sync replica has; consumers read to here;
  - last stable offset: the high watermark, or the first open transaction below it.

An acknowledgement is a predicate over these (`is_acknowledged`), never a side effect of append.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from runnel.broker.client_batch import (
    ensure_timestamps,
    is_good,
    is_good_in_transaction,
    refusal,
)
from runnel.broker.inspection import is_needed
from runnel.broker.waiting import Waiting
from runnel.config.topic import NEVER, LogConfig
from runnel.errors import ErrorCode, RunnelError
from runnel.ports import Clock
from runnel.storage.log import Log
from runnel.types import Waitable
from runnel.wire.batch import (
    BatchHeader,
    restamp_log_append_time,
    stamp,
)

ALL_IN_SYNC: Final = -1
NO_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1


Appended = tuple[int, int, int]  # base offset, last offset, log append time or -1


class Place:
    """Where whoever may outlive a partition looks for it; empty once it is dropped.

    The fetch session of a client that went stays until its slot is needed. Held by it, partitions
    of deleted topics would stay as long, and with each its log and its indexes.
    """

    __slots__ = ("partition",)

    def __init__(self, partition: "Partition | None" = None) -> None:
        self.partition = partition


def _log_failed(place: Place, told_before: Callable[[], None]) -> None:
    """Whoever waits for a log that went offline waits in vain, and is to hear of it now."""
    told_before()
    _wake_at(place)


def _wake_at(place: Place) -> None:
    if place.partition is not None:
        place.partition.wake()


class Partition(Waitable):
    """Owned by `Partitions`; touched only on the loop's thread."""

    __slots__ = (
        "_after_max_ms",
        "_batch_bytes_max",
        "_before_max_ms",
        "_flush_soon",
        "_flushes_early",
        "_stamps_time",
        "_touched",
        "_waiting",
        "_wall_ms",
        "high_watermark",
        "in_sync_count",
        "inspects",
        "is_leader",
        "leader_epoch",
        "leader_id",
        "log",
        "min_in_sync",
        "place",
        "syncs_first",
        "topic_partition",
    )

    def __init__(
        self,
        log: Log,
        clock: Clock,
        waiting: Waiting,
        touched: dict["Partition", None],
        flush_soon: Callable[["Partition", int], None],
    ) -> None:
        super().__init__()
        self.place = Place(self)
        self.log = log
        self.topic_partition = log.partition
        self._wall_ms = clock.wall_ms
        self._waiting = waiting
        self._flush_soon = flush_soon
        self._touched = touched  # where the flusher looks for logs that have something to flush
        self.high_watermark = log.opened_high_watermark
        self.leader_id = -1
        self.leader_epoch = NO_EPOCH
        self.is_leader = False
        self.in_sync_count = 0
        self.min_in_sync = 1
        self.configure(log.config)
        self._listen_to(log)

    def _listen_to(self, log: Log) -> None:
        """It shall not know this partition, or neither would go without the other."""
        log.on_start_moved = partial(_wake_at, self.place)  # to be told, though not at once
        log.on_failed = partial(_log_failed, self.place, log.on_failed)

    def configure(self, config: LogConfig) -> None:
        """Take in a topic's configuration, the parts that every append asks for as plain fields."""
        self.log.config = config
        self.inspects = is_needed(config)
        self.syncs_first = config.durability == "ack"
        self._flushes_early = not self.syncs_first and (
            config.flush_messages != NEVER or config.flush_ms != NEVER
        )
        self._stamps_time = config.timestamp_type == "LogAppendTime"
        self._after_max_ms = config.timestamp_after_max_ms
        self._before_max_ms = config.timestamp_before_max_ms
        self._batch_bytes_max = min(config.max_message_bytes, config.segment_bytes)

    def replace_log(self, log: Log) -> None:
        """The same records, all of them flushed, in another data folder."""
        self.log = log
        self._listen_to(log)
        self.configure(log.config)
        self._touched[self] = None
        log.producers.high_watermark_moved(self.high_watermark)
        self.flushed()

    # Leadership

    def lead(self, leader_id: int, leader_epoch: int, in_sync_count: int, min_in_sync: int) -> None:
        """Begin to lead in this epoch. The epoch is recorded even if no record follows (R7)."""
        if not self.is_leader or leader_epoch != self.leader_epoch:
            self.log.epochs.assign(leader_epoch, self.log.log_end_offset)
            self._touched[self] = None
            self.wake()  # a reader may have said which epoch it believes in
        self.is_leader = True
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.in_sync_count = in_sync_count
        self.min_in_sync = min_in_sync
        self.advance_high_watermark()
        self.log.producers.high_watermark_moved(self.high_watermark)  # also if it was there already

    def resign(self, leader_id: int, leader_epoch: int) -> None:
        self.is_leader = False
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.wake()

    def drop(self) -> None:
        """It is no partition of this broker any more, and never will be again."""
        self.resign(-1, self.leader_epoch)
        self.place.partition = None

    def ensure_leads(self) -> None:
        if not self.is_leader:
            raise RunnelError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{self.topic_partition} is led by broker {self.leader_id}",
            )

    def ensure_epoch(self, current_leader_epoch: int) -> None:
        """What the client believes must be what is (R8). -1 means that it does not say."""
        if current_leader_epoch in (NO_EPOCH, self.leader_epoch):
            return
        behind = current_leader_epoch < self.leader_epoch
        raise RunnelError(
            ErrorCode.FENCED_LEADER_EPOCH if behind else ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"{self.topic_partition} is in epoch {self.leader_epoch}, not {current_leader_epoch}",
        )

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` that this log knows, and its end; -1, -1 if none."""
        if epoch == self.leader_epoch:
            return epoch, self.log.log_end_offset
        return self.log.epochs.end_offset_for(epoch, self.log.log_end_offset)

    # Watermarks

    @property
    def last_stable_offset(self) -> int:
        first_unstable = self.log.first_unstable_offset
        if first_unstable is None or first_unstable > self.high_watermark:
            return self.high_watermark
        return max(first_unstable, self.log.log_start_offset)  # its first records may be deleted

    def advance_high_watermark(self) -> None:
        """With one replica in sync, the leader's own log decides. Never goes back."""
        log = self.log
        reached = log.flushed_offset if self.syncs_first else log.log_end_offset
        if reached > self.high_watermark:
            self.high_watermark = reached
            log.producers.high_watermark_moved(reached)
            if self.waiters:
                self._waiting.moved(self)

    def flushed(self) -> None:
        """An fsync came back; the log has advanced its flushed offset."""
        self.advance_high_watermark()
        self.wake()

    def wake(self) -> None:
        if self.waiters:
            self._waiting.moved(self)

    # Appending

    def append(self, records: memoryview, acks: int, in_transaction: bool = False) -> Appended:
        """Check one client batch and append it; it stays borrowed, and is stamped in place.

        Everything is checked before the first byte is written. A duplicate of one of the
        producer's last five batches answers with the offsets of the first copy. Transactional
        ones are accepted if whoever calls has made sure that a transaction is open here.
        """
        if not self.is_leader or self.in_sync_count < self.min_in_sync:
            self._ensure_may_append(acks)
        log = self.log
        header = BatchHeader.read(records)
        if not is_good(header, records, self._batch_bytes_max) and not (
            in_transaction and is_good_in_transaction(header, records, self._batch_bytes_max)
        ):
            raise refusal(header, records, log.config)
        now_ms = self._wall_ms()
        append_time_ms = NO_TIMESTAMP
        if self._stamps_time:
            append_time_ms = now_ms
        elif header.max_timestamp - now_ms > self._after_max_ms or self._before_max_ms != NEVER:
            ensure_timestamps(header, now_ms, log.config)
        if header.producer_id >= 0:
            duplicate = log.producers.check(header)
            if duplicate is not None:
                told_ms = NO_TIMESTAMP if append_time_ms == NO_TIMESTAMP else duplicate.timestamp
                return duplicate.base_offset, duplicate.last_offset, told_ms
        base_offset = log.log_end_offset
        stamp(records, 0, base_offset, self.leader_epoch)
        if append_time_ms != NO_TIMESTAMP:
            restamp_log_append_time(records, 0, append_time_ms)
            header = BatchHeader.read(records)
        else:
            header.base_offset = base_offset
            header.partition_leader_epoch = self.leader_epoch
        log.append(header, records, now_ms)
        self._touched[self] = None
        if self._flushes_early:
            self._maybe_flush()
        if not self.syncs_first:
            self._keep_for_waiters(records)
            self.advance_high_watermark()
        return base_offset, log.log_end_offset - 1, append_time_ms

    def _keep_for_waiters(self, records: memoryview) -> None:
        """Who is told of them next need not read what was just written."""
        if self.waiters:
            active = self.log.segments[-1]
            self._waiting.fresh.keep(active.file, active.size, records)

    def append_own(self, records: memoryview, now_ms: int) -> None:
        """A batch that this broker made: of a coordinator's journal, or a transaction's marker.

        It is stamped in place. There is no sequence to check, and nobody to mistrust; how large a
        batch may be, and where, is for its maker to know.
        """
        if not self.is_leader or self.in_sync_count < self.min_in_sync:
            self._ensure_may_append(ALL_IN_SYNC)
        log = self.log
        stamp(records, 0, log.log_end_offset, self.leader_epoch)
        log.append(BatchHeader.read(records), records, now_ms)
        self._touched[self] = None
        if self._flushes_early:
            self._maybe_flush()
        if self.syncs_first:
            self._flush_soon(self, 0)
        else:
            self.advance_high_watermark()

    def _ensure_may_append(self, acks: int) -> None:
        self.ensure_leads()
        if acks == ALL_IN_SYNC:
            raise RunnelError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.in_sync_count} in sync, {self.min_in_sync} needed",
            )

    def _maybe_flush(self) -> None:
        """Kafka's own flush settings, which few topics have: so many messages, or so much time."""
        log = self.log
        if log.log_end_offset - log.flushed_offset >= log.config.flush_messages:
            self._flush_soon(self, 0)
        elif log.config.flush_ms != NEVER:
            self._flush_soon(self, log.config.flush_ms)

    def is_acknowledged(self, last_offset: int, acks: int) -> bool:
        if acks == ALL_IN_SYNC:
            return self.high_watermark > last_offset
        if self.syncs_first:
            return self.log.flushed_offset > last_offset
        return True
