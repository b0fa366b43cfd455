"""A coordinator's journal: records become one batch of a partition that this broker leads."""

from collections.abc import Sequence
from typing import Any

from runnel.broker.partition import Partition
from runnel.coordinator.runtime import Shard
from runnel.errors import ErrorCode, RunnelError
from runnel.native.journal_batch import encode_pairs
from runnel.ports import Clock


class PartitionJournal:
    """`ports.Journal` over one partition. Made anew for every epoch in which it leads."""

    __slots__ = ("_clock", "_epoch", "partition")

    def __init__(self, partition: Partition, clock: Clock) -> None:
        self.partition = partition
        self._clock = clock
        self._epoch = partition.leader_epoch

    @property
    def end_offset(self) -> int:
        return self.partition.log.log_end_offset

    @property
    def committed_offset(self) -> int:
        """In another epoch nothing of this one counts as committed (R38)."""
        partition = self.partition
        if not partition.is_leader or partition.leader_epoch != self._epoch:
            return -1
        return partition.high_watermark

    @property
    def batch_bytes_max(self) -> int:
        return self.partition.log.config.max_message_bytes

    def append(
        self, records: Sequence[tuple[bytes, bytes | None]], producer_id: int, producer_epoch: int
    ) -> None:
        partition = self.partition
        if partition.leader_epoch != self._epoch:
            raise RunnelError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition.topic_partition}")
        if producer_id >= 0:
            self._ensure_epoch(producer_id, producer_epoch)
        now_ms = self._clock.wall_ms()
        batch = encode_pairs(records, now_ms, producer_id, producer_epoch)
        if len(batch) > self.batch_bytes_max:
            raise RunnelError(
                ErrorCode.MESSAGE_TOO_LARGE, f"{len(batch)} bytes for {partition.topic_partition}"
            )
        partition.append_own(memoryview(batch), now_ms)

    def _ensure_epoch(self, producer_id: int, epoch: int) -> None:
        producer = self.partition.log.producers.producers.get(producer_id)
        if producer is not None and epoch < producer.epoch:
            raise RunnelError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id}: epoch {epoch} is older than {producer.epoch}",
            )


def partition_of(shard: Shard[Any]) -> Partition:
    """What a shard's journal is written to: it moves when something is committed."""
    assert isinstance(shard.journal, PartitionJournal)
    return shard.journal.partition
