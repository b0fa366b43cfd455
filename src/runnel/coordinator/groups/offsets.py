"""Committing the offsets of groups, and what the journal says of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from runnel.coordinator.gathering import RECORD_BYTES, Gathered, Pair
from runnel.coordinator.groups.committed import CommittedOffsets
from runnel.coordinator.groups.group import EnsurePartition
from runnel.coordinator.groups.offset_records import (
    NO_TIMESTAMP,
    CommittedOffset,
    OffsetRecord,
    decode_offset,
    encode_offset,
    offset_record,
)
from runnel.coordinator.runtime import NO_PRODUCER_ID
from runnel.errors import ErrorCode, RunnelError
from runnel.types import NO_TOPIC_ID
from runnel.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from runnel.wire.messages.records.legacy_offset_commit import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
)
from runnel.wire.messages.records.offset_commit import OffsetCommitKey, OffsetCommitValue
from runnel.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from runnel.coordinator.groups.machine import GroupMachine

FIRST_VERSION_OF_ABSENT_GROUPS: Final = 9  # of OffsetCommit
NONE: Final = ErrorCode.NONE  # found once: to look it up takes a microsecond
OFFSETS_MAX: Final = 20_000  # at once: more make a batch that no journal takes, after long work


class PartitionToCommit(Protocol):
    """Of OffsetCommit and of TxnOffsetCommit."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class Offsets:
    """Part of the machine; `committed` is what its journal says."""

    def __init__(self, machine: "GroupMachine") -> None:
        self._machine = machine
        self.committed = CommittedOffsets()

    # Committing

    def commit(
        self,
        request: OffsetCommitRequest,
        topics: Sequence[OffsetCommitRequestTopic],
        api_version: int,
        *,
        gathers: bool = False,
    ) -> list[OffsetCommitResponseTopic]:
        """`topics`: those of the request that are there, with their names. Raises RunnelError.

        With `gathers` it may be left for the end of the turn: then `Shard.gathered` is there, and
        tells whether it was written after all. The first offset of a group is not, because it
        makes the group, which the next decision may depend on.
        """
        _ensure_not_too_many(sum([len(topic.partitions) for topic in topics]))
        epoch = request.generation_id_or_member_epoch
        group = self._machine.groups.get(request.group_id)
        if group is None or not gathers:
            self._machine.shard.write_gathered()
        ensure: EnsurePartition | None = None
        if group is not None:
            ensure = group.ensure_may_commit(
                request.member_id, request.group_instance_id, epoch, api_version
            )
        elif epoch >= 0:
            is_told = api_version >= FIRST_VERSION_OF_ABSENT_GROUPS
            raise _absent(
                ErrorCode.GROUP_ID_NOT_FOUND if is_told else ErrorCode.ILLEGAL_GENERATION, request
            )
        now_ms = self._machine.shard.clock.wall_ms()
        expires_ms = NO_TIMESTAMP
        if request.retention_time_ms != NO_TIMESTAMP:
            expires_ms = now_ms + request.retention_time_ms
        records: list[OffsetRecord] = []
        answers: list[OffsetCommitResponseTopic] = []
        for topic in topics:
            topic_id = topic.topic_id
            if topic_id == NO_TOPIC_ID:  # an older version gives only the name
                topic_id = self._machine.topics.id_of(topic.name) or NO_TOPIC_ID
            results: list[OffsetCommitResponsePartition] = []
            for partition in topic.partitions:
                code = self._add(
                    records, request.group_id, topic.name, topic_id, partition, ensure,
                    now_ms, expires_ms,
                )  # fmt: skip
                results.append(
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=code
                    )
                )
            answers.append(
                OffsetCommitResponseTopic(
                    name=topic.name, topic_id=topic.topic_id, partitions=results
                )
            )
        if group is None or not gathers:
            self._write(records)
        elif records:
            self._gather(records)
        return answers

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, topics: Sequence[TxnOffsetCommitRequestTopic]
    ) -> list[TxnOffsetCommitResponseTopic]:
        """They count when the producer's marker comes. Raises RunnelError."""
        try:
            return self._commit_in_transaction(request, topics)
        except RunnelError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:  # which producers do not know
                raise RunnelError(ErrorCode.ILLEGAL_GENERATION, str(error)) from error
            raise

    def _commit_in_transaction(
        self, request: TxnOffsetCommitRequest, topics: Sequence[TxnOffsetCommitRequestTopic]
    ) -> list[TxnOffsetCommitResponseTopic]:
        _ensure_not_too_many(sum([len(topic.partitions) for topic in topics]))
        group = self._machine.groups.get(request.group_id)
        ensure: EnsurePartition | None = None
        if group is not None:
            ensure = group.ensure_may_commit_in_transaction(
                request.member_id, request.group_instance_id, request.generation_id
            )
        elif request.generation_id >= 0:
            raise _absent(ErrorCode.ILLEGAL_GENERATION, request)
        now_ms = self._machine.shard.clock.wall_ms()
        records: list[OffsetRecord] = []
        answers: list[TxnOffsetCommitResponseTopic] = []
        for topic in topics:
            results: list[TxnOffsetCommitResponsePartition] = []
            for partition in topic.partitions:
                code = self._add(
                    records, request.group_id, topic.name, NO_TOPIC_ID, partition, ensure,
                    now_ms, NO_TIMESTAMP,
                )  # fmt: skip
                results.append(
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=code
                    )
                )
            answers.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=results))
        self._write(records, request.producer_id, request.producer_epoch)
        return answers

    def _add(
        self,
        records: list[OffsetRecord],
        group_id: str,
        topic: str,
        topic_id: bytes,
        partition: PartitionToCommit,
        ensure: EnsurePartition | None,
        now_ms: int,
        expires_ms: int,
    ) -> ErrorCode:
        metadata = partition.committed_metadata or ""
        if metadata and self._is_too_long(metadata):
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        if ensure is not None:
            known_id = topic_id
            if known_id == NO_TOPIC_ID:
                known_id = self._machine.topics.id_of(topic) or NO_TOPIC_ID
            ensure(topic, known_id, partition.partition_index)
        found = CommittedOffset(
            partition.committed_offset,
            partition.committed_leader_epoch,
            metadata,
            now_ms,
            expires_ms,
            topic_id,
            self.committed.next_order(),
        )
        records.append((group_id, topic, partition.partition_index, found))
        return NONE

    def _write(
        self,
        records: Sequence[OffsetRecord],
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
    ) -> None:
        """What `Shard.write` does, without a message in between. Raises RunnelError."""
        if records:
            encoded = [encode_offset(record) for record in records]
            self._machine.shard.append(encoded, producer_id, producer_epoch)
            for record in records:
                self._replay(record, producer_id)

    def _gather(self, records: Sequence[OffsetRecord]) -> None:
        shard = self._machine.shard
        encoded = [encode_offset(record) for record in records]
        size_bytes = 0
        for key, value in encoded:
            size_bytes += len(key) + len(value) + RECORD_BYTES
        gathered = shard.gathered
        if gathered is None or not gathered.has_room_for(size_bytes):
            shard.write_gathered()
            gathered = shard.gathered = Gathered(
                self._write_gathered, shard.journal.batch_bytes_max
            )
        gathered.size_bytes += size_bytes
        gathered.pairs += encoded
        gathered.records += records

    def _write_gathered(self, pairs: list[Pair], records: list[OffsetRecord]) -> None:
        """Raises RunnelError."""
        self._machine.shard.append(pairs)
        for record in records:
            self._replay(record, NO_PRODUCER_ID)

    def _is_too_long(self, metadata: str) -> bool:
        """Kafka counts UTF-16 code units, although the setting speaks of bytes."""
        limit = self._machine.settings().offset_metadata_max_bytes
        return 2 * len(metadata) > limit and len(metadata.encode("utf-16-le")) > 2 * limit

    # Replay

    def _replay(self, record: OffsetRecord, producer_id: int) -> None:
        if record[3] is not None:
            self._machine.ensure_group(record[0])
        self.committed.replay(record, producer_id)

    def replay_bytes(self, key: bytes, value: bytes | None, producer_id: int) -> None:
        """Raises WireError."""
        self._replay(decode_offset(key, value, self.committed.next_order()), producer_id)

    def replay(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int
    ) -> None:
        self._replay(offset_record(key, value, self.committed.next_order()), producer_id)

    def replay_legacy(
        self, key: LegacyOffsetCommitKey, value: LegacyOffsetCommitValue | None, producer_id: int
    ) -> None:
        """As brokers before 0.9 wrote them."""
        meant = None
        if value is not None:
            meant = OffsetCommitValue(
                offset=value.offset,
                metadata=value.metadata,
                commit_timestamp=value.commit_timestamp,
            )
        now = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
        self.replay(now, meant, producer_id)


def _absent(code: ErrorCode, request: OffsetCommitRequest | TxnOffsetCommitRequest) -> RunnelError:
    return RunnelError(code, f"Group {request.group_id} not found.")


def _ensure_not_too_many(count: int) -> None:
    if count > OFFSETS_MAX:
        raise RunnelError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{count} offsets in one request")
